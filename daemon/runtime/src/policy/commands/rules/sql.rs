//! SQL that throws data away.

use super::super::CommandFacts;
use super::super::report::Report;
use super::super::simple::{Simple, Stdin};
use super::shape_exact;

const CLIENTS: [&str; 16] = [
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "sqlite",
    "sqlcmd",
    "clickhouse-client",
    "clickhouse",
    "duckdb",
    "cockroach",
    "pgcli",
    "mycli",
    "litecli",
    "usql",
    "isql",
    "bq",
];

pub(super) fn judge(simple: &Simple, _facts: &CommandFacts<'_>, report: &mut Report) {
    if simple.is(&["dropdb", "dropuser"]) || (simple.program == "mysqladmin" && simple.has_arg(&["drop"])) {
        return report.ask("sql.drop", "deletes a database", shape_exact(simple));
    }
    if simple.is(&["redis-cli"])
        && simple.args.iter().any(|arg| matches!(arg.text.to_uppercase().as_str(), "FLUSHALL" | "FLUSHDB"))
    {
        return report.ask("sql.drop", "deletes all data of a store", shape_exact(simple));
    }
    // Builders of databases that begin with an empty one.
    const EMPTYING: [&str; 12] = [
        "db:drop",
        "db:reset",
        "db:drop:all",
        "db:schema:load",
        "db:purge",
        "migrate:fresh",
        "migrate:reset",
        "db:wipe",
        "--force-reset",
        "--accept-data-loss",
        "dropDatabase",
        "schema:drop",
    ];
    let resets = simple
        .args
        .iter()
        .any(|arg| EMPTYING.contains(&arg.text.as_str()) || arg.text.contains("dropDatabase("))
        || (simple.program == "prisma" && simple.has_arg(&["migrate"]) && simple.has_arg(&["reset"]))
        || (simple.args.iter().any(|arg| arg.text.ends_with("manage.py"))
            && simple.has_arg(&["flush", "reset_db"]));
    if resets && !simple.is(&["echo", "printf", "grep", "rg", "git", "cat"]) {
        return report.ask("sql.drop", "deletes all data of a database", shape_exact(simple));
    }
    if !simple.is(&CLIENTS) {
        return;
    }
    let mut texts: Vec<&str> = simple.args.iter().map(|arg| arg.text.as_str()).collect();
    if let Stdin::Text(text) = &simple.stdin {
        texts.push(text);
    }
    for text in texts {
        let plain = without_strings(&without_comments(text)).to_lowercase();
        for statement in plain.split(';') {
            let words: Vec<&str> = statement.split_whitespace().collect();
            let has = |first: &str, second: &[&str]| {
                words.iter().zip(words.iter().skip(1)).any(|(a, b)| a.ends_with(first) && second.contains(b))
            };
            if has("drop", &["table", "database", "schema", "view", "index", "owned"]) {
                report.ask("sql.drop", "deletes tables or a database", shape_exact(simple));
            } else if has("delete", &["from"]) && !words.contains(&"where") {
                report.ask("sql.delete_all", "deletes every row of a table", shape_exact(simple));
            } else if words.iter().any(|word| word.ends_with("truncate")) && words.len() > 1 {
                report.ask("sql.truncate", "empties a table", shape_exact(simple));
            }
        }
        let runs = plain.contains("\\!")
            || plain.contains(".shell")
            || plain.contains(".system")
            || plain.contains("to program")
            || plain.contains("from program")
            || plain.starts_with("system ")
            || plain.contains("load_extension");
        if runs {
            report.ask("tool.runs", "runs a command from a database client", shape_exact(simple));
        }
    }
}

/// What stands in quotes is data or a name.
fn without_strings(text: &str) -> String {
    let mut out = String::new();
    let mut open = None;
    for c in text.chars() {
        match open {
            None if matches!(c, '\'' | '"') => {
                open = Some(c);
                out.push_str(" x ");
            }
            None => out.push(c),
            Some(quote) if c == quote => open = None,
            Some(_) => {}
        }
    }
    out
}

/// Comments count as spaces; those that begin with `/*!` are run by `MySQL`.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        out.push(' ');
        let (comment, behind) = after.split_once("*/").unwrap_or((after, ""));
        if let Some(run) = comment.strip_prefix('!') {
            out.push_str(run.trim_start_matches(|c: char| c.is_ascii_digit()));
            out.push(' ');
        }
        rest = behind;
    }
    out.push_str(rest);
    out.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code)).collect::<Vec<_>>().join(" ")
}
