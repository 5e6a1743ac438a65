//! The shell texts around a command: how a session's snapshot is made, how a command enters it, and how it
//! leaves (spec 40 §7.1).
//!
//! Three small files stand in the session's private folder. `leave` prints the marker with the working
//! directory and writes a new snapshot; `enter` loads the snapshot and goes to the directory; the command's
//! own text stands in a third file. So neither quoting nor the length of an argument can hurt the command,
//! and no process list shows it (`pkill -f` would otherwise find the shell that runs it).
//!
//! Everything but the command itself stands on one line of the launched text and behind `builtin`, so that
//! line numbers in messages are the command's own, and aliases and functions of the user cannot get between.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::marker::Marker;
use super::shell::Dialect;

/// The last line of a complete snapshot.
pub(super) const END: &[u8] = b"#hermes-snapshot-end\n";

/// Variables that belong to one shell, not to the session.
const NEVER_KEPT: [&str; 3] = ["SHLVL", "_", super::group::RUN_MARK];

/// Beginnings and endings of generated credential names (spec 40 §10.2): never in a snapshot.
const GENERATED_BEGINNINGS: [&str; 2] = ["AUXILIARY_", "GATEWAY_RELAY_"];

/// Quotes bytes for a shell: nothing in them has a meaning.
pub(super) fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(bytes.len() + 2);
    quoted.push(b'\'');
    for &byte in bytes {
        if byte == b'\'' {
            quoted.extend_from_slice(br"'\''");
        } else {
            quoted.push(byte);
        }
    }
    quoted.push(b'\'');
    quoted
}

/// A text under construction; paths and values go in as bytes.
#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    fn add(mut self, text: &str) -> Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn quoted(mut self, value: &OsStr) -> Self {
        self.0.extend_from_slice(&quote(value.as_bytes()));
        self
    }

    fn path(self, path: &Path) -> Self {
        self.quoted(path.as_os_str())
    }
}

/// Whether a variable can be exported by name; others reach the shell, but do not persist.
pub(super) fn is_identifier(name: &OsStr) -> bool {
    let mut bytes = name.as_bytes().iter();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The text of `leave`: called with the command's status and the file for the new snapshot.
///
/// `hidden` are names that a snapshot must not hold. The marker comes first, so that a shell which dies
/// while it writes has still told where it is.
pub(super) fn leave(dialect: Dialect, marker: &Marker, hidden: &[String]) -> Vec<u8> {
    let names: Vec<&str> = NEVER_KEPT
        .into_iter()
        .chain(hidden.iter().map(String::as_str).filter(|name| is_identifier(OsStr::new(name))))
        .collect();
    let (names, id) = (names.join(" "), marker.id());
    let end = String::from_utf8_lossy(END);
    let text = match dialect {
        Dialect::Bash => {
            let generated = GENERATED_BEGINNINGS.map(|beginning| format!("${{!{beginning}@}}")).join(" ");
            format!(
                r#"builtin trap - DEBUG ERR RETURN
if [[ -z ${{__hermes_left-}} ]]; then
__hermes_left=1
builtin set +euxv
builtin printf '\036{id}:%s:{id}\036' "$PWD"
(
IFS=$' \t\n'
builtin umask 077
builtin export -n {names}
for __hermes_name in {generated}; do
case $__hermes_name in *_KEY|*_SECRET|*_TOKEN|*_BASE_URL) builtin export -n "$__hermes_name";; esac
done
{{
builtin printf 'builtin shopt -s expand_aliases extglob\nbuiltin set +eu\n'
builtin export -p
while builtin read -r __hermes_word __hermes_flags __hermes_name; do
case $__hermes_name in _[!_]*) builtin continue;; esac
builtin declare -f "$__hermes_name"
case $__hermes_flags in *x*) builtin printf 'builtin declare -fx %q\n' "$__hermes_name";; esac
done < <(builtin declare -F)
builtin shopt -p extglob
builtin alias -p
builtin printf '%s' '{end}'
}} >| "$2"
)
fi
builtin return "$1"
"#
            )
        }
        Dialect::Posix => format!(
            r#"if [ -z "${{__hermes_left-}}" ]; then
__hermes_left=1
set +euxv
printf '\036{id}:%s:{id}\036' "$PWD"
(
umask 077
for __hermes_name in {names}; do command unset -v "$__hermes_name"; done
{{
export -p
alias | while IFS= read -r __hermes_line; do printf 'alias %s\n' "${{__hermes_line#alias }}"; done
printf '%s' '{end}'
}} >| "$__hermes_dump"
)
fi
return "$__hermes_status"
"#
        ),
    };
    text.into_bytes()
}

