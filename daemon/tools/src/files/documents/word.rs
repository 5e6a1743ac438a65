//! Word processing documents: a line per paragraph, and per row of a table.

use std::fs::File;

use super::MAX_TEXT;
use super::xml::{Node, archive, walk};

pub(super) fn text(file: &File) -> Option<String> {
    let mut archive = archive(file)?;
    let mut out = String::new();
    let mut in_text = false;
    let mut cells = 0_usize;
    walk(&mut archive, "word/document.xml", |node| {
        match node {
            Node::Open("t", _) => in_text = true,
            Node::Close("t") => in_text = false,
            Node::Text(text) if in_text => out.push_str(text),
            Node::Open("tab", _) => out.push('\t'),
            Node::Open("br" | "cr", _) => out.push('\n'),
            Node::Open("tc", _) => cells += 1,
            // The paragraphs of a cell stay on the line of its row.
            Node::Close("p") if cells > 0 => out.push(' '),
            Node::Close("p") => out.push('\n'),
            Node::Close("tc") => {
                cells = cells.saturating_sub(1);
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\t');
            }
            Node::Close("tr") => {
                out.truncate(out.trim_end_matches('\t').len());
                out.push('\n');
            }
            _ => {}
        }
        out.len() <= MAX_TEXT
    })?;
    Some(out)
}
