//! What the shell's own commands change in what is known.

use super::places::absolute;
use super::scope::{Scope, UNKNOWN, Variable};
use super::simple::Simple;
use super::walk::Walker;

/// Applies one command to the scope. Only commands that the shell itself runs count.
pub(super) fn apply(walker: &mut Walker<'_>, simple: &Simple, scope: &mut Scope) {
    let by_shell =
        simple.via.last().is_none_or(|outer| matches!(outer.as_str(), "builtin" | "command" | "eval"));
    if !by_shell {
        return;
    }
    match simple.program.as_str() {
        "cd" | "pushd" => {
            let target = simple.args.iter().find(|arg| !arg.text.starts_with('-') || arg.text == "-");
            scope.cwd = match target {
                None if simple.program == "cd" => Some(walker.home()),
                Some(arg) if arg.is_certain() && arg.text != "-" => absolute(&arg.text, scope.cwd.as_deref()),
                _ => None,
            };
        }
        "popd" => scope.cwd = None,
        "read" | "mapfile" | "readarray" | "getopts" | "let" | "wait" => {
            forget(
                scope,
                simple.args.iter().filter(|arg| !arg.text.starts_with('-')).map(|arg| arg.text.as_str()),
            );
            forget(scope, ["REPLY", "MAPFILE"]);
        }
        "printf" => {
            let mut args = simple.args.iter();
            if args.next().is_some_and(|arg| arg.text == "-v") {
                forget(scope, args.next().map(|arg| arg.text.as_str()));
            }
        }
        "declare" | "typeset" | "local" | "export" | "readonly" => {
            let options: String = simple
                .args
                .iter()
                .filter_map(|arg| arg.text.strip_prefix('-'))
                .flat_map(str::chars)
                .collect();
            if simple.program == "export" || options.contains('x') {
                let value = |name: &str| match scope.get(name) {
                    Some(Variable::One(value)) => value.clone(),
                    _ => String::new(),
                };
                let plain =
                    simple.args.iter().map(|arg| arg.text.as_str()).filter(|text| !text.starts_with('-'));
                let named = plain.map(|text| match text.split_once('=') {
                    Some(_) => text.to_owned(),
                    None => format!("{text}={}", value(text)),
                });
                let set = simple.assigns.iter().map(|(name, value)| format!("{name}={}", value.text));
                let exported: Vec<String> = named.chain(set).collect();
                scope.exported.extend(exported);
            }
            // What is quoted or computed is an assignment all the same.
            for arg in simple.args.iter().filter(|arg| !arg.text.starts_with('-')) {
                if let Some((name, value)) = arg.text.split_once('=') {
                    let value = if arg.unsure { UNKNOWN.to_string() } else { value.to_owned() };
                    scope.set(name.trim_end_matches('+'), Variable::One(value));
                }
            }
            if simple.is(&["declare", "typeset", "local"]) && !options.contains('g') {
                let names =
                    simple.args.iter().map(|arg| arg.text.as_str()).filter(|text| !text.starts_with('-'));
                let names = names.map(|text| text.split_once('=').map_or(text, |(name, _)| name).to_owned());
                scope.locals.extend(names.chain(simple.assigns.iter().map(|(name, _)| name.clone())));
            }
            // `-n` names another variable, `-l`, `-u` and `-i` change what is assigned: neither is followed.
            if simple.program != "export" && options.contains(['n', 'l', 'u', 'c', 'i']) {
                let names =
                    simple.args.iter().map(|arg| arg.text.as_str()).filter(|text| !text.starts_with('-'));
                let names = names.map(|text| text.split_once('=').map_or(text, |(name, _)| name));
                for name in names.chain(simple.assigns.iter().map(|(name, _)| name.as_str())) {
                    scope.make_odd(name);
                }
            }
        }
        "unset" => {
            for arg in &simple.args {
                scope.functions.remove(&arg.text);
                scope.set(&arg.text, Variable::One(UNKNOWN.to_string()));
            }
        }
        "set" => {
            let mut args = simple.args.iter();
            if args.any(|arg| arg.text == "--") {
                let rest: Vec<_> = args.collect();
                scope.positional = (!rest.iter().any(|arg| arg.splits))
                    .then(|| rest.into_iter().map(|arg| arg.text.clone()).collect());
            } else if simple.args.iter().any(|arg| !arg.text.starts_with(['-', '+'])) {
                let plain = !simple.args.iter().any(|arg| arg.splits || arg.text.starts_with(['-', '+']));
                scope.positional = plain.then(|| simple.args.iter().map(|arg| arg.text.clone()).collect());
            }
        }
        "shift" => {
            if let Some(positional) = scope.positional.as_mut()
                && simple.args.is_empty()
                && !positional.is_empty()
            {
                positional.remove(0);
            } else {
                scope.positional = None;
            }
        }
        "alias" => {
            for arg in &simple.args {
                if let Some((name, value)) = arg.text.split_once('=') {
                    scope.aliases.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        "unalias" => scope.aliases.clear(),
        _ => {}
    }
}

fn forget<'a>(scope: &mut Scope, names: impl IntoIterator<Item = &'a str>) {
    for name in names {
        scope.set(name, Variable::One(UNKNOWN.to_string()));
    }
}
