//! How `.env` lines are read, and that no value leaks.

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn pairs(text: &str) -> Vec<(String, String)> {
    EnvFile::parse(text).iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn one(text: &str) -> String {
    let file = EnvFile::parse(text);
    let value = file.get("A").unwrap_or_else(|| panic!("{text:?}: {:?}", file.warnings()));
    value.to_owned()
}

#[test]
fn values_are_read_in_all_their_notations() {
    for (text, expected) in [
        ("A=b", "b"),
        ("export A=b\r\n", "b"),
        ("  A = b c  # note", "b c"),
        ("A=b#c", "b#c"),
        ("A=\"b # c\" # note", "b # c"),
        ("A='b \"c\" \\n'", "b \"c\" \\n"),
        (r#"A="x\\y\"z\$\n""#, "x\\y\"z$\n"),
        ("A=a=b==", "a=b=="),
        ("\u{feff}A=b", "b"),
        ("A=\"-----BEGIN\nline\n-----END\"\nB=c", "-----BEGIN\nline\n-----END"),
        ("A=it's", "it's"),
    ] {
        assert_eq!(one(text), expected, "{text:?}");
    }
}

#[test]
fn comments_blank_lines_and_empty_values_set_nothing() {
    assert_eq!(pairs("# A=1\n\n   \nB=\nC=''\n#\n"), []);
}

#[test]
fn a_bad_line_is_skipped_and_named_without_its_content() {
    let text = "GOOD=1\nsk-secret-line\n1BAD=sk-x\nOPEN=\"sk-y\nAFTER=2\nT='a' sk-z\n";
    let file = EnvFile::parse(text);
    assert_eq!(pairs(text), [("GOOD".into(), "1".into()), ("AFTER".into(), "2".into())]);
    let lines: Vec<u32> = file.warnings().iter().filter_map(|warning| warning.origin.line()).collect();
    assert_eq!(lines, [2, 3, 4, 6]);
    for warning in file.warnings() {
        assert!(!warning.to_string().contains("sk-"), "{warning}");
    }
}

#[test]
fn a_forgotten_quote_swallows_no_other_name() {
    assert_eq!(pairs("A=\"sk-1\nB=\"x\"\nC=y\n"), [("B".into(), "x".into()), ("C".into(), "y".into())]);
}

#[test]
fn lines_are_counted_through_a_value_of_many_lines() {
    let file = EnvFile::parse("A='1\n2\n3'\nB=x\nB=y\n");
    assert_eq!((file.line("A"), file.line("B"), file.get("B")), (Some(1), Some(5), Some("y")));
    assert!(file.warnings()[0].message.contains("wins over line 4"), "{:?}", file.warnings());
}

#[test]
fn placeholders_and_damaged_keys_are_not_taken_for_secrets() {
    let file = EnvFile::parse("A_API_KEY=***\nB_API_KEY=sk–1\nC_PASSWORD=pässword\n");
    assert_eq!(pairs("A_API_KEY=***\nB_API_KEY=sk–1\nC_PASSWORD=pässword\n").len(), 1);
    assert!(file.warnings()[1].message.contains("position 3"), "{:?}", file.warnings());
}

#[test]
fn a_pem_key_keeps_its_lines() {
    let file = EnvFile::parse("APP_PRIVATE_KEY=\"-----BEGIN KEY-----\nMII\n-----END KEY-----\n\"\n");
    assert_eq!(file.get("APP_PRIVATE_KEY"), Some("-----BEGIN KEY-----\nMII\n-----END KEY-----\n"));
    assert!(file.warnings().is_empty(), "{:?}", file.warnings());
}

#[test]
fn debug_prints_names_only() {
    let printed = format!("{:?}", EnvFile::parse("OPENAI_API_KEY=sk-hidden"));
    assert!(printed.contains("OPENAI_API_KEY") && !printed.contains("sk-hidden"), "{printed}");
}

#[test]
fn a_missing_file_is_empty_and_a_shared_one_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".env");
    let missing = EnvFile::load(&path).unwrap();
    assert!(missing.is_empty() && missing.warnings().is_empty());

    fs::write(&path, "A=b\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let shared = EnvFile::load(&path).unwrap();
    assert_eq!(shared.get("A"), Some("b"));
    assert!(shared.warnings()[0].message.contains("mode 640"), "{:?}", shared.warnings());

    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(EnvFile::load(&path).unwrap().warnings().is_empty());
    fs::write(&path, b"A=b\nB=\xff\n").unwrap();
    assert!(matches!(EnvFile::load(&path), Err(EnvFileError::NotText { line: 2, .. })));
    assert!(matches!(EnvFile::load(folder.path()), Err(EnvFileError::Unreadable { .. })));
}

proptest! {
    #[test]
    fn any_text_in_double_quotes_reads_back(value in "[^\0\r]{1,40}") {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        let file = EnvFile::parse(&format!("A=\"{escaped}\"\nB=next\n"));
        if value != MASK {
            prop_assert_eq!(file.get("A"), Some(value.as_str()));
        }
        prop_assert_eq!(file.get("B"), Some("next"));
    }

    #[test]
    fn no_text_makes_the_reader_panic_or_loop(text in "[A-Z='\"# \\\\\né]{0,60}") {
        let _ = EnvFile::parse(&text);
    }
}
