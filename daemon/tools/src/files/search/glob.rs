//! Globs for file names, at any depth, with path segments honoured (spec 40 §5.6).

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobMatcher};

/// A glob without `/` is matched against names, one with `/` against paths below the root.
#[derive(Debug)]
pub(crate) struct NameGlob {
    matcher: GlobMatcher,
    by_path: bool,
    plain: bool,
}

impl NameGlob {
    /// Reads a glob. `root` is taken off a glob that begins with it.
    pub(crate) fn new(pattern: &str, root: &Path) -> Result<Self, String> {
        let below = root
            .to_str()
            .and_then(|root| pattern.strip_prefix(root))
            .map_or(pattern, |rest| rest.trim_start_matches('/'));
        let below = below.strip_prefix("./").unwrap_or(below);
        let by_path = below.contains('/');
        let anywhere = match below.strip_prefix('/') {
            // `/x` means directly below the root.
            Some(anchored) => anchored.to_owned(),
            None if by_path && !below.starts_with("**/") => format!("**/{below}"),
            None => below.to_owned(),
        };
        let plain = !below.contains(['*', '?', '[', '{', '/']);
        Ok(Self { matcher: compile(&anywhere, false)?, by_path, plain })
    }

    /// For a plain name that no file has: names that contain it, in any case.
    pub(crate) fn loosened(pattern: &str) -> Result<Self, String> {
        Ok(Self { matcher: compile(&format!("*{pattern}*"), true)?, by_path: false, plain: false })
    }

    /// It is a name, with nothing in it that stands for other characters.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether `path`, which is below `root`, is meant.
    pub(crate) fn matches(&self, path: &Path, root: &Path) -> bool {
        if self.by_path {
            return self.matcher.is_match(path.strip_prefix(root).unwrap_or(path));
        }
        path.file_name().is_some_and(|name| self.matcher.is_match(name))
    }
}

fn compile(pattern: &str, any_case: bool) -> Result<GlobMatcher, String> {
    let glob: Result<Glob, globset::Error> =
        GlobBuilder::new(pattern).literal_separator(true).case_insensitive(any_case).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_anywhere_and_paths_by_their_segments() {
        let root = Path::new("/w");
        for (pattern, path, want) in [
            ("*.rs", "/w/a/b.rs", true),
            ("*.rs", "/w/a/b.rsx", false),
            ("src/*.rs", "/w/x/src/b.rs", true),
            ("src/*.rs", "/w/src/deep/b.rs", false),
            ("src/**/*.rs", "/w/src/deep/b.rs", true),
            ("/src/*.rs", "/w/src/b.rs", true),
            ("/src/*.rs", "/w/x/src/b.rs", false),
            ("/w/src/*.rs", "/w/src/b.rs", true),
            ("./src/*.rs", "/w/src/b.rs", true),
            ("*.{ts,tsx}", "/w/a.tsx", true),
            ("Cargo.toml", "/w/a/Cargo.toml", true),
            ("cargo.toml", "/w/a/Cargo.toml", false),
        ] {
            assert_eq!(
                NameGlob::new(pattern, root).unwrap().matches(Path::new(path), root),
                want,
                "{pattern} {path}"
            );
        }
        assert!(NameGlob::loosened("cargo").unwrap().matches(Path::new("/w/a/Cargo.toml"), root));
        assert!(NameGlob::new("a[", root).is_err());
    }
}
