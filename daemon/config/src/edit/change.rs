//! The change itself, at one place of the text.

use serde_json::Value;

use super::Step;
use super::place::{Entry, Kind, Place, Stretch, read};
use super::render::{flow, inline, key};

/// More blanks for each level below a key.
const INDENT: usize = 2;

/// Sets or takes out what `steps` lead to. `None` where that cannot be done in place.
pub(super) fn apply(text: &str, steps: &[Step], value: Option<&Value>) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let editor = Editor { line_end: if text.contains("\r\n") { "\r\n" } else { "\n" }, text: chars };
    match value {
        Some(value) => editor.set(steps, value),
        None => editor.take_out(steps),
    }
}

struct Editor {
    text: Vec<char>,
    line_end: &'static str,
}

impl Editor {
    fn set(&self, steps: &[Step], value: &Value) -> Option<String> {
        let Some(root) = read(&self.text) else {
            return Some(self.append(0, steps, value));
        };
        if matches!(root.kind, Kind::Nothing) || self.is_null(&root) {
            return if self.slice(root.at).is_empty() { Some(self.append(0, steps, value)) } else { None };
        }
        let mut place = &root;
        let mut entry: Option<&Entry> = None;
        for (depth, step) in steps.iter().enumerate() {
            let rest = steps.get(depth..)?;
            match (step, &place.kind) {
                (Step::Index(index), Kind::List { items, .. }) => {
                    place = items.get(*index)?;
                    entry = None;
                }
                (Step::Key(name), Kind::Map { entries, flow }) => match place.entry(name) {
                    Some(found) => {
                        entry = Some(found);
                        place = &found.value;
                    }
                    None if *flow => return self.add_to_flow(place, entries, rest, value),
                    None => return self.add_to_block(place, rest, value),
                },
                // `section:` without a value.
                (Step::Key(_), _) if matches!(place.kind, Kind::Nothing) || self.is_null(place) => {
                    return self.begin_section(entry?, rest, value);
                }
                _ => return None,
            }
        }
        self.replace_value(entry, place, steps, value)
    }

    /// Puts a value in the place of another one.
    fn replace_value(
        &self,
        entry: Option<&Entry>,
        place: &Place,
        steps: &[Step],
        value: &Value,
    ) -> Option<String> {
        match (&place.kind, value) {
            (Kind::Block, _) if entry.is_none() => None,
            (Kind::Nothing | Kind::Block, _) => Some(self.with(place.at, &format!(" {}", inline(value)))),
            (Kind::Scalar | Kind::Alias, _) => Some(self.with(place.at, &self.fitting(place.at, value))),
            (Kind::List { flow: true, .. } | Kind::Map { flow: true, .. }, _) => {
                Some(self.with(place.at, &flow(value)))
            }
            (Kind::Map { entries, flow: false }, Value::Object(wanted)) if !wanted.is_empty() => {
                self.reconcile_map(entries, steps, wanted)
            }
            (Kind::List { items, flow: false }, Value::Array(wanted))
                if !wanted.is_empty() && items.iter().all(|item| matches!(item.kind, Kind::Scalar)) =>
            {
                self.reconcile_list(items, wanted)
            }
            (Kind::Map { flow: false, .. } | Kind::List { flow: false, .. }, _) => {
                let key = entry?.key;
                let after = self.text.get(key.end..)?.iter().position(|c| *c == ':')? + key.end + 1;
                Some(self.with(Stretch { start: after, end: place.at.end }, &format!(" {}", inline(value))))
            }
        }
    }

    /// Goes through the keys of a map one by one, so that what stays is not touched.
    fn reconcile_map(
        &self,
        entries: &[Entry],
        steps: &[Step],
        wanted: &serde_json::Map<String, Value>,
    ) -> Option<String> {
        let below = |name: &str| {
            let mut steps = steps.to_vec();
            steps.push(Step::Key(name.to_owned()));
            steps
        };
        let mut text: String = self.text.iter().collect();
        for (name, value) in wanted {
            text = apply(&text, &below(name), Some(value))?;
        }
        for gone in entries.iter().filter(|entry| !wanted.contains_key(&entry.name)) {
            text = apply(&text, &below(&gone.name), None)?;
        }
        Some(text)
    }

