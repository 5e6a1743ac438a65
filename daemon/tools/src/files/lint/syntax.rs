//! Syntax of the formats that are checked in process before they are written (spec 40 §5.3).

use std::path::Path;

/// What the check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// Not a format that is checked, or a file that may hold templates or comments.
    Unchecked,
    Good,
    /// Why it does not parse, with its place.
    Broken(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
    Toml,
}

/// Checks `text` as the format that the name of `path` stands for.
pub(crate) fn check(path: &Path, text: &str) -> Syntax {
    let Some(format) = format_of(path) else { return Syntax::Unchecked };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let problem = match format {
        Format::Json => json_problem(text),
        Format::Yaml => yaml_problem(text),
        Format::Toml => toml::from_str::<toml::Table>(text).err().map(|error| one_line(&error.to_string())),
    };
    match problem {
        None => Syntax::Good,
        // Helm, Jinja and the like: legal once they are filled in.
        Some(_) if text.contains("{{") || text.contains("{%") => Syntax::Unchecked,
        Some(problem) => Syntax::Broken(problem),
    }
}

fn format_of(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "json" if has_comments(path, &name) => None,
        "json" => Some(Format::Json),
        "yaml" | "yml" => Some(Format::Yaml),
        "toml" => Some(Format::Toml),
        _ => None,
    }
}

/// Names under which JSON with comments is usual.
fn has_comments(path: &Path, name: &str) -> bool {
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("tsconfig")
        || name.starts_with("jsconfig")
        || matches!(name, "devcontainer.json" | ".eslintrc.json" | "api-extractor.json" | "deno.json")
        || matches!(folder, ".vscode" | ".devcontainer")
}

fn json_problem(text: &str) -> Option<String> {
    let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
    let message = error.to_string();
    // Deep, but no syntax error.
    (!message.starts_with("recursion limit")).then_some(message)
}

/// Any number of documents, tags, anchors: only what the scanner and the grammar refuse is a problem.
fn yaml_problem(text: &str) -> Option<String> {
    let mut parser = saphyr_parser::Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((saphyr_parser::Event::StreamEnd, _)) => return None,
            Ok(_) => {}
            Err(error) => {
                let place = error.marker();
                return Some(format!("{} at line {} column {}", error.info(), place.line(), place.col() + 1));
            }
        }
    }
    None
}

/// The first and the last line: TOML errors draw the place in between.
fn one_line(message: &str) -> String {
    let mut lines = message.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next_back() {
        Some(last) => format!("{}: {}", first.trim(), last.trim()),
        None => first.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syntax(name: &str, text: &str) -> Syntax {
        check(Path::new(name), text)
    }

    #[test]
    fn good_files_pass() {
        for (name, text) in [
            ("a.json", "{\"a\": [1, 2]}"),
            ("a.json", "\u{feff}{}"),
            ("a.yaml", "a: 1\n---\nb: !custom {x: 1}\n---\n"),
            ("a.yml", "x: &anchor [1]\ny: *anchor\nx: again\n"),
            ("a.yaml", ""),
            ("a.toml", "[a]\nb = 1\n"),
            ("a.json", &("[".repeat(500) + &"]".repeat(500))),
        ] {
            assert_eq!(syntax(name, text), Syntax::Good, "{name} {text}");
        }
    }

    #[test]
    fn broken_files_say_where() {
        for (name, text, place) in [
            ("a.json", "{\"a\": 1,}", "line 1 column 9"),
            ("a.yaml", "a: [1, 2\nb: 3\n", "line 2"),
            ("a.toml", "a = \n", "line 1, column 5"),
        ] {
            let Syntax::Broken(problem) = syntax(name, text) else { panic!("{name} passed") };
            assert!(problem.contains(place) && !problem.contains('\n'), "{problem}");
        }
    }

    #[test]
    fn files_that_are_legal_in_their_own_way_are_not_checked() {
        for (name, text) in [
            ("tsconfig.build.json", "{ // comment\n}"),
            (".vscode/settings.json", "{ // comment\n}"),
            ("x.code-workspace", "{ // comment\n}"),
            ("a.jsonl", "{}\n{}\n"),
            ("chart/values.yaml", "{{- if .Values.x }}\na: 1\n{{- end }}"),
            ("a.txt", "{"),
            ("json", "{"),
        ] {
            assert_eq!(syntax(name, text), Syntax::Unchecked, "{name}");
        }
    }
}
