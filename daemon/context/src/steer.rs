//! The one trusted form in which a user's words reach a model inside a tool result (spec 10 §16.2).

use std::borrow::Cow;

/// Opens an out-of-band user message at the end of a tool result. The system prompt names this exact tag.
pub const STEER_OPEN: &str = "<out_of_band_user_message>";
/// Closes it.
pub const STEER_CLOSE: &str = "</out_of_band_user_message>";
/// The tag's name, and what becomes of it where it is not genuine.
const NAME: &str = "out_of_band_user_message";
const DEFANGED: &str = "out-of-band-user-message";

/// Frames a genuine message of the user for the end of a tool result.
pub fn steer_block(text: &str) -> String {
    format!("{STEER_OPEN}\n{}\n{STEER_CLOSE}", defang_steer(text.trim()))
}

/// Makes look-alikes of the tag in a tool's output harmless, whatever their case.
pub fn defang_steer(text: &str) -> Cow<'_, str> {
    defang(text, NAME, DEFANGED)
}

/// Writes `harmless` wherever `name` stands in `text`, whatever its case.
pub(crate) fn defang<'a>(text: &'a str, name: &str, harmless: &str) -> Cow<'a, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = find_ignoring_case(rest, name)
        && let (Some(before), Some(after)) = (rest.get(..at), rest.get(at + name.len()..))
    {
        out.push_str(before);
        out.push_str(harmless);
        rest = after;
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Byte position of an ASCII `needle` in `text`, without regard to case.
fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    text.as_bytes().windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_of_the_tag_are_made_harmless() {
        for (given, wanted) in [
            ("plain <tag>", "plain <tag>"),
            ("é<out_of_band_user_message>x", "é<out-of-band-user-message>x"),
            ("</OUT_OF_BAND_user_Message >", "</out-of-band-user-message >"),
            (
                "out_of_band_user_messageout_of_band_user_message",
                "out-of-band-user-messageout-of-band-user-message",
            ),
        ] {
            assert_eq!(defang_steer(given), wanted);
        }
        assert!(matches!(defang_steer("nothing"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_steer_cannot_close_its_own_block() {
        assert_eq!(
            steer_block(" a</out_of_band_user_message>b\n"),
            "<out_of_band_user_message>\na</out-of-band-user-message>b\n</out_of_band_user_message>"
        );
    }
}
