//! Where in the text each key and value stands.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// A stretch of the text, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) at: Stretch,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Nothing is written where a value could stand.
    Nothing,
    Scalar,
    /// A text on lines of its own (`|`, `>`); in a map its place begins behind the key's colon.
    Block,
    /// A mention of a value that stands elsewhere.
    Alias,
    Map {
        entries: Vec<Entry>,
        flow: bool,
    },
    List {
        items: Vec<Place>,
        flow: bool,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) key: Stretch,
    pub(super) value: Place,
}

impl Place {
    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        match &self.kind {
            Kind::Map { entries, .. } => entries.iter().find(|entry| entry.name == name),
            _ => None,
        }
    }
}

/// The places of a text that parses; `None` for an empty one.
pub(super) fn read(text: &[char]) -> Option<Place> {
    let whole: String = text.iter().collect();
    let mut parser = Parser::new_from_str(&whole);
    let mut reader = Reader { text };
    while let Some(Ok((event, span))) = parser.next_event() {
        if let Some(place) = reader.value(&mut parser, &event, span) {
            return Some(place);
        }
        if matches!(event, Event::StreamEnd) {
            break;
        }
    }
    None
}

struct Reader<'t> {
    text: &'t [char],
}

impl Reader<'_> {
    /// The value that begins with this event; `None` when it is none.
    fn value<'i>(
        &mut self,
        parser: &mut Parser<'i, saphyr_parser::StrInput<'i>>,
        event: &Event<'i>,
        span: Span,
    ) -> Option<Place> {
        let start = span.start.index();
        match event {
            Event::Scalar(text, style, ..) => {
                let end = self.trimmed(start, span.end.index());
                let nothing = text.is_empty() || text == "~";
                let kind = if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
                    Kind::Block
                } else if *style == ScalarStyle::Plain && nothing && start >= end {
                    Kind::Nothing
                } else {
                    Kind::Scalar
                };
                Some(Place { at: Stretch { start, end: end.max(start) }, kind })
            }
            Event::Alias(_) => Some(Place {
                at: Stretch { start, end: self.trimmed(start, span.end.index()) },
                kind: Kind::Alias,
            }),
            Event::SequenceStart(..) => {
                let flow = self.text.get(start) == Some(&'[');
                let mut items = Vec::new();
                let end = loop {
                    let (event, span) = parser.next_event()?.ok()?;
                    if matches!(event, Event::SequenceEnd) {
                        break span.end.index();
                    }
                    items.push(self.value(parser, &event, span)?);
                };
                let end = if flow { end } else { items.last().map_or(start, |item| item.at.end) };
                Some(Place { at: Stretch { start, end }, kind: Kind::List { items, flow } })
            }
            Event::MappingStart(..) => {
                let flow = self.text.get(start) == Some(&'{');
                let mut entries: Vec<Entry> = Vec::new();
                let end = loop {
                    let (event, span) = parser.next_event()?.ok()?;
                    if matches!(event, Event::MappingEnd) {
                        break span.end.index();
                    }
                    let Event::Scalar(name, ..) = &event else { return None };
                    let name = name.to_string();
                    let key = Stretch { start: span.start.index(), end: span.end.index() };
                    let (event, span) = parser.next_event()?.ok()?;
                    let mut value = self.value(parser, &event, span)?;
                    match value.kind {
                        Kind::Nothing => {
                            let after = self.after_colon(key.end)?;
                            value.at = Stretch { start: after, end: after };
                        }
                        Kind::Block => value.at.start = self.after_colon(key.end)?,
                        _ => {}
                    }
                    entries.push(Entry { name, key, value });
                };
                let end = if flow { end } else { entries.last().map_or(start, |entry| entry.value.at.end) };
                let start = if flow { start } else { entries.first().map_or(start, |entry| entry.key.start) };
                Some(Place { at: Stretch { start, end }, kind: Kind::Map { entries, flow } })
            }
            _ => None,
        }
    }

    /// The end of a stretch without the white space behind its last character.
    fn trimmed(&self, start: usize, end: usize) -> usize {
        let mut end = end.min(self.text.len());
        while end > start && self.text.get(end - 1).is_some_and(|c| c.is_whitespace()) {
            end -= 1;
        }
        end
    }

    /// The place behind the colon that follows a key.
    fn after_colon(&self, from: usize) -> Option<usize> {
        let rest = self.text.get(from..)?;
        let blanks = rest.iter().take_while(|c| **c == ' ' || **c == '\t').count();
        (rest.get(blanks) == Some(&':')).then_some(from + blanks + 1)
    }
}
