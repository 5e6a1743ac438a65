//! What only several commands together show: a file is fetched or made executable, and then run.

use super::super::expand::Arg;
use super::super::inner::{invocation, is_shell, is_stdin};
use super::super::places::absolute;
use super::super::report::Report;
use super::super::simple::{Simple, Stdin};
use super::super::syntax::Operator;
use super::inline::{interpreter, reads_program_from_stdin};
use super::remote::DOWNLOADERS;
use super::shape_exact;

pub(in super::super) fn judge(report: &mut Report) {
    let (mut fetched, mut executable): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut pipes: Vec<String> = Vec::new();
    let mut input_replaced = false;
    let mut source = String::new();
    let mut found = Vec::new();
    for simple in &report.simples {
        let cwd = simple.cwd.as_deref();
        if simple.is(&["mkfifo", "mknod"]) {
            pipes.extend(simple.args.iter().filter_map(|arg| absolute(&arg.text, cwd)));
        }
        // `exec < file` and `exec 3<<< text` change what later shells read.
        input_replaced |= simple.program == "exec"
            && simple.args.is_empty()
            && simple.redirects.iter().any(|redirect| {
                matches!(
                    redirect.operator,
                    Operator::Read | Operator::ReadWrite | Operator::Here | Operator::DuplicateRead
                )
            });
        let reads = (is_shell(&simple.program) && invocation(simple).reads_stdin)
            || reads_program_from_stdin(simple)
            || (simple.is(&["source", "."]) && simple.args.first().is_some_and(|arg| is_stdin(&arg.text)));
        if input_replaced && reads && matches!(simple.stdin, Stdin::Inherited) {
            found.push(("code.unknown", "runs a text that is not known before the run", shape_exact(simple)));
        }
        for file in runs(simple) {
            let Some(path) = absolute(&file, cwd) else { continue };
            if pipes.contains(&path) {
                found.push(("run.piped", "runs whatever another command prints", shape_exact(simple) + "\0"));
            } else if fetched.iter().any(|known| same(known, &path)) {
                let shape = format!("{} from {source}", shape_exact(simple));
                found.push(("run.downloaded", "downloads a file and runs it, unseen", shape));
            } else if executable.contains(&path) {
                found.push((
                    "run.made_executable",
                    "makes a file executable and runs it",
                    shape_exact(simple),
                ));
            }
        }
        if simple.is(&DOWNLOADERS) {
            source.push_str(&simple.raw_line());
            source.push(' ');
        }
        fetched.extend(downloads(simple).into_iter().filter_map(|file| absolute(&file, cwd)));
        let takes = |arg: &Arg| absolute(&arg.text, cwd).is_some_and(|path| fetched.contains(&path));
        // What is made of it, and what is unpacked from it.
        if simple.args.iter().any(takes) {
            let written = simple.redirects.iter().filter(|redirect| redirect.operator == Operator::Write);
            let more: Vec<String> =
                written.filter_map(|redirect| absolute(&redirect.target.text, cwd)).collect();
            fetched.extend(more);
            if simple.is(&["gunzip", "unxz", "bunzip2"]) {
                let names =
                    simple.args.iter().filter_map(|arg| arg.text.rsplit_once('.').map(|(name, _)| name));
                fetched.extend(names.filter_map(|name| absolute(name, cwd)).collect::<Vec<_>>());
            }
        }
        if simple.is(&["tee"])
            && let Stdin::Pipe(programs) = &simple.stdin
            && programs.iter().any(|program| DOWNLOADERS.contains(&program.as_str()))
        {
            fetched.extend(simple.args.iter().filter_map(|arg| absolute(&arg.text, cwd)));
        }
        let fed = matches!(&simple.stdin, Stdin::Pipe(programs) if programs.iter().any(|program| DOWNLOADERS.contains(&program.as_str())));
        if simple.is(&["tar", "bsdtar", "unzip", "cpio"])
            && (fed
                || simple
                    .args
                    .iter()
                    .any(|arg| absolute(&arg.text, cwd).is_some_and(|path| fetched.contains(&path))))
            && let Some(folder) = cwd
        {
            // What is in it is not known; anything below this folder may be.
            fetched.push(format!("{folder}/*"));
        }
        if simple.is(&["cp", "mv", "ln", "install"])
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
    let option = match simple.program.as_str() {
        "awk" | "gawk" | "mawk" | "sed" | "psql" | "make" => "-f",
        "java" => "-jar",
        _ => "",
    };
    if let Some(at) = simple.args.iter().position(|arg| arg.text == option) {
        files.push(simple.arg(at + 1).to_owned());
    }
    match simple.program.as_str() {
        "make" if option.is_empty() || !simple.has_arg(&[option]) => {
            files.extend(["Makefile", "makefile", "GNUmakefile"].map(str::to_owned));
        }
        "npm" | "yarn" | "pnpm" | "bun" => {
            files.push("package.json".to_owned());
            files.extend(simple.args.iter().map(|arg| arg.text.clone()));
        }
        "dpkg" | "rpm" | "apt" | "apt-get" | "dnf" | "yum" | "pip" | "pip3" | "go" | "installer" => {
            files.extend(simple.args.iter().map(|arg| arg.text.clone()));
        }
        _ => {}
    }
    if is_shell(&simple.program) || interpreter(&simple.program).is_some() || simple.is(&["source", "."]) {
        files.extend(simple.args.iter().find(|arg| !arg.text.starts_with('-')).map(|arg| arg.text.clone()));
        if let Stdin::File(file) = &simple.stdin {
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
