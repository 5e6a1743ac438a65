//! Parts of a zipped XML document, as a stream of plain events, bounded in size.

use std::fs::File;
use std::io::{BufReader, Read as _};

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use zip::ZipArchive;

/// Unpacked bytes of one part; a part with more is no document but an attack on memory.
const MAX_PART: u64 = 64 * 1024 * 1024;

/// Opens the zip archive.
pub(super) fn archive(file: &File) -> Option<ZipArchive<BufReader<&File>>> {
    ZipArchive::new(BufReader::new(file)).ok()
}

/// What a part holds, without namespaces.
pub(super) enum Node<'a> {
    Open(&'a str, &'a BytesStart<'a>),
    /// Also after an element without content.
    Close(&'a str),
    Text(&'a str),
}

/// Walks a part of the archive in order. `None` when it is not there or no XML. `visit` may end the walk.
pub(super) fn walk(
    archive: &mut ZipArchive<BufReader<&File>>,
    part: &str,
    mut visit: impl FnMut(Node<'_>) -> bool,
) -> Option<()> {
    let entry = archive.by_name(part).ok()?;
    let mut reader = Reader::from_reader(BufReader::new(entry.take(MAX_PART)));
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let go_on = match reader.read_event_into(&mut buffer).ok()? {
            Event::Start(start) => visit(Node::Open(start.local_name().as_ref(), &start)),
            Event::Empty(start) => {
                visit(Node::Open(start.local_name().as_ref(), &start))
                    && visit(Node::Close(start.local_name().as_ref()))
            }
            Event::End(end) => visit(Node::Close(end.local_name().as_ref())),
            Event::Text(text) => visit(Node::Text(&text.xml10_content())),
            Event::CData(text) => visit(Node::Text(&text.xml10_content())),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(c)) => visit(Node::Text(c.encode_utf8(&mut [0; 4]))),
                _ => resolve_predefined_entity(&reference.xml10_content())
                    .is_none_or(|text| visit(Node::Text(text))),
            },
            Event::Eof => return Some(()),
            _ => true,
        };
        if !go_on {
            return Some(());
        }
    }
}

/// An attribute by its name without namespace.
pub(super) fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    start
        .attributes()
        .with_checks(false)
        .filter_map(Result::ok)
        .find(|attribute| attribute.key.local_name().as_ref() == name)
        .map(|attribute| attribute.normalized_value(XmlVersion::Implicit1_0).unwrap_or_default().into_owned())
}
