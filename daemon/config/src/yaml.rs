//! Parses YAML into a [`Node`] tree, strict where a slip would silently change what is in force: duplicate
//! keys, tabs, unknown tags, a second document and alias bombs are faults with a line (spec 80 §8.3).

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::{Number, Value};

use crate::tree::{Entries, Node, Source, Tree};

/// Most values a file may hold once its aliases are filled in.
const MAX_NODES: usize = 50_000;
/// Deepest nesting of maps and lists.
const MAX_DEPTH: usize = 64;
/// The merge key of YAML 1.1, which files of the original may use.
const MERGE_KEY: &str = "<<";

/// Why a text is no settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// From 1.
    pub(crate) line: u32,
    /// From 1, in characters.
    pub(crate) column: u32,
    pub(crate) reason: String,
}

/// Parses `text`, whose nodes get `source` with their own lines. An empty text is an empty map.
pub(crate) fn parse(text: &str, source: &Source) -> Result<Node, Fault> {
    let mut builder = Builder::new(text, source);
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, span)) => builder.take(event, span.start)?,
            Err(error) => return Err(builder.explain(*error.marker(), error.info())),
        }
    }
    match builder.root {
        None => Ok(Node::map(source.on_line(1))),
        Some(root) if root.is_null() => Ok(Node::map(source.on_line(1))),
        Some(root) if root.as_map().is_some() => Ok(root),
        Some(_) => Err(Fault {
            line: 1,
            column: 1,
            reason: "the file must hold `key: value` lines at its top level".to_owned(),
        }),
    }
}

/// A map or list that is not complete yet.
enum Frame {
    List { items: Vec<Node>, anchor: usize, line: u32 },
    Map { entries: Entries, key: Option<Key>, merges: Vec<Node>, anchor: usize, line: u32 },
}

/// A key that waits for its value.
struct Key {
    name: String,
    line: u32,
    /// An unquoted `<<`.
    merges: bool,
}

struct Builder<'a> {
    source: &'a Source,
    lines: Vec<&'a str>,
    frames: Vec<Frame>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    documents: usize,
    root: Option<Node>,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str, source: &'a Source) -> Self {
        Self {
            source,
            lines: text.lines().collect(),
            frames: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            documents: 0,
            root: None,
        }
    }

    fn take(&mut self, event: Event<'_>, at: Marker) -> Result<(), Fault> {
        let line = narrow(at.line());
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(fault(at, "a second document starts here; a settings file is a single one"));
                }
                Ok(())
            }
            Event::SequenceStart(anchor, tag) => {
                check_collection_tag(tag.as_deref(), "seq", at)?;
                self.open(Frame::List { items: Vec::new(), anchor, line }, at)
            }
            Event::MappingStart(anchor, tag) => {
                check_collection_tag(tag.as_deref(), "map", at)?;
                let frame =
                    Frame::Map { entries: Entries::new(), key: None, merges: Vec::new(), anchor, line };
                self.open(frame, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref(), at)?;
                let mut node = Node::new(Tree::Scalar(value), self.source.on_line(line));
                if style == ScalarStyle::Plain {
                    node.written = Some(text.as_ref().into());
                }
                if self.expects_key() {
                    self.check_tabs(at)?;
                }
                self.count(1, at)?;
                self.insert(node, anchor, style == ScalarStyle::Plain, at)
            }
            Event::Alias(anchor) => {
                let node = self.alias(anchor, at)?;
                self.insert(node, 0, false, at)
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Map { key: None, .. }))
    }

    fn open(&mut self, frame: Frame, at: Marker) -> Result<(), Fault> {
        if self.expects_key() {
            return Err(fault(at, "a key must be a single word or text, not a list or map"));
        }
        if self.frames.len() >= MAX_DEPTH {
            return Err(fault(at, &format!("more than {MAX_DEPTH} levels of nesting")));
        }
        self.count(1, at)?;
        self.frames.push(frame);
        Ok(())
    }

    fn close(&mut self, at: Marker) -> Result<(), Fault> {
        let (tree, anchor, line) = match self.frames.pop() {
            Some(Frame::List { items, anchor, line }) => (Tree::List(items), anchor, line),
            Some(Frame::Map { mut entries, merges, anchor, line, .. }) => {
                for merged in merges {
                    merge(&mut entries, merged, at)?;
                }
                (Tree::Map(entries), anchor, line)
            }
            // The parser closes only what it opened.
            None => return Ok(()),
        };
        self.insert(Node::new(tree, self.source.on_line(line)), anchor, false, at)
    }

    /// Puts a finished node where it belongs: as a key, a value, an item or the root.
    fn insert(&mut self, mut node: Node, anchor: usize, plain: bool, at: Marker) -> Result<(), Fault> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.frames.last_mut() {
            None => self.root = Some(node),
            Some(Frame::List { items, .. }) => items.push(node),
            Some(Frame::Map { entries, key: key @ None, .. }) => {
                let name = key_text(&node, at)?;
                let merges = plain && name == MERGE_KEY;
                if let Some(earlier) = entries.get(&name).filter(|_| !merges) {
                    let first = earlier.source.origin().line().unwrap_or_default();
                    return Err(fault(at, &format!("the key `{name}` is set twice (first on line {first})")));
                }
                *key = Some(Key { name, line: narrow(at.line()), merges });
            }
            Some(Frame::Map { entries, key, merges, .. }) => {
                let Some(key) = key.take() else {
                    return Ok(());
                };
                // The line of the key is where the user will look.
                node.source = node.source.on_line(key.line);
                if key.merges {
                    merges.push(node);
                } else {
                    entries.insert(key.name, node);
                }
            }
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Marker) -> Result<Node, Fault> {
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(fault(at, "this alias stands inside the very value it refers to"));
        };
        let (nodes, depth) = measure(node);
        if depth + self.frames.len() > MAX_DEPTH {
            return Err(fault(at, &format!("more than {MAX_DEPTH} levels of nesting, through an alias")));
        }
        let node = node.clone();
        self.count(nodes, at)?;
        Ok(node)
    }

    fn count(&mut self, nodes: usize, at: Marker) -> Result<(), Fault> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err(fault(at, &format!("the file grows beyond {MAX_NODES} values (by its aliases?)")));
        }
        Ok(())
    }

    /// Refuses a key that is indented by a tab: the parser lets it pass at the start of a file, at a column
    /// that is not the one the user sees.
    fn check_tabs(&self, at: Marker) -> Result<(), Fault> {
        if self.indented_by_tab(at.line()) {
            return Err(fault(at, TAB_REASON));
        }
        Ok(())
    }

    fn indented_by_tab(&self, line: usize) -> bool {
        let text = line.checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or("");
        text.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t')
    }

    /// Turns the scanner's words into ones that say what to do, where the cause is a common one.
    fn explain(&self, at: Marker, info: &str) -> Fault {
        // The scanner may stop at the end of the line before the one that is at fault.
        for line in [at.line(), at.line() + 1] {
            if self.indented_by_tab(line) {
                return Fault { line: narrow(line), column: 1, reason: TAB_REASON.to_owned() };
            }
        }
        let advice = if info.contains("mapping values are not allowed") {
            "; check the indentation, and quote a text that holds `: `"
        } else if info.contains("unexpected character") {
            "; put the text into quotes"
        } else if info.contains("quoted scalar") {
            "; a closing quote is missing"
        } else {
            ""
        };
        fault(at, &format!("{info}{advice}"))
    }
}

