//! The file side of an edit: reading it whole, seeing that the edit is on disk, and what it did to the text.

use std::fs::Metadata;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, json};

use super::super::diff;
use super::super::open::{open_failed, open_regular, plain};
use super::super::text::{BOM, LineEnding, decode, looks_binary, marked_encoding};
use crate::output::ToolOutput;
use crate::services::ToolCx;
use crate::tool::OwnedEffect;
use crate::workspace::ResolvedPath;

/// A larger file is not held in memory to be edited.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A file that is about to be edited.
#[derive(Debug, Clone)]
pub(super) struct Loaded {
    pub(super) content: Vec<u8>,
    pub(super) metadata: Metadata,
}

/// Reads all of a text file. An `Err` is the call's result.
pub(super) fn load(cx: &ToolCx, target: &ResolvedPath) -> Result<Loaded, Box<ToolOutput>> {
    let path = target.path.as_path();
    let refused = |text: String| Box::new(ToolOutput::error(text));
    // What may not be read shows neither in a diff nor in what is like the text.
    if let Some(reason) = cx.denies(&OwnedEffect::Read { path: path.to_owned() }) {
        return Err(refused(reason));
    }
    let (file, metadata) = open_regular(cx, target)?;
    if metadata.len() > MAX_BYTES {
        let advice = cx.if_has("terminal", "; edit it in the terminal, for instance with sed");
        return Err(refused(format!(
            "{} has {} bytes, more than the {MAX_BYTES} that can be patched{advice}",
            path.display(),
            metadata.len()
        )));
    }
    let mut content = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    // One byte more, to notice a file that grows or that has no size of its own.
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| Box::new(open_failed(path, &error)))?;
    if content.len() as u64 > MAX_BYTES {
        return Err(refused(format!("{} is too long to be patched", path.display())));
    }
    if looks_binary(&content) {
        let kind = marked_encoding(&content).unwrap_or("binary, or in an encoding other than UTF-8");
        let advice = cx.if_has("terminal", "; convert or edit it in the terminal");
        return Err(refused(format!("{} is {kind} and cannot be patched as text{advice}", path.display())));
    }
    Ok(Loaded { content, metadata })
}

/// Reads the file back: an edit that is not on disk must not be reported as one that is.
pub(super) fn differs_on_disk(path: &Path, wanted: &[u8]) -> Option<String> {
    match std::fs::read(path) {
        Ok(actual) if actual == wanted || flat(&actual) == flat(wanted) => None,
        Ok(_) => Some(format!(
            "{} was changed by somebody else right after the edit; read it again",
            path.display()
        )),
        Err(error) => {
            Some(format!("{} cannot be read back after the edit: {}", path.display(), plain(&error)))
        }
    }
}

/// The text without a byte order mark and with LF line ends, lossily.
pub(super) fn flat(bytes: &[u8]) -> String {
    LineEnding::Lf.apply(&decode(bytes.strip_prefix(BOM).unwrap_or(bytes)))
}

/// The diff of all that an edit did, as results and people see it.
#[derive(Debug, Default)]
pub(super) struct Shown {
    diff: String,
    redacted: usize,
    added: usize,
    removed: usize,
}

impl Shown {
    /// Adds what became of one file, under the name that the model knows it by.
    pub(super) fn add(&mut self, cx: &ToolCx, old: &str, new: &str, label: &str) {
        let diff = diff::unified(old, new, label);
        let (diff, redacted) = cx.services.redactor.redact_file_content(&diff);
        let changed = |sign: char| diff.lines().skip(2).filter(|line| line.starts_with(sign)).count();
        self.added += changed('+');
        self.removed += changed('-');
        self.redacted += redacted;
        self.diff.push_str(&diff);
    }

    /// Puts the diff into the fields of a result.
    pub(super) fn put(&self, fields: &mut Map<String, serde_json::Value>) {
        fields.insert("diff".into(), json!(self.diff));
        if self.redacted > 0 {
            fields.insert("redacted".into(), json!(self.redacted));
        }
    }

    /// In a few words, for people who watch.
    pub(super) fn summary(&self) -> String {
        format!("+{} -{}", self.added, self.removed)
    }

    pub(super) fn into_diff(self) -> Option<String> {
        (!self.diff.is_empty()).then_some(self.diff)
    }
}
