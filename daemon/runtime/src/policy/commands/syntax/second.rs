//! A second reading of the same text, by `tree-sitter-bash`.
//!
//! Two readers that know nothing of each other do not make the same mistake. The grammar leaves gaps (braces as a
//! program, several heredocs, some patterns), and says so by an error; then only our own reading counts.

use std::cell::RefCell;

use tree_sitter::{Parser, TreeCursor};

thread_local! {
    /// Building one costs more than most commands do.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Words that the second reading takes for programs where `time` or `coproc` stands before them.
const RESERVED: [&str; 14] =
    ["for", "while", "until", "if", "case", "select", "{", "}", "do", "done", "fi", "esac", "in", "then"];

/// The first word that begins a command by the second reading and that ours does not know as one.
///
/// `heads` are the sources of the words that begin a command by our reading.
pub(in super::super) fn disagrees(text: &str, heads: &[String]) -> Option<String> {
    PARSER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *slot = Some(parser);
        }
        let tree = slot.as_mut()?.parse(text, None)?;
        if tree.root_node().has_error() {
            return None;
        }
        unknown_head(&mut tree.walk(), text, heads)
    })
}

fn unknown_head(cursor: &mut TreeCursor<'_>, text: &str, heads: &[String]) -> Option<String> {
    loop {
        let node = cursor.node();
        if node.kind() == "command_name" {
            let name = text.get(node.byte_range()).unwrap_or_default().trim();
            if !heads.iter().any(|head| head == name) && !RESERVED.contains(&name) {
                return Some(name.to_owned());
            }
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}
