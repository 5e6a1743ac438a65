//! What only several commands together show: a file is fetched or made executable, and then run.

use super::super::inner::is_shell;
use super::super::places::absolute;
use super::super::report::Report;
use super::super::simple::Simple;
use super::super::syntax::Operator;
use super::inline::interpreter;
use super::remote::DOWNLOADERS;
use super::shape_exact;

pub(in super::super) fn judge(report: &mut Report) {
    let (mut fetched, mut executable): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    for simple in &report.simples {
        let cwd = simple.cwd.as_deref();
        for file in runs(simple) {
            let Some(path) = absolute(&file, cwd) else { continue };
            if fetched.iter().any(|known| same(known, &path)) {
                found.push(("run.downloaded", "downloads a file and runs it, unseen", shape_exact(simple)));
            } else if executable.contains(&path) {
                found.push((
                    "run.made_executable",
                    "makes a file executable and runs it",
                    shape_exact(simple),
                ));
            }
        }
        fetched.extend(downloads(simple).into_iter().filter_map(|file| absolute(&file, cwd)));
        if simple.is(&["tee"])
            && let super::super::simple::Stdin::Pipe(programs) = &simple.stdin
            && programs.iter().any(|program| DOWNLOADERS.contains(&program.as_str()))
        {
            fetched.extend(simple.args.iter().filter_map(|arg| absolute(&arg.text, cwd)));
        }
        if simple.is(&["cp", "mv"])
            && let [source, target] =
                simple.args.iter().filter(|arg| !arg.text.starts_with('-')).collect::<Vec<_>>().as_slice()
            && absolute(&source.text, cwd).is_some_and(|source| fetched.contains(&source))
        {
            fetched.extend(absolute(&target.text, cwd));
        }
        if simple.is(&["chmod"]) {
            let mut operands = simple.args.iter().filter(|arg| !arg.text.starts_with("--"));
            let mode = operands.next().map_or("", |arg| arg.text.as_str());
            let runs = mode.contains('x') || mode.chars().any(|c| matches!(c, '1' | '3' | '5' | '7'));
            executable.extend(operands.filter(|_| runs).filter_map(|arg| absolute(&arg.text, cwd)));
        }
    }
    for (rule, what, shape) in found {
        report.ask(rule, what, shape);
    }
}

/// A folder from which anything is run counts for what stands in it.
fn same(known: &str, path: &str) -> bool {
    known == path || known.strip_suffix("/*").is_some_and(|folder| path.starts_with(folder))
}

/// The files that a command runs.
fn runs(simple: &Simple) -> Vec<String> {
    let mut files = Vec::new();
    if simple.called.text.contains('/') {
        files.push(simple.called.text.clone());
    }
    if is_shell(&simple.program) || interpreter(&simple.program).is_some() || simple.is(&["source", "."]) {
        files.extend(simple.args.iter().find(|arg| !arg.text.starts_with('-')).map(|arg| arg.text.clone()));
        if let super::super::simple::Stdin::File(file) = &simple.stdin {
            files.push(file.text.clone());
        }
    }
    files
}

/// The files that a command fetches.
fn downloads(simple: &Simple) -> Vec<String> {
    if !simple.is(&DOWNLOADERS) {
        return Vec::new();
    }
    let redirected = simple
        .redirects
        .iter()
        .filter(|redirect| matches!(redirect.operator, Operator::Write | Operator::Append));
    let mut files: Vec<String> = redirected.map(|redirect| redirect.target.text.clone()).collect();
    let pairs = simple.args.iter().zip(simple.args.iter().skip(1));
    for (option, value) in pairs {
        let text = option.text.as_str();
        let short = text.starts_with('-') && !text.starts_with("--") && text.ends_with(['o', 'O']);
        let is_wget = simple.program == "wget";
        if (short && (is_wget || text.ends_with('o')))
            || matches!(text, "--output" | "--output-document" | "--out")
        {
            files.push(value.text.clone());
        }
        if matches!(text, "-P" | "--directory-prefix" | "--output-dir") {
            files.push(format!("{}/*", value.text));
        }
    }
    for arg in &simple.args {
        for beginning in ["--output=", "--output-document=", "-o", "-O"] {
            files.extend(arg.text.strip_prefix(beginning).filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    // `curl -O` and plain `wget` name the file after the address.
    for arg in simple.args.iter().filter(|arg| arg.text.contains("://") || arg.text.contains('/')) {
        let name =
            arg.text.split(['?', '#']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        if !name.is_empty() {
            files.push(name.to_owned());
        }
    }
    files
}