const TAB_REASON: &str = "a tab is used for indentation; use spaces";

fn fault(at: Marker, reason: &str) -> Fault {
    Fault { line: narrow(at.line()), column: narrow(at.col() + 1), reason: reason.to_owned() }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Values and levels of a subtree. The depth is bounded, as every subtree was built under [`MAX_DEPTH`].
fn measure(node: &Node) -> (usize, usize) {
    let children: Vec<&Node> = match &node.tree {
        Tree::Scalar(_) => return (1, 0),
        Tree::List(items) => items.iter().collect(),
        Tree::Map(entries) => entries.values().collect(),
    };
    children
        .into_iter()
        .map(measure)
        .fold((1, 1), |(nodes, depth), (more, below)| (nodes.saturating_add(more), depth.max(below + 1)))
}

fn key_text(node: &Node, at: Marker) -> Result<String, Fault> {
    match (&node.tree, &node.written) {
        (Tree::Scalar(Value::Null), _) => Err(fault(at, "a key is missing before the `:`")),
        (Tree::Scalar(_), Some(written)) => Ok(written.to_string()),
        (Tree::Scalar(Value::String(text)), None) => Ok(text.clone()),
        _ => Err(fault(at, "a key must be a single word or text, not a list or map")),
    }
}

/// Fills in what a `<<` names: a map, or a list of maps of which the earlier wins. Keys of the map itself stay.
fn merge(entries: &mut Entries, merged: Node, at: Marker) -> Result<(), Fault> {
    match merged.tree {
        Tree::Map(more) => {
            for (key, node) in more {
                entries.entry(key).or_insert(node);
            }
            Ok(())
        }
        Tree::List(items) if items.iter().all(|item| item.as_map().is_some()) => {
            items.into_iter().try_for_each(|item| merge(entries, item, at))
        }
        _ => Err(fault(at, "`<<` takes a map, or a list of maps")),
    }
}

fn check_collection_tag(tag: Option<&Tag>, expected: &str, at: Marker) -> Result<(), Fault> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == expected) => Err(unknown_tag(tag, at)),
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag, at: Marker) -> Fault {
    fault(at, &format!("the tag `{tag}` is not supported here; quote the text if `!` is part of it"))
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Marker) -> Result<Value, Fault> {
    let Some(tag) = tag else {
        return Ok(if style == ScalarStyle::Plain { plain(text) } else { Value::from(text) });
    };
    if !tag.is_yaml_core_schema() {
        // A lone `!` means "not plain".
        return if tag.suffix.is_empty() { Ok(Value::from(text)) } else { Err(unknown_tag(tag, at)) };
    }
    let value = plain(text);
    let fits = match tag.suffix.as_str() {
        "str" => return Ok(Value::from(text)),
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        "bool" => value.is_boolean(),
        "null" => value.is_null(),
        _ => return Err(unknown_tag(tag, at)),
    };
    if fits { Ok(value) } else { Err(fault(at, &format!("`{text}` is no value of `!!{}`", tag.suffix))) }
}

/// Resolves an unquoted scalar by the core schema of YAML 1.2: `on`, `off`, `yes` and `no` are text.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::from(text), Value::Number)
}

/// Reads a number in the notations of the core schema; infinities and NaN are not among our values.
pub(crate) fn number(text: &str) -> Option<Number> {
    let based = |digits: &str, radix| {
        let legal = digits.chars().all(|c| c.is_digit(radix)) && !digits.is_empty();
        legal.then(|| u64::from_str_radix(digits, radix).ok()).flatten().map(Number::from)
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return based(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return based(digits, 8);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned.chars().all(|c| c.is_ascii_digit()) {
        let signed = text.strip_prefix('+').unwrap_or(text);
        if let Ok(small) = signed.parse::<i64>() {
            return Some(small.into());
        }
        if let Ok(large) = signed.parse::<u64>() {
            return Some(large.into());
        }
    }
    let legal = unsigned.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    let float = legal.then(|| text.parse::<f64>().ok()).flatten().filter(|float| float.is_finite())?;
    Number::from_f64(float)
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
