//! Syntax of Python files, in process.

use std::path::Path;

use tree_sitter::{Node, Parser};

/// Errors that are told; behind the first the parser often loses its way.
const TOLD: usize = 3;

/// A longer file is not checked.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// Syntax errors with their lines; `None` when the file is not Python, or cannot be checked.
pub(super) fn check(path: &Path, text: &str) -> Option<Vec<String>> {
    let extension = path.extension()?.to_str()?;
    if !matches!(extension, "py" | "pyi") || text.len() > MAX_BYTES {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_python::LANGUAGE.into()).ok()?;
    let tree = parser.parse(text, None)?;
    let mut errors = Vec::new();
    let mut open = vec![tree.root_node()];
    while let Some(node) = open.pop() {
        if errors.len() >= TOLD || !node.has_error() && !node.is_missing() {
            continue;
        }
        if node.is_error() || node.is_missing() {
            errors.push(told(node, text));
            continue;
        }
        let mut children: Vec<Node<'_>> = node.children(&mut node.walk()).collect();
        // The first one on top.
        children.reverse();
        open.append(&mut children);
    }
    Some(errors)
}

fn told(node: Node<'_>, text: &str) -> String {
    let line = node.start_position().row + 1;
    if node.is_missing() {
        return format!("line {line}: `{}` is missing", node.kind());
    }
    let found = text.get(node.byte_range()).unwrap_or_default().lines().next().unwrap_or_default().trim();
    let (shown, _) = crate::files::first_chars(found, 60);
    format!("line {line}: invalid syntax near `{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_is_checked() {
        let errors = |text: &str| check(Path::new("a.py"), text).unwrap();
        let good = "import os\n\n\nclass A[T]:\n    async def f(self, x: int = 1, *, y) -> None:\n        match x:\n            case {'a': [1, *_]} if y:\n                print(f\"{x!r:>{y}} {os.sep}\")\n        return (z := 1)\n\n\ntype X = int\nlam = lambda *a, **k: (yield)\n";
        assert_eq!(errors(good), Vec::<String>::new());
        assert_eq!(errors(""), Vec::<String>::new());
        for broken in ["def f(:\n    pass\n", "x = (1, 2\ny = 3\n", "if x\n    y\n", "class\n", "return )\n"]
        {
            assert!(!errors(broken).is_empty(), "{broken}");
        }
        assert!(errors("x = 1\ndef f(:\n    pass\n")[0].starts_with("line 2: "));
        assert_eq!(check(Path::new("a.rs"), "def f(:"), None);
    }
}