/// What a command needs on its way in.
pub(super) struct Enter<'a> {
    pub(super) snapshot: &'a Path,
    pub(super) leave: &'a Path,
    /// Where the shell writes the next snapshot.
    pub(super) dump: &'a Path,
    pub(super) cwd: &'a Path,
    /// Variables that are new or changed since the snapshot; names are identifiers.
    pub(super) exports: Vec<(&'a OsStr, &'a OsStr)>,
    /// Variables that are no longer given.
    pub(super) removed: Vec<&'a OsStr>,
}

/// Loads the snapshot and brings the variables up to date.
fn load(dialect: Dialect, input: &Enter<'_>) -> Text {
    let builtin = builtin(dialect);
    let mut text = Text::default().add(builtin).add(". ").path(input.snapshot).add(" 2>/dev/null\n");
    if dialect == Dialect::Bash {
        text = text.add("builtin shopt -s expand_aliases\n");
    }
    for name in &input.removed {
        text = text.add(builtin).add("unset -v ").quoted(name).add("\n");
    }
    for (name, value) in &input.exports {
        text = text.add(builtin).add("export ");
        text.0.extend_from_slice(name.as_bytes());
        text = text.add("=").quoted(value).add("\n");
    }
    text
}

/// The text of `enter`.
pub(super) fn enter(dialect: Dialect, input: &Enter<'_>) -> Vec<u8> {
    let builtin = builtin(dialect);
    let text = load(dialect, input);
    let trap = leave_call(dialect, input.leave, input.dump);
    let message = Text::default().add("cannot enter the directory ").0;
    let message = [message, input.cwd.as_os_str().as_bytes().to_vec()].concat();
    text.add(builtin)
        .add("trap ")
        .quoted(OsStr::from_bytes(&trap))
        .add(" EXIT\n__hermes_old=${OLDPWD-}\n")
        // `cd` is no special builtin: `command` keeps a function of that name out.
        .add(if dialect == Dialect::Bash { "builtin cd -- " } else { "command cd -- " })
        .path(input.cwd)
        .add(" 2>/dev/null || { ")
        .add(builtin)
        .add("trap - EXIT; printf '%s\\n' ")
        .quoted(OsStr::from_bytes(&message))
        .add(" >&2; ")
        .add(builtin)
        .add("exit 126; }\n")
        // `cd -` goes to where the session was before, not to where this shell started.
        .add("if [ -n \"$__hermes_old\" ]; then export OLDPWD=\"$__hermes_old\"\n")
        .add("else unset -v OLDPWD; export OLDPWD; fi\n")
        .add("unset -v __hermes_old\n")
        .0
}

/// The text of `enter` for a command that leaves nothing to the session: a background process.
pub(super) fn enter_only(dialect: Dialect, input: &Enter<'_>) -> Vec<u8> {
    let text = load(dialect, input);
    let message = [b"cannot enter the directory ".as_slice(), input.cwd.as_os_str().as_bytes()].concat();
    text.add(if dialect == Dialect::Bash { "builtin cd -- " } else { "command cd -- " })
        .path(input.cwd)
        .add(" 2>/dev/null || { printf '%s\\n' ")
        .quoted(OsStr::from_bytes(&message))
        .add(" >&2; ")
        .add(builtin(dialect))
        .add("exit 126; }\n")
        .0
}

/// The text that the shell of a background process is started with; `other` is the user's own shell, which then takes
/// over with the exported variables.
pub(super) fn launch_only(dialect: Dialect, enter: &Path, command: &Path, other: Option<&Path>) -> OsString {
    let text = Text::default().add(builtin(dialect)).add(". ").path(enter).add("; ");
    let read = |text: Text| match dialect {
        Dialect::Bash => text.add("\"$(<").path(command).add(")\""),
        Dialect::Posix => text.add("\"$(cat ").path(command).add(")\""),
    };
    let text = match other {
        Some(shell) => read(text.add("exec ").path(shell).add(" -c ")),
        None => read(text.add(builtin(dialect)).add("eval ")),
    };
    OsString::from_vec(text.0)
}

/// The same without files: the command is the first argument.
pub(super) fn launch_only_plain(cwd: &Path) -> OsString {
    let text = Text::default().add("cd -- ").path(cwd).add(" || exit 126; __hermes_command=$1; shift; ");
    OsString::from_vec(text.add("eval \"$__hermes_command\"").0)
}

/// The text that the shell is started with.
///
/// The command runs in a group whose output is redirected to itself by way of descriptor 3: the shell thereby
/// keeps copies of descriptors 1 and 2 that no child inherits, and has them back afterwards even if the
/// command closed or redirected them (`exec >file`). So the marker can never land in a file of the user.
pub(super) fn launch(dialect: Dialect, enter: &Path, command: &Path, leave: &Path, dump: &Path) -> OsString {
    let text = Text::default().add(builtin(dialect)).add(". ").path(enter).add("; { ");
    let text = match dialect {
        Dialect::Bash => text.add("builtin eval \"$(<").path(command).add(")\""),
        Dialect::Posix => text.add("eval \"$(cat ").path(command).add(")\""),
    };
    let text = text.add("; } 3>&1 1>&3 2>&3 3>&-; ");
    OsString::from_vec([text.0, leave_call(dialect, leave, dump)].concat())
}