    /// Keeps the lines of the items that stay at the beginning and at the end, with their comments.
    fn reconcile_list(&self, items: &[Place], wanted: &[Value]) -> Option<String> {
        let written: Vec<Option<Value>> = items.iter().map(|item| self.scalar(item)).collect();
        let equal = |item: Option<&Option<Value>>, value: Option<&Value>| {
            item.and_then(Option::as_ref).zip(value).is_some_and(|(item, value)| item == value)
        };
        let most = items.len().min(wanted.len());
        let head = (0..most).take_while(|at| equal(written.get(*at), wanted.get(*at))).count();
        let tail = (0..most - head)
            .take_while(|at| equal(written.get(items.len() - 1 - at), wanted.get(wanted.len() - 1 - at)))
            .count();
        let first = items.first()?;
        let dash = self.line_start(first.at.start);
        let indent: String = self.text.get(dash..first.at.start)?.iter().take_while(|c| **c == ' ').collect();
        let lead = self.text.get(dash + indent.len()..first.at.start)?;
        // The list must begin on a line of its own, with nothing but its dash.
        if lead.first() != Some(&'-') || !lead.iter().skip(1).all(|c| *c == ' ') {
            return None;
        }
        let lines: Vec<String> = wanted
            .get(head..wanted.len() - tail)?
            .iter()
            .map(|value| format!("{indent}- {}{}", inline(value), self.line_end))
            .collect();
        let from = match items.get(head) {
            Some(item) => self.line_start(item.at.start),
            None => self.next_line(items.last()?.at.end),
        };
        let to = match items.get(head..items.len() - tail)?.last() {
            Some(last) => self.next_line(last.at.end),
            None => from,
        };
        let mut added = lines.concat();
        if from > 0 && self.text.get(from - 1) != Some(&'\n') && !added.is_empty() {
            // The file's last line has no end.
            added = format!("{}{}", self.line_end, added.trim_end_matches(self.line_end));
        }
        Some(self.with(Stretch { start: from, end: to }, &added))
    }

    /// Adds a key to `{…}`.
    fn add_to_flow(&self, place: &Place, entries: &[Entry], rest: &[Step], value: &Value) -> Option<String> {
        let (Step::Key(name), below) = rest.split_first()? else { return None };
        let mut nested = value.clone();
        for step in below.iter().rev() {
            let Step::Key(name) = step else { return None };
            nested = Value::Object([(name.clone(), nested)].into_iter().collect());
        }
        let added = format!("{}: {}", key(name), flow(&nested));
        let at = match entries.last() {
            Some(last) => last.value.at.end,
            None => place.at.start + 1,
        };
        let added = if entries.is_empty() { added } else { format!(", {added}") };
        Some(self.with(Stretch { start: at, end: at }, &added))
    }

    /// Adds a key behind the last one of a map.
    fn add_to_block(&self, place: &Place, rest: &[Step], value: &Value) -> Option<String> {
        let column = place.at.start - self.line_start(place.at.start);
        let at = self.next_line(place.at.end);
        Some(self.insert_lines(at, &self.lines(column, rest, value)?))
    }

    /// Gives a key that has no value a map.
    fn begin_section(&self, entry: &Entry, rest: &[Step], value: &Value) -> Option<String> {
        let line = self.line_start(entry.key.start);
        let column = entry.key.start - line;
        let lines = self.lines(column + INDENT, rest, value)?;
        if matches!(entry.value.kind, Kind::Nothing) {
            return Some(self.insert_lines(self.next_line(entry.key.end), &lines));
        }
        // `section: null`
        let after = self.text.get(entry.key.end..)?.iter().position(|c| *c == ':')? + entry.key.end + 1;
        let text = self.with(Stretch { start: after, end: entry.value.at.end }, "");
        let without = Self { text: text.chars().collect(), line_end: self.line_end };
        Some(without.insert_lines(without.next_line(entry.key.end), &lines))
    }

    fn append(&self, column: usize, steps: &[Step], value: &Value) -> String {
        let lines = self.lines(column, steps, value).unwrap_or_default();
        self.insert_lines(self.text.len(), &lines)
    }

