//! The one place that writes to the terminal or to a pipe.
//!
//! What comes from a model, a tool or a file is not trusted: on a terminal its control characters are
//! shown, not obeyed. To a pipe or a file it goes as it is.

mod clean;
mod feed;
mod report;
mod table;
mod time;
mod turn_view;

use std::borrow::Cow;
use std::io::{self, Write};

#[cfg(test)]
pub(crate) use clean::width;
pub(crate) use clean::{exposed, wrapped};
pub(crate) use report::Report;
pub(crate) use table::{Column, render as render_table};
pub(crate) use time::{ago, duration};
pub(crate) use turn_view::{SessionIntro, TurnView};

use crate::failure::Failure;
use crate::surroundings::Surroundings;

/// Fewest columns that lines are fitted to; below that they wrap.
const MIN_COLUMNS: usize = 20;

/// Where output goes, and what may be sent there.
pub(crate) struct Output {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    style: Style,
}

/// What the two streams can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Style {
    pub(crate) out_is_terminal: bool,
    pub(crate) err_is_terminal: bool,
    pub(crate) colour: bool,
    /// Columns of the terminal that stdout goes to.
    pub(crate) columns: Option<usize>,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("style", &self.style).finish_non_exhaustive()
    }
}

impl Output {
    /// The process's own stdout and stderr.
    pub(crate) fn of_process(around: &Surroundings, no_color: bool) -> Self {
        let style = Style {
            out_is_terminal: around.stdout_is_terminal,
            err_is_terminal: around.stderr_is_terminal,
            colour: around.stdout_is_terminal && around.allows_colour() && !no_color,
            columns: around.columns.map(|columns| usize::from(columns).max(MIN_COLUMNS)),
        };
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()), style)
    }

    pub(crate) fn new(out: Box<dyn Write>, err: Box<dyn Write>, style: Style) -> Self {
        Self { out, err, style }
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// Writes text to stdout as it comes, and at once.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        let shown = self.for_out(text);
        self.out.write_all(shown.as_bytes())?;
        self.out.flush()
    }

    /// Writes one line (or several) to stdout.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        let shown = self.for_out(line);
        self.out.write_all(shown.as_bytes())?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    /// [`Output::line`], dimmed where colours are allowed.
    pub(crate) fn dim_line(&mut self, line: &str) -> io::Result<()> {
        self.painted_line(line, "2")
    }

    /// A line in a style of ECMA-48 (`2` dim, `31` red, `32` green).
    pub(crate) fn painted_line(&mut self, line: &str, style: &str) -> io::Result<()> {
        if !self.style.colour {
            return self.line(line);
        }
        let shown = self.for_out(line);
        writeln!(self.out, "\x1b[{style}m{shown}\x1b[0m")?;
        self.out.flush()
    }

    /// A line for the user on stderr. What cannot be written there is lost: there is no better place.
    pub(crate) fn note(&mut self, line: &str) {
        let shown = if self.style.err_is_terminal { clean::visible(line) } else { Cow::Borrowed(line) };
        let _ = writeln!(self.err, "{shown}");
    }

    /// Tells a failure: the line, what was found, and what to do.
    pub(crate) fn failure(&mut self, program: &str, failure: &Failure) {
        self.note(&format!("{program}: {}", failure.message));
        for line in &failure.details {
            self.note(&format!("  {line}"));
        }
        if let Some(hint) = &failure.hint {
            self.note(&format!("hint: {hint}"));
        }
    }

    fn for_out<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.style.out_is_terminal { clean::visible(text) } else { Cow::Borrowed(text) }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! An output that tests can read.

    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[derive(Debug, Clone, Default)]
    pub(crate) struct Captured(Rc<RefCell<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Captured {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.borrow().clone()).unwrap()
        }
    }

    /// An output with this style, and what goes to its stdout and stderr.
    pub(crate) fn captured(style: Style) -> (Output, Captured, Captured) {
        let (out, err) = (Captured::default(), Captured::default());
        (Output::new(Box::new(out.clone()), Box::new(err.clone()), style), out, err)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::captured;
    use super::*;

    const TERMINAL: Style =
        Style { out_is_terminal: true, err_is_terminal: true, colour: true, columns: Some(80) };

    #[test]
    fn control_characters_are_shown_on_a_terminal_and_passed_to_a_pipe() {
        let hostile = "\x1b]0;owned\x07 ok";
        let (mut output, out, err) = captured(TERMINAL);
        output.text(hostile).unwrap();
        output.note(hostile);
        assert_eq!(out.text(), "␛]0;owned␇ ok");
        assert_eq!(err.text(), "␛]0;owned␇ ok\n");

        let (mut output, out, _) = captured(Style::default());
        output.text(hostile).unwrap();
        assert_eq!(out.text(), hostile);
    }

    #[test]
    fn colours_go_only_where_they_are_allowed() {
        let (mut output, out, _) = captured(TERMINAL);
        output.dim_line("x").unwrap();
        assert_eq!(out.text(), "\x1b[2mx\x1b[0m\n");
        let (mut output, out, _) = captured(Style { colour: false, ..TERMINAL });
        output.dim_line("x").unwrap();
        assert_eq!(out.text(), "x\n");
    }

    #[test]
    fn a_failure_tells_what_was_found_and_what_to_do() {
        let failure =
            Failure { details: vec!["line".into()], ..Failure::general("it broke") }.hint("mend it");
        let (mut output, _, err) = captured(Style::default());
        output.failure("hermes", &failure);
        assert_eq!(err.text(), "hermes: it broke\n  line\nhint: mend it\n");
    }
}