/// The text for a command that runs without snapshot: the command is the first argument.
pub(super) fn launch_plain(marker: &Marker, cwd: &Path) -> OsString {
    let id = marker.id();
    let text = Text::default().add("cd -- ").path(cwd).add(" || exit 126; ").add(&format!(
        "trap '{{ printf '\\''\\036{id}:%s:{id}\\036'\\'' \"$PWD\"; }} 2>/dev/null' EXIT; \
         __hermes_command=$1; shift; {{ eval \"$__hermes_command\"; }} 3>&1 1>&3 2>&3 3>&-"
    ));
    OsString::from_vec(text.0)
}

/// What the first snapshot is made from.
pub(super) struct Init<'a> {
    pub(super) leave: &'a Path,
    pub(super) dump: &'a Path,
    /// Files of the user to source; each may fail, or even `exit`.
    pub(super) files: &'a [PathBuf],
    /// The variables as given; names are identifiers.
    pub(super) given: Vec<(&'a OsStr, &'a OsStr)>,
}

/// The text that makes the first snapshot.
pub(super) fn init(dialect: Dialect, input: &Init<'_>) -> Vec<u8> {
    let last = [settle(dialect, &input.given), leave_call(dialect, input.leave, input.dump)].concat();
    let mut text = Text::default().add(builtin(dialect)).add("trap ").quoted(OsStr::from_bytes(&last));
    text = text.add(" EXIT\n");
    for file in input.files {
        text = text.add("[ -r ").path(file).add(" ] && ").add(builtin(dialect)).add(". ").path(file);
        text = text.add(" </dev/null >/dev/null 2>&1\n");
    }
    // The files may have set a trap of their own.
    text.0.into_iter().chain(last).chain(*b"\n").collect()
}

/// After the user's files: what was given holds, whatever they set. PATH is joined: system profiles reset it and would
/// lose an active virtual environment, while users' files put folders of their own before or behind it.
fn settle(dialect: Dialect, given: &[(&OsStr, &OsStr)]) -> Vec<u8> {
    let mut text = Text::default().add("__hermes_path=${PATH-}:; __hermes_front=\n");
    for (name, value) in given {
        text = text.add(builtin(dialect)).add("export ");
        text.0.extend_from_slice(name.as_bytes());
        text = text.add("=").quoted(value).add("\n");
    }
    text.add(
        r#"__hermes_given=:${PATH-}:; __hermes_seen=
while [ -n "$__hermes_path" ]; do
__hermes_folder=${__hermes_path%%:*}; __hermes_path=${__hermes_path#*:}
case $__hermes_given in
*":$__hermes_folder:"*) __hermes_seen=1;;
*) case $__hermes_folder in
"") ;;
*) if [ -n "$__hermes_seen" ]; then PATH=$PATH:$__hermes_folder; else __hermes_front=$__hermes_front$__hermes_folder:; fi;;
esac;;
esac
done
PATH=$__hermes_front$PATH
"#,
    )
    .0
}

/// Calls `leave` with the status of what ran before.
fn leave_call(dialect: Dialect, leave: &Path, dump: &Path) -> Vec<u8> {
    let text = match dialect {
        Dialect::Bash => Text::default().add("{ builtin . ").path(leave).add(" \"$?\" ").path(dump),
        Dialect::Posix => {
            Text::default().add("{ __hermes_status=$?; __hermes_dump=").path(dump).add("; . ").path(leave)
        }
    };
    text.add("; } 2>/dev/null").0
}

fn builtin(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Bash => "builtin ",
        Dialect::Posix => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_leaves_nothing_for_the_shell() {
        assert_eq!(quote(b"a b"), b"'a b'");
        assert_eq!(quote(b"it's $x `y`\n"), b"'it'\\''s $x `y`\n'");
        assert_eq!(quote(b""), b"''");
        assert_eq!(quote(b"\xff"), b"'\xff'");
    }

    #[test]
    fn only_identifiers_can_be_exported() {
        for (name, expected) in
            [("A_1", true), ("_x", true), ("1A", false), ("A-B", false), ("", false), ("A;rm", false)]
        {
            assert_eq!(is_identifier(OsStr::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn hidden_names_that_are_no_identifiers_do_not_reach_the_script() {
        let text = leave(Dialect::Bash, &Marker::new(), &["A_KEY".to_owned(), "B; rm -rf /".to_owned()]);
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("A_KEY") && !text.contains("rm -rf"));
    }
}
