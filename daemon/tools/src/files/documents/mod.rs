//! Text of documents that are no plain text but often asked for: notebooks, word processing, spreadsheets.
//!
//! A document that cannot be read as what its name says gives `None`, and the file is treated like any other.

mod notebook;
mod sheet;
mod word;
mod xml;

use std::fs::File;
use std::path::Path;

/// A larger document is not extracted.
const MAX_DOCUMENT: u64 = 32 * 1024 * 1024;

/// Bytes of text that are extracted; the rest is left out, and said.
const MAX_TEXT: usize = 8 * 1024 * 1024;

const CUT: &str = "\n[the rest of the document was left out]\n";

/// The kinds that are extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Notebook,
    Word,
    Sheet,
}

/// What the name of `path` says.
pub(super) fn kind(path: &Path) -> Option<Kind> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "ipynb" => Some(Kind::Notebook),
        "docx" => Some(Kind::Word),
        "xlsx" => Some(Kind::Sheet),
        _ => None,
    }
}

/// The document's text.
pub(super) fn extract(kind: Kind, file: &File, bytes: u64) -> Option<String> {
    if bytes > MAX_DOCUMENT {
        return None;
    }
    let mut text = match kind {
        Kind::Notebook => notebook::text(file),
        Kind::Word => word::text(file),
        Kind::Sheet => sheet::text(file),
    }?;
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push_str(CUT);
    }
    Some(text)
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
