//! Fits one scalar to what the schema accepts, bending only what is plainly meant.

use serde_json::{Number, Value};

use super::View;
use crate::tree::{Node, Tree};
use crate::yaml::number;

/// How far a value may be bent to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bend {
    /// Not at all: used to choose among alternatives first.
    No,
    /// Words for booleans, numbers for text, text for numbers.
    Yes,
}

/// Why a scalar does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misfit {
    Type,
    Range,
    /// Not among the accepted words.
    Word,
}

/// Fits the scalar in `node` to one of the types that the view names.
pub(super) fn fit(node: &mut Node, view: &View<'_>, bend: Bend) -> Result<(), Misfit> {
    let Tree::Scalar(value) = &node.tree else {
        return Err(Misfit::Type);
    };
    if let Some(choices) = view.choices() {
        let fitted = choose(value, node.written.as_deref(), &choices, bend)?;
        node.tree = Tree::Scalar(fitted);
        return Ok(());
    }
    let types = view.types();
    let exact = types.iter().find_map(|name| as_type(value, None, name, Bend::No));
    let fitted = match (exact, bend) {
        (Some(exact), _) => Some(exact),
        (None, Bend::Yes) => {
            types.iter().find_map(|name| as_type(value, node.written.as_deref(), name, bend))
        }
        (None, Bend::No) => None,
    };
    let fitted = fitted.ok_or(Misfit::Type)?;
    if !in_range(&fitted, view) {
        return Err(Misfit::Range);
    }
    node.tree = Tree::Scalar(fitted);
    Ok(())
}

fn as_type(value: &Value, written: Option<&str>, name: &str, bend: Bend) -> Option<Value> {
    let exact = match name {
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        _ => false,
    };
    if exact {
        return Some(value.clone());
    }
    if bend == Bend::No {
        return None;
    }
    match (name, value) {
        ("boolean", Value::String(word)) => truth(word).map(Value::Bool),
        ("integer", Value::String(text)) => integral(&number(text.trim())?).map(Value::Number),
        ("integer", Value::Number(found)) => integral(found).map(Value::Number),
        ("number", Value::String(text)) => number(text.trim()).map(Value::Number),
        // `api_key: 0123` and `default: 3.10` mean the text that is written.
        ("string", Value::Number(found)) => {
            Some(written.map_or_else(|| found.to_string(), ToOwned::to_owned).into())
        }
        _ => None,
    }
}

/// The words for booleans in YAML 1.1 and 1.2 (spec 80 §8.3).
fn truth(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Some(true),
        "false" | "off" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// `90.0` is a whole number; `90.5` is none.
fn integral(found: &Number) -> Option<Number> {
    /// Up to here every whole number has an exact double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if found.is_i64() || found.is_u64() {
        return Some(found.clone());
    }
    let float = found.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)?;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within the range of exact doubles")]
    let whole = float as i64;
    Some(whole.into())
}

fn choose(value: &Value, written: Option<&str>, choices: &[&Value], bend: Bend) -> Result<Value, Misfit> {
    if let Some(same) = choices.iter().find(|choice| **choice == value) {
        return Ok((*same).clone());
    }
    if bend == Bend::No {
        return Err(Misfit::Word);
    }
    let word = match value {
        // A file written by a YAML 1.1 library holds `false` where its owner typed `off`.
        Value::Bool(truth) => {
            let words: &[&str] = if *truth { &["on", "yes"] } else { &["off", "no"] };
            let same =
                choices.iter().find(|choice| choice.as_str().is_some_and(|choice| words.contains(&choice)));
            return same.map(|same| (*same).clone()).ok_or(Misfit::Word);
        }
        Value::String(text) => text.trim(),
        Value::Number(_) => written.unwrap_or_default(),
        _ => return Err(Misfit::Type),
    };
    let same_letters = |choice: &&&Value| match choice {
        Value::String(choice) => choice.eq_ignore_ascii_case(word),
        other => other.to_string() == word,
    };
    choices.iter().find(same_letters).map(|same| (*same).clone()).ok_or(Misfit::Word)
}

/// Lowest and highest whole number that is accepted, by the bounds and by the width of the Rust type.
pub(super) fn integer_bounds(view: &View<'_>) -> (Option<i128>, Option<i128>) {
    let (format_min, format_max): (Option<i128>, Option<i128>) = match view.text("format") {
        Some("uint8") => (Some(0), Some(u8::MAX.into())),
        Some("uint16") => (Some(0), Some(u16::MAX.into())),
        Some("uint32") => (Some(0), Some(u32::MAX.into())),
        Some("uint" | "uint64" | "uint128") => (Some(0), Some(u64::MAX.into())),
        Some("int8") => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        Some("int16") => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        Some("int32") => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        Some("int" | "int64" | "int128") => (Some(i64::MIN.into()), Some(i64::MAX.into())),
        _ => (None, None),
    };
    let whole = |name: &str| {
        let bound = view.number(name)?;
        bound
            .as_i64()
            .map(i128::from)
            .or(bound.as_u64().map(i128::from))
            .or_else(|| integral(bound).and_then(|bound| bound.as_i64()).map(i128::from))
    };
    let min = [whole("minimum"), whole("exclusiveMinimum").map(|bound| bound + 1), format_min];
    let max = [whole("maximum"), whole("exclusiveMaximum").map(|bound| bound - 1), format_max];
    // The widest type's end tells a reader nothing.
    let max = max.into_iter().flatten().min().filter(|bound| *bound < i64::MAX.into());
    let min = min.into_iter().flatten().max().filter(|bound| *bound > i64::MIN.into());
    (min, max)
}

fn in_range(value: &Value, view: &View<'_>) -> bool {
    match value {
        Value::Number(found) if found.is_i64() || found.is_u64() => {
            let Some(found) = found.as_i64().map(i128::from).or(found.as_u64().map(i128::from)) else {
                return false;
            };
            let (min, max) = integer_bounds(view);
            let signed = matches!(view.text("format"), Some("int" | "int64"));
            min.is_none_or(|min| found >= min)
                && max.is_none_or(|max| found <= max)
                && !(signed && found > i64::MAX.into())
        }
        Value::Number(found) => {
            let bound = |name| view.number(name).and_then(Number::as_f64);
            let Some(found) = found.as_f64() else {
                return false;
            };
            bound("minimum").is_none_or(|min| found >= min)
                && bound("maximum").is_none_or(|max| found <= max)
                && bound("exclusiveMinimum").is_none_or(|min| found > min)
                && bound("exclusiveMaximum").is_none_or(|max| found < max)
        }
        Value::String(text) => has_length(text.chars().count(), view, ["minLength", "maxLength"]),
        _ => true,
    }
}

/// Whether a count of characters or items is between the two bounds.
pub(super) fn has_length(count: usize, view: &View<'_>, [min, max]: [&str; 2]) -> bool {
    let bound = |name| view.number(name).and_then(Number::as_u64);
    let count = count as u64;
    bound(min).is_none_or(|min| count >= min) && bound(max).is_none_or(|max| count <= max)
}
