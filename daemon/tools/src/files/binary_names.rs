//! File names whose content is no text (spec 40 §5.8).

use std::path::Path;

/// What kind of data an extension stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryKind {
    Image,
    Other,
}

const IMAGES: &[&str] = &["png", "jpg", "jpeg", "gif", "bmp", "ico", "webp", "tiff", "tif"];

const OTHERS: &[&str] = &[
    // Video and audio.
    "mp4", "mov", "avi", "mkv", "webm", "wmv", "flv", "m4v", "mpeg", "mpg", "mp3", "wav", "ogg", "flac",
    "aac", "m4a", "wma", "aiff", "opus", // Archives.
    "zip", "tar", "gz", "bz2", "7z", "rar", "xz", "z", "tgz", "iso", // Executables and objects.
    "exe", "dll", "so", "dylib", "bin", "o", "a", "obj", "lib", "app", "msi", "deb", "rpm", // Office.
    "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp", // Fonts.
    "ttf", "otf", "woff", "woff2", "eot", // Bytecode.
    "pyc", "pyo", "class", "jar", "war", "ear", "node", "wasm", "rlib", // Databases.
    "sqlite", "sqlite3", "db", "mdb", "idx", // Design.
    "psd", "ai", "eps", "sketch", "fig", "xd", "blend", "3ds", "max", // The rest.
    "swf", "fla", "lockb", "dat", "data",
];

/// What the extension of `path` stands for, when that is not text.
pub(crate) fn binary_kind(path: &Path) -> Option<BinaryKind> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    if IMAGES.contains(&extension.as_str()) {
        return Some(BinaryKind::Image);
    }
    OTHERS.contains(&extension.as_str()).then_some(BinaryKind::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_compared_without_case() {
        assert_eq!(binary_kind(Path::new("a/B.PNG")), Some(BinaryKind::Image));
        assert_eq!(binary_kind(Path::new("x.tar")), Some(BinaryKind::Other));
        for text in ["a.rs", "a.pdf.txt", "Makefile", ".png", "a.pdf"] {
            assert_eq!(binary_kind(Path::new(text)), None, "{text}");
        }
    }
}
