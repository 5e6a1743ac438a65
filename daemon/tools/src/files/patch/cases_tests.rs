//! Runs the cases in `cases/` through the dispatcher; their form is told in `cases/README.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::testing::Bench;

/// At least so many there are.
const AT_LEAST: usize = 200;

#[derive(Debug, Default, Clone)]
struct Case {
    name: String,
    files: BTreeMap<String, Vec<u8>>,
    arguments: serde_json::Map<String, Value>,
    results: BTreeMap<String, Option<Vec<u8>>>,
    found: Option<(String, u64)>,
    already: Option<u64>,
    refused: Option<String>,
}

/// The bytes of a text with its signs and options.
fn bytes_of(lines: &[&str], options: &[&str]) -> Vec<u8> {
    let mut text = lines.join("\n").replace('⇥', "\t").replace('␠', " ").replace('␍', "\r");
    if !options.contains(&"nonl") && !lines.is_empty() {
        text.push('\n');
    }
    if options.contains(&"crlf") {
        text = text.replace('\n', "\r\n");
    }
    let mut out: Vec<u8> = if options.contains(&"bom") { b"\xEF\xBB\xBF".to_vec() } else { Vec::new() };
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once('⟨') {
        let (byte, behind) = behind.split_once('⟩').expect("a byte is closed");
        out.extend_from_slice(before.as_bytes());
        out.push(u8::from_str_radix(byte, 16).expect("a byte has two digits"));
        rest = behind;
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

fn text_of(lines: &[&str], options: &[&str]) -> String {
    let options = if options.contains(&"nl") { &[][..] } else { &["nonl"][..] };
    String::from_utf8(bytes_of(lines, options)).expect("texts are UTF-8")
}

const OPTIONS: [&str; 5] = ["nonl", "crlf", "bom", "plain", "nl"];

/// The words of a directive behind its first: a name, and options.
fn name_and_options(rest: &str) -> (String, Vec<&str>) {
    let mut name = rest;
    let mut options = Vec::new();
    while let Some(last) = name.rsplit(' ').next().filter(|last| OPTIONS.contains(last)) {
        options.push(last);
        name = name.strip_suffix(last).unwrap().trim_end();
    }
    (if name.is_empty() { "f.txt".to_owned() } else { name.to_owned() }, options)
}

fn read_case(block: &str) -> Case {
    let block = block.strip_suffix("\n\n").unwrap_or_else(|| block.trim_end_matches('\n'));
    let mut lines = block.split('\n');
    let mut case = Case { name: lines.next().unwrap().to_owned(), ..Case::default() };
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("--- "), sections.last_mut()) {
            (Some(directive), _) => sections.push((directive, Vec::new())),
            (None, Some((_, body))) => body.push(line),
            (None, None) => panic!("{}: text before a directive", case.name),
        }
    }
    let mut file_options: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (directive, body) in sections {
        let (kind, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        match kind {
            "file" => {
                let (name, options) = name_and_options(rest);
                case.files.insert(name.clone(), bytes_of(&body, &options));
                file_options.insert(name, options);
            }
            "result" => {
                let (name, mut options) = name_and_options(rest);
                if options.is_empty() {
                    options = file_options.get(&name).cloned().unwrap_or_default();
                }
                case.results.insert(name, Some(bytes_of(&body, &options)));
            }
            "gone" => {
                case.results.insert(rest.to_owned(), None);
            }
            "old" | "new" => {
                let text = text_of(&body, &rest.split(' ').collect::<Vec<_>>());
                case.arguments.insert("path".to_owned(), json!("f.txt"));
                case.arguments.insert(format!("{kind}_string"), json!(text));
            }
            "all" => {
                case.arguments.insert("replace_all".to_owned(), json!(true));
            }
            "patch" => {
                case.arguments.insert("mode".to_owned(), json!("patch"));
                case.arguments.insert("patch".to_owned(), json!(text_of(&body, &["nl"])));
            }
            "found" => {
                let (strategy, line) = rest.split_once(' ').unwrap();
                case.found = Some((strategy.to_owned(), line.parse().unwrap()));
            }
            "already" => case.already = Some(rest.parse().unwrap()),
            "refused" => case.refused = Some(rest.to_owned()),
            other => panic!("{}: no directive `{other}`", case.name),
        }
    }
    case
}

fn all_cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/files/patch/cases");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "cases")) {
        let text = fs::read_to_string(path).unwrap();
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        for block in format!("\n{text}").split("\n=== ").skip(1) {
            let case = read_case(&format!("{block}\n"));
            cases.push(Case { name: format!("{file}: {}", case.name), ..case });
        }
    }
    cases
}

/// Everything below the bench's folder.
fn files_of(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![bench.root.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(&bench.root).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// What is wrong with the outcome of a case.
async fn complaint(case: &Case) -> Option<String> {
    let bench = Bench::new();
    for (name, content) in &case.files {
        bench.write(name, content);
    }
    let value = bench.json("patch", Value::Object(case.arguments.clone())).await;
    let mut wanted = case.files.clone();
    for (name, content) in &case.results {
        match content {
            Some(content) => wanted.insert(name.clone(), content.clone()),
            None => wanted.remove(name),
        };
    }
    let shown = |files: &BTreeMap<String, Vec<u8>>| -> String {
        let lines: Vec<String> = files
            .iter()
            .map(|(name, content)| format!("\n  {name}: {:?}", String::from_utf8_lossy(content)))
            .collect();
        lines.concat()
    };
    let got = files_of(&bench);
    if got != wanted {
        return Some(format!("files are{}\n but should be{}\n result: {value}", shown(&got), shown(&wanted)));
    }
    let error = value["error"].as_str();
    let is_right = match (&case.refused, case.already) {
        (Some(words), _) => {
            error.is_some_and(|error| error.contains(words.as_str())) && case.results.is_empty()
        }
        (None, Some(line)) => value["already_applied"] == true && value["match_line"] == line,
        (None, None) => error.is_none() && value["success"] == true && !case.results.is_empty(),
    };
    let strategy = match &case.found {
        Some((strategy, line)) => value["match_strategy"] == **strategy && value["match_line"] == *line,
        None => value["match_strategy"].is_null(),
    };
    (!is_right || !strategy).then(|| format!("result: {value}"))
}

#[tokio::test]
async fn every_case_comes_out_as_it_says() {
    let cases = all_cases();
    let mut complaints = Vec::new();
    for some in cases.chunks(16) {
        let outcomes = futures_util::future::join_all(some.iter().map(complaint)).await;
        for (case, complaint) in some.iter().zip(outcomes) {
            complaints.extend(complaint.map(|complaint| format!("{}\n {complaint}\n", case.name)));
        }
    }
    assert!(
        complaints.is_empty(),
        "{} of {} cases:\n{}",
        complaints.len(),
        cases.len(),
        complaints.join("\n")
    );
    assert!(cases.len() >= AT_LEAST, "only {} cases", cases.len());
}
