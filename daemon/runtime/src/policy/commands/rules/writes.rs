//! Writing to places that matter, by redirects and by programs that copy, move, link or edit.

use super::super::CommandFacts;
use super::super::expand::Arg;
use super::super::places::{WriteRisk, shaped};
use super::super::report::Report;
use super::super::simple::{Options, Simple};
use super::super::syntax::Operator;
use super::whose;

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    for redirect in &simple.redirects {
        let network =
            redirect.target.text.starts_with("/dev/tcp/") || redirect.target.text.starts_with("/dev/udp/");
        match redirect.operator {
            Operator::Write | Operator::Append | Operator::ReadWrite => {
                written(simple, &redirect.target, facts, report);
            }
            Operator::Read if network => written(simple, &redirect.target, facts, report),
            _ => {}
        }
    }
    let apart = super::files::outputs(simple).into_iter().chain(super::files::perhaps_written(simple, facts));
    for target in targets(simple).into_iter().chain(apart) {
        written(simple, &target, facts, report);
    }
    if simple.is(&["mv"]) {
        // What is moved is gone where it was.
        let options = simple.options("tSgmo", &["target-directory"]);
        let sources = options
            .operands
            .len()
            .saturating_sub(usize::from(options.value(&["t", "target-directory"]).is_none()));
        for source in options.operands.iter().take(sources) {
            if source.text.starts_with('/') || source.text.starts_with("..") {
                written(simple, source, facts, report);
            }
        }
    }
}

fn written(simple: &Simple, target: &Arg, facts: &CommandFacts<'_>, report: &mut Report) {
    let Some(risk) = facts.write_risk(target, simple.cwd.as_deref()) else { return };
    let place = shaped(target, simple.cwd.as_deref());
    let program = if simple.program.is_empty() { ">" } else { &simple.program };
    // Elsewhere the place says enough; in a file that runs or guards something, what is written matters.
    let what = match risk {
        WriteRisk::Outside | WriteRisk::Unknown => String::new(),
        _ => format!(" by {}", simple.raw_line()),
    };
    let shape = format!("{}{program} {place}{what}", whose(simple));
    let shown = target.shown();
    let (rule, what) = match risk {
        WriteRisk::Disk => {
            report.block("block.raw_disk", "writes to a disk as a whole");
            return;
        }
        WriteRisk::Network => {
            ("run.reverse_shell", format!("opens a network connection as a file ({shown})"))
        }
        WriteRisk::Hermes => ("write.hermes", format!("writes to the agent's own files ({shown})")),
        WriteRisk::Sensitive => {
            ("write.sensitive", format!("writes {shown}, which holds credentials or runs by itself later"))
        }
        WriteRisk::System => {
            ("write.system", format!("writes {shown}, which belongs to the operating system"))
        }
        WriteRisk::Outside => ("write.outside", format!("writes {shown}, outside the working directory")),
        WriteRisk::Unknown => {
            ("write.unknown", format!("writes to a place that is not known before the run ({shown})"))
        }
    };
    report.ask(rule, what, shape);
}

/// The last operand, where it is a place on this machine.
fn last_here(options: Options) -> Vec<Arg> {
    options.operands.into_iter().next_back().filter(|last| !last.text.contains(':')).into_iter().collect()
}

