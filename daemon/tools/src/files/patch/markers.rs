//! Edits whose quoted text shows a secret as `«redacted:…»`: the mark may stand for the real value, and only
//! so that the value stays (spec 40 §10.4).

use hermes_runtime::Redactor;

const START: &str = "«redacted:";
const END: char = '»';

/// Why a text with marks cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MarkProblem {
    /// A mark is in the new text that is not at the same turn in the old one, or is missing there.
    NotKept,
    /// The quoted text is not there, or the file is not text throughout.
    NotFound,
    /// It is there more than once.
    Ambiguous { lines: Vec<usize> },
}

/// Both texts with the real values in place of the marks. `text` is the file with LF line ends.
pub(crate) fn with_real_values(
    redactor: &Redactor,
    text: &str,
    old: &str,
    new: &str,
) -> Result<(String, String), MarkProblem> {
    let (old_parts, new_parts) = (parts(old), parts(new));
    let marks = |parts: &[Part<'_>]| -> Vec<String> {
        parts.iter().filter_map(|part| part.mark.map(str::to_owned)).collect()
    };
    if marks(&old_parts) != marks(&new_parts) {
        return Err(MarkProblem::NotKept);
    }
    let (masked, _) = redactor.redact_file_content(text);
    let mut places = memchr::memmem::find_iter(masked.as_bytes(), old.as_bytes());
    let Some(at) = places.next() else { return Err(MarkProblem::NotFound) };
    let line_of = |at: usize| masked.get(..at).unwrap_or_default().matches('\n').count() + 1;
    let more: Vec<usize> = places.map(line_of).collect();
    if !more.is_empty() {
        return Err(MarkProblem::Ambiguous { lines: std::iter::once(line_of(at)).chain(more).collect() });
    }
    let values = values(text, &masked, at, &old_parts).ok_or(MarkProblem::NotFound)?;
    let real = |parts: &[Part<'_>]| -> String {
        let mut values = values.iter();
        parts
            .iter()
            .flat_map(|part| [part.mark.and_then(|_| values.next()).map_or("", String::as_str), part.text])
            .collect()
    };
    Ok((real(&old_parts), real(&new_parts)))
}

/// A mark, and the text behind it up to the next one. The first part has no mark.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    mark: Option<&'a str>,
    text: &'a str,
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut mark = None;
    let mut rest = text;
    loop {
        let at = rest.find(START);
        let (before, from) = rest.split_at(at.unwrap_or(rest.len()));
        parts.push(Part { mark, text: before });
        if from.is_empty() {
            return parts;
        }
        let end = from.find(END).map_or(from.len(), |end| end + END.len_utf8());
        let (found, behind) = from.split_at(end);
        mark = Some(found);
        rest = behind;
    }
}

/// The values that the marks of the quoted text stand for. Masking keeps the lines, so that a line of the file
/// and its masked form can be laid side by side.
fn values(text: &str, masked: &str, at: usize, quoted: &[Part<'_>]) -> Option<Vec<String>> {
    let marks_before = masked.get(..at)?.matches(START).count();
    let wanted = quoted.iter().filter(|part| part.mark.is_some()).count();
    let mut all = Vec::new();
    for (own, shown) in text.split('\n').zip(masked.split('\n')) {
        if all.len() >= marks_before + wanted {
            break;
        }
        let parts = parts(shown);
        let (first, rest) = parts.split_first()?;
        let mut own = own.strip_prefix(first.text)?;
        for (index, part) in rest.iter().enumerate() {
            // The last part reaches to the end of the line; the others begin where they are first found.
            let end = if index + 1 == rest.len() {
                own.len().checked_sub(part.text.len())?
            } else if part.text.is_empty() {
                return None;
            } else {
                own.find(part.text)?
            };
            let (value, behind) = own.split_at_checked(end)?;
            all.push(value.to_owned());
            own = behind.strip_prefix(part.text)?;
        }
    }
    all.get(marks_before..marks_before + wanted).map(<[String]>::to_vec)
}

#[cfg(test)]
mod tests {
    use hermes_runtime::SecretScope;
    use pretty_assertions::assert_eq;

    use super::*;

    const TEXT: &str = "a = 1\nkey = \"hunter2-hunter2-hunter2\" # x\nother = \"hunter3-hunter3-hunter3\"\n";

    fn real(old: &str, new: &str) -> Result<(String, String), MarkProblem> {
        let scope = SecretScope::from_pairs([
            ("A_TOKEN", "hunter2-hunter2-hunter2"),
            ("B_TOKEN", "hunter3-hunter3-hunter3"),
        ]);
        with_real_values(&Redactor::new(true, &scope), TEXT, old, new)
    }

    fn marked() -> Vec<String> {
        let scope = SecretScope::from_pairs([
            ("A_TOKEN", "hunter2-hunter2-hunter2"),
            ("B_TOKEN", "hunter3-hunter3-hunter3"),
        ]);
        let masked = Redactor::new(true, &scope).redact_file_content(TEXT).0.into_owned();
        masked.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_mark_that_stays_stands_for_the_value() {
        let [_, key, other] = marked().try_into().unwrap();
        assert!(key.contains(START), "{key}");
        assert_eq!(
            real(&format!("a = 1\n{key}\n"), &format!("a = 2\n{key}\n")),
            Ok((
                "a = 1\nkey = \"hunter2-hunter2-hunter2\" # x\n".to_owned(),
                "a = 2\nkey = \"hunter2-hunter2-hunter2\" # x\n".to_owned()
            )),
        );
        let both = format!("{key}\n{other}");
        let (old, new) = real(&both, &both.replace("other", "second")).unwrap();
        assert!(old.contains("hunter3-hunter3-hunter3\"") && new.contains("second = \"hunter3"), "{new}");
    }

    #[test]
    fn a_mark_that_goes_or_comes_is_refused() {
        let [_, key, other] = marked().try_into().unwrap();
        assert_eq!(real(&key, "key = 1"), Err(MarkProblem::NotKept));
        assert_eq!(real("a = 1", &key), Err(MarkProblem::NotKept));
        assert_eq!(real(&key, &format!("{key}{other}")), Err(MarkProblem::NotKept));
        let wrong = key.replace("key", "yek");
        assert_eq!(real(&wrong, &wrong.replace('x', "y")), Err(MarkProblem::NotFound));
    }
}
