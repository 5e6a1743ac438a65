//! Spreadsheets: each sheet under its name, a line per row, cells apart by tabs.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;

use zip::ZipArchive;

use super::MAX_TEXT;
use super::xml::{Node, archive, attribute, walk};

/// Columns beyond which cells of a row are left out.
const MAX_COLUMNS: usize = 1024;

pub(super) fn text(file: &File) -> Option<String> {
    let mut archive = archive(file)?;
    let sheets = sheets(&mut archive)?;
    let shared = shared_strings(&mut archive).unwrap_or_default();
    let mut out = String::new();
    for (name, part) in sheets {
        out.push_str("# sheet ");
        out.push_str(&name);
        out.push('\n');
        // A sheet that cannot be read is empty; the others are still of use.
        let _ = sheet(&mut archive, &part, &shared, &mut out);
        out.push('\n');
        if out.len() > MAX_TEXT {
            break;
        }
    }
    Some(out)
}

/// Names of the sheets and the parts that hold them, in the workbook's order.
fn sheets(archive: &mut ZipArchive<BufReader<&File>>) -> Option<Vec<(String, String)>> {
    let mut targets: HashMap<String, String> = HashMap::new();
    walk(archive, "xl/_rels/workbook.xml.rels", |node| {
        if let Node::Open("Relationship", start) = node
            && let (Some(id), Some(target)) = (attribute(start, "Id"), attribute(start, "Target"))
        {
            targets.insert(id, target);
        }
        true
    })?;
    let mut sheets = Vec::new();
    walk(archive, "xl/workbook.xml", |node| {
        if let Node::Open("sheet", start) = node
            && let (Some(name), Some(id)) = (attribute(start, "name"), attribute(start, "id"))
            && let Some(target) = targets.get(&id)
        {
            let part = match target.strip_prefix('/') {
                Some(absolute) => absolute.to_owned(),
                None => format!("xl/{target}"),
            };
            sheets.push((name, part));
        }
        true
    })?;
    Some(sheets)
}

/// Texts that cells refer to by number.
fn shared_strings(archive: &mut ZipArchive<BufReader<&File>>) -> Option<Vec<String>> {
    let mut strings: Vec<String> = Vec::new();
    let mut in_text = false;
    walk(archive, "xl/sharedStrings.xml", |node| {
        match node {
            Node::Open("si", _) => strings.push(String::new()),
            Node::Open("t", _) => in_text = true,
            Node::Close("t") => in_text = false,
            Node::Text(text) if in_text => {
                if let Some(last) = strings.last_mut() {
                    last.push_str(text);
                }
            }
            _ => {}
        }
        true
    })?;
    Some(strings)
}

/// The cell that is being read.
#[derive(Default)]
struct Cell {
    column: usize,
    /// The value is a number of a shared text.
    shared: bool,
    value: String,
}

fn sheet(
    archive: &mut ZipArchive<BufReader<&File>>,
    part: &str,
    shared: &[String],
    out: &mut String,
) -> Option<()> {
    let mut cell = Cell::default();
    let mut in_value = false;
    let mut column = 0_usize;
    walk(archive, part, |node| {
        match node {
            Node::Open("row", _) => column = 0,
            Node::Open("c", start) => {
                let named = attribute(start, "r").and_then(|reference| column_of(&reference));
                cell = Cell {
                    column: named.unwrap_or(column),
                    shared: attribute(start, "t").as_deref() == Some("s"),
                    value: String::new(),
                };
            }
            Node::Open("v" | "t", _) => in_value = true,
            Node::Close("v" | "t") => in_value = false,
            Node::Text(text) if in_value => cell.value.push_str(text),
            Node::Close("c") if cell.column < MAX_COLUMNS => {
                // Cells without content are not in the file.
                for _ in column..cell.column {
                    out.push('\t');
                }
                let text = match cell.value.parse::<usize>() {
                    Ok(number) if cell.shared => shared.get(number).map_or("", String::as_str),
                    _ => &cell.value,
                };
                // A cell is one field of one line.
                out.push_str(&text.replace(['\n', '\t'], " "));
                column = cell.column;
            }
            Node::Close("row") => out.push('\n'),
            _ => {}
        }
        out.len() <= MAX_TEXT
    })
}

/// `C7` is column 2.
fn column_of(reference: &str) -> Option<usize> {
    let letters = reference.bytes().take_while(u8::is_ascii_uppercase);
    let number = letters.take(4).fold(0_usize, |number, letter| number * 26 + usize::from(letter - b'A') + 1);
    number.checked_sub(1)
}