/// The files that a program's arguments make it write.
fn targets(simple: &Simple) -> Vec<Arg> {
    let all = |options: Options| options.operands;
    match simple.program.as_str() {
        "tee" | "sponge" => all(simple.options("", &[])),
        "cp" | "gcp" | "mv" | "gmv" | "install" | "ginstall" | "ln" | "gln" => {
            let options = simple.options("tSgmo", &["target-directory", "suffix", "mode", "owner", "group"]);
            if let Some(folder) = options.value(&["t", "target-directory"]) {
                return options.operands.iter().map(|source| below(folder, source)).collect();
            }
            let Some((last, sources)) = options.operands.split_last() else { return Vec::new() };
            match sources {
                // `ln -s target` makes a link here.
                [] => Vec::new(),
                // The target may be a folder, and the file then stands in it under its own name.
                [source] => vec![last.clone(), below(last, source)],
                sources => sources.iter().map(|source| below(last, source)).collect(),
            }
        }
        "rsync" => last_here(simple.options(
            "eTfB",
            &["rsh", "exclude", "include", "filter", "files-from", "backup-dir", "log-file", "temp-dir"],
        )),
        "scp" | "sftp" => last_here(simple.options("cDFiJloPSX", &[])),
        "dd" => simple.args.iter().filter_map(|arg| part(arg, "of=")).collect(),
        "truncate" => all(simple.options("sr", &["size", "reference"])),
        "touch" => all(simple.options("dtr", &["date", "reference", "time"])),
        "sed" | "gsed" => {
            let options = simple.options("efl", &["expression", "file", "line-length"]);
            if !options.has("i", "in-place") {
                return Vec::new();
            }
            let has_script = options.value(&["e", "f", "expression", "file"]).is_some();
            options.operands.into_iter().skip(usize::from(!has_script)).collect()
        }
        "perl" | "ruby" => {
            let options = simple.options("eIlmMr", &[]);
            if !options.shorts.contains(&'i') {
                return Vec::new();
            }
            options.operands
        }
        "curl" => {
            let options = simple.options(
                "oOdHXAbcDeEFKmTuUwxyYzCrPQt",
                &["output", "output-dir", "cookie-jar", "dump-header", "header", "data", "request"],
            );
            let outputs = ["o", "output", "c", "cookie-jar", "D", "dump-header"];
            options
                .values
                .iter()
                .filter(|(name, _)| outputs.contains(&name.as_str()))
                .map(|(_, value)| value.clone())
                .collect()
        }
        "wget" => {
            let options = simple.options(
                "OoaPUtTQwieDAR",
                &["output-document", "output-file", "directory-prefix", "append-output"],
            );
            let outputs =
                ["O", "o", "a", "P", "output-document", "output-file", "directory-prefix", "append-output"];
            options
                .values
                .iter()
                .filter(|(name, value)| outputs.contains(&name.as_str()) && value.text != "-")
                .map(|(_, value)| value.clone())
                .collect()
        }
        "git" => {
            let inline = simple
                .args
                .iter()
                .filter_map(|arg| part(arg, "--output=").or_else(|| part(arg, "--output-directory=")));
            let pairs = simple.args.iter().zip(simple.args.iter().skip(1));
            let archive = simple.has_arg(&["archive", "format-patch", "bundle"]);
            let apart =
                pairs.filter(|(option, _)| option.text == "--output" || (archive && option.text == "-o"));
            inline.chain(apart.map(|(_, file)| file.clone())).collect()
        }
        "patch" => {
            simple.options("pidDBoF", &["input", "output", "strip"]).operands.into_iter().take(1).collect()
        }
        "sort" | "gcc" | "cc" | "clang" | "ssh-keygen" if simple.program == "sort" => {
            simple.options("oktST", &["output", "key"]).value(&["o", "output"]).cloned().into_iter().collect()
        }
        "unzip" => simple.options("dxP", &[]).value(&["d"]).cloned().into_iter().collect(),
        "tar" | "bsdtar" | "gtar" => tar(simple),
        "find" | "gfind" | "bfs" => {
            let files = ["-fprint", "-fprint0", "-fprintf", "-fls"];
            let pairs = simple.args.iter().zip(simple.args.iter().skip(1));
            pairs
                .filter(|(option, _)| files.contains(&option.text.as_str()))
                .map(|(_, file)| file.clone())
                .collect()
        }
        "openssl" | "gpg" | "age" | "ffmpeg" if simple.program != "ffmpeg" => {
            let pairs = simple.args.iter().zip(simple.args.iter().skip(1));
            pairs
                .filter(|(option, _)| matches!(option.text.as_str(), "-out" | "-o" | "--output"))
                .map(|(_, file)| file.clone())
                .collect()
        }
        _ => Vec::new(),
    }
}

fn tar(simple: &Simple) -> Vec<Arg> {
    let first = simple.arg(0);
    let bundle = first.trim_start_matches('-');
    let extracts =
        bundle.contains('x') && !first.starts_with("--") || simple.has_arg(&["--extract", "--get"]);
    let pairs = simple.args.iter().zip(simple.args.iter().skip(1));
    let folder = pairs
        .clone()
        .filter(|(option, _)| matches!(option.text.as_str(), "-C" | "--directory"))
        .map(|(_, to)| to.clone());
    let inline = simple.args.iter().filter_map(|arg| part(arg, "--directory="));
    if extracts {
        return folder.chain(inline).collect();
    }
    let creates = bundle.contains(['c', 'r', 'u']) && !first.starts_with("--");
    let file = pairs.filter(|(option, _)| {
        let text = option.text.as_str();
        text == "--file"
            || (!text.starts_with("--") && text.ends_with('f') && (text.starts_with('-') || *text == *first))
    });
    if creates { file.map(|(_, to)| to.clone()).filter(|to| to.text != "-").collect() } else { Vec::new() }
}

fn part(arg: &Arg, beginning: &str) -> Option<Arg> {
    arg.text.strip_prefix(beginning).map(|text| Arg { text: text.to_owned(), ..arg.clone() })
}

/// A source's name in a folder.
fn below(folder: &Arg, source: &Arg) -> Arg {
    let name = source.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Arg {
        text: format!("{}/{name}", folder.text.trim_end_matches('/')),
        glob: folder.glob || source.glob,
        ..Arg::default()
    }
}
