//! Jupyter notebooks: the cells in their order, with the text of their outputs.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;

use serde::Deserialize;

#[derive(Deserialize)]
struct Notebook {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    #[serde(rename = "cell_type")]
    kind: String,
    #[serde(default)]
    source: Lines,
    #[serde(default)]
    outputs: Vec<Output>,
}

/// Of an output only the text: pictures and markup are left out.
#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    text: Lines,
    #[serde(default)]
    data: Data,
    ename: Option<String>,
    evalue: Option<String>,
}

#[derive(Deserialize, Default)]
struct Data {
    #[serde(rename = "text/plain", default)]
    plain: Lines,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    One(String),
    Many(Vec<String>),
}

impl Default for Lines {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Lines {
    fn joined(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Many(lines) => lines.concat(),
        }
    }
}

pub(super) fn text(file: &File) -> Option<String> {
    let notebook: Notebook = serde_json::from_reader(BufReader::new(file)).ok()?;
    let mut out = String::new();
    for (at, cell) in notebook.cells.iter().enumerate() {
        let _ = writeln!(out, "# cell {} [{}]", at + 1, cell.kind);
        push_block(&mut out, &cell.source.joined());
        for output in &cell.outputs {
            let mut text = output.text.joined() + &output.data.plain.joined();
            if let Some(name) = &output.ename {
                let _ = write!(text, "{name}: {}", output.evalue.as_deref().unwrap_or_default());
            }
            if !text.is_empty() {
                out.push_str("# output\n");
                push_block(&mut out, &text);
            }
        }
        out.push('\n');
    }
    Some(out)
}

fn push_block(out: &mut String, text: &str) {
    out.push_str(text.trim_end_matches('\n'));
    out.push('\n');
}