    /// The lines of a new key: one for each level, the last one with the value.
    fn lines(&self, column: usize, steps: &[Step], value: &Value) -> Option<String> {
        let mut lines = String::new();
        for (depth, step) in steps.iter().enumerate() {
            let Step::Key(name) = step else { return None };
            let indent = " ".repeat(column + depth * INDENT);
            let last = depth + 1 == steps.len();
            let behind = if last { format!(" {}", inline(value)) } else { String::new() };
            lines.extend([&indent, &key(name), ":", &behind, self.line_end].map(String::from));
        }
        Some(lines)
    }

    fn take_out(&self, steps: &[Step]) -> Option<String> {
        let unchanged = || Some(self.text.iter().collect());
        let Some(root) = read(&self.text) else { return unchanged() };
        let mut above: Vec<(&Place, &Entry)> = Vec::new();
        let mut place = &root;
        for step in steps {
            let Step::Key(name) = step else { return None };
            let Some(entry) = place.entry(name) else { return unchanged() };
            above.push((place, entry));
            place = &entry.value;
        }
        // What would be left empty goes too.
        let (mut map, mut entry) = above.pop()?;
        while let Kind::Map { entries, .. } = &map.kind
            && entries.len() == 1
            && let Some(outer) = above.pop()
        {
            (map, entry) = outer;
        }
        let Kind::Map { entries, flow } = &map.kind else { return None };
        if *flow {
            let at = entries.iter().position(|known| known.key == entry.key)?;
            let stretch = match (entries.get(at + 1), at.checked_sub(1).and_then(|at| entries.get(at))) {
                (Some(next), _) => Stretch { start: entry.key.start, end: next.key.start },
                (None, Some(before)) => Stretch { start: before.value.at.end, end: entry.value.at.end },
                (None, None) => Stretch { start: entry.key.start, end: entry.value.at.end },
            };
            return Some(self.with(stretch, ""));
        }
        let start = self.line_start(entry.key.start);
        if !self.text.get(start..entry.key.start)?.iter().all(|c| *c == ' ') {
            return None;
        }
        Some(self.with(Stretch { start, end: self.next_line(entry.value.at.end) }, ""))
    }

    /// A value as it is written where another scalar stood: inside `{…}` other characters need quotes.
    fn fitting(&self, at: Stretch, value: &Value) -> String {
        let line = self.text.get(self.line_start(at.start)..at.start).unwrap_or_default();
        if line.contains(&'{') || line.contains(&'[') { flow(value) } else { inline(value) }
    }

    fn is_null(&self, place: &Place) -> bool {
        matches!(place.kind, Kind::Scalar)
            && matches!(self.slice(place.at).as_str(), "~" | "null" | "Null" | "NULL")
    }

    /// The value of a scalar, read alone.
    fn scalar(&self, place: &Place) -> Option<Value> {
        let text = format!("k: {}", self.slice(place.at));
        let node = crate::yaml::parse(&text, &crate::tree::Source::Flag).ok()?;
        node.to_value().get("k").cloned()
    }

    fn slice(&self, at: Stretch) -> String {
        self.text.get(at.start..at.end).unwrap_or_default().iter().collect()
    }

    fn line_start(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        before.iter().rposition(|c| *c == '\n').map_or(0, |found| found + 1)
    }

    /// The beginning of the line after the one that holds the character before `at`.
    fn next_line(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        rest.iter().position(|c| *c == '\n').map_or(self.text.len(), |found| at + found + 1)
    }

    /// Inserts whole lines at the beginning of a line.
    fn insert_lines(&self, at: usize, lines: &str) -> String {
        let unended = at == self.text.len() && at > 0 && self.text.last() != Some(&'\n');
        let lines = if unended {
            format!("{}{}", self.line_end, lines.strip_suffix(self.line_end).unwrap_or(lines))
        } else {
            lines.to_owned()
        };
        self.with(Stretch { start: at, end: at }, &lines)
    }

    fn with(&self, at: Stretch, new: &str) -> String {
        let before = self.text.get(..at.start).unwrap_or_default();
        let after = self.text.get(at.end..).unwrap_or_default();
        before.iter().copied().chain(new.chars()).chain(after.iter().copied()).collect()
    }
}
