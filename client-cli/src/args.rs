//! The command line: every flag and command once (spec 80 §2, §3), with its help.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// The personal agent at the command line.
///
/// Without a command it chats. With -z or -q it runs one prompt and ends.
#[derive(Debug, Clone, Parser)]
#[command(name = "hermes-cli", disable_version_flag = true, max_term_width = 110)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: GlobalFlags,
    #[command(flatten)]
    pub(crate) chat: ChatFlags,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that every command takes, anywhere on the line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub(crate) struct GlobalFlags {
    /// Profile for this call
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Use this file instead of the profile's config.yaml (of a turn, only model, provider and
    /// `agent.max_turns` are taken from it: the rest is the daemon's)
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Say more on stderr
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// No colours
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

/// Flags of a chat. They stand before or after the word `chat`; the later one wins.
#[derive(Debug, Clone, PartialEq, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that stands alone on the command line")]
pub(crate) struct ChatFlags {
    /// Print version, build and home, and end
    #[arg(short = 'V', long)]
    pub(crate) version: bool,
    /// Run one prompt and print only the final text (`-`: the prompt is on stdin)
    #[arg(short = 'z', long, value_name = "PROMPT", allow_hyphen_values = true)]
    pub(crate) oneshot: Option<String>,
    /// Run one prompt with a live feed of its tools (`-`: the prompt is on stdin)
    #[arg(short, long, value_name = "PROMPT", allow_hyphen_values = true)]
    pub(crate) query: Option<String>,
    /// Run the prompt in this file (`-`: the prompt is on stdin)
    #[arg(long, value_name = "PATH")]
    pub(crate) query_file: Option<PathBuf>,
    /// With -q: no tool lines, the answer on stdout, the session's id on stderr
    #[arg(short = 'Q', long)]
    pub(crate) quiet: bool,
    /// How to print a single prompt's run [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) output_format: Option<OutputFormat>,
    /// Write a JSON report of the usage to this file, also when the run fails
    #[arg(long, value_name = "PATH")]
    pub(crate) usage_file: Option<PathBuf>,
    /// Model for this run
    #[arg(short, long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// Provider for this run
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) provider: Option<String>,
    /// Toolsets of a new session, separated by commas (`all`: every one; an empty text: none)
    #[arg(short, long, value_name = "A,B")]
    pub(crate) toolsets: Option<String>,
    /// Go on with a session: its id, the beginning of its id, its title, or `latest`
    #[arg(short, long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) resume: Option<String>,
    /// Go on with the most recent session of this surface, or with the one of this title
    #[arg(short, long = "continue", value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub(crate) continue_last: Option<String>,
    /// Model calls that one turn may make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Ask for no approvals in this run's turns (hard blocks still hold)
    #[arg(long)]
    pub(crate) yolo: bool,
    /// End a single prompt's run after so many seconds (exit code 124)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    /// What to do with stdin when it is not a terminal [default: append it to a prompt that was given]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) stdin: Option<StdinMode>,
    /// When resuming: stay in this directory instead of the session's own
    #[arg(long)]
    pub(crate) no_restore_cwd: bool,
    /// Source tag of a new session [default: cli]
    #[arg(long, value_name = "TAG")]
    pub(crate) source: Option<String>,
}

/// How a single prompt's run is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Text,
    /// One object at the end
    Json,
    /// One event a line, the result last
    StreamJson,
}

/// What to do with stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdinMode {
    /// Do not read it
    Ignore,
    /// Read it to its end and append it to the prompt
    Append,
    /// Read it to its end: it is the prompt
    Prompt,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Chat, or run one prompt with -z or -q
    Chat(Box<ChatFlags>),
    /// List and read sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Run, start, stop and watch the daemon of the profile
    #[command(subcommand)]
    Daemon(DaemonCommand),
    /// Show how the profile and its daemon are
    Status {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show the version of this program and of the running daemon
    Version,
    /// Show and take back what the agent may do unasked
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Put files back as they were before a turn of the agent
    Undo(UndoFlags),
    /// Show, check and change the settings
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// Show a log of the profile
    Logs(LogsFlags),
}

/// Words of `command`, for telling a command from a value.
pub(crate) const COMMANDS: [&str; 10] =
    ["chat", "sessions", "daemon", "status", "version", "approvals", "undo", "config", "logs", "help"];

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the last active first
    List {
        /// One JSON document: an array of sessions
        #[arg(long)]
        json: bool,
        /// Only sessions with this source tag
        #[arg(long, value_name = "TAG")]
        source: Option<String>,
        /// How many
        #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// Only sessions that work in this directory
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
    },
    /// Show one session with its messages
    Show {
        /// Id, beginning of an id, title, or `latest`
        #[arg(value_name = "ID")]
        reference: String,
        /// One JSON document: the session and its rows
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Run the daemon in the foreground
    Run,
    /// Start the daemon; it runs until it is stopped
    Start,
    /// Let running turns end, then stop the daemon
    Stop {
        /// Interrupt running turns at once
        #[arg(long)]
        now: bool,
    },
    /// Stop the daemon and start it again
    Restart {
        /// Interrupt running turns at once
        #[arg(long)]
        now: bool,
    },
    /// Show whether the daemon runs (exit code 1 when not)
    Status {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show the daemon's log
    Logs(TailFlags),
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List what was allowed for a session or for good
    List {
        /// One JSON document: an array of approvals
        #[arg(long)]
        json: bool,
    },
    /// Take one back: the agent asks again
    Revoke {
        /// As `approvals list` shows it
        id: String,
    },
    /// Show and apply edits of config.yaml that would let the agent do more
    Accept {
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that stands alone on the command line")]
pub(crate) struct UndoFlags {
    /// A snapshot, or the beginning of its id [default: the newest turn that was not undone]
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: Option<String>,
    /// Id, beginning of an id, title, or `latest`
    #[arg(long, value_name = "REF", default_value = "latest", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// List the session's snapshots
    #[arg(long, conflicts_with_all = ["id", "diff", "file", "all", "dry_run", "yes"])]
    pub(crate) list: bool,
    /// Show what has changed since, and change nothing
    #[arg(long, conflicts_with_all = ["all", "dry_run", "yes"])]
    pub(crate) diff: bool,
    /// Only this file
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// Overwrite also what was edited since
    #[arg(long)]
    pub(crate) all: bool,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the effective settings, secrets masked (the default)
    Show(ConfigShowFlags),
    /// Show one value
    Get {
        /// Dotted key, such as `agent.max_turns`
        key: String,
        /// The value as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write one value into config.yaml; comments stay
    Set {
        /// Dotted key, such as `agent.max_turns`
        key: String,
        /// JSON or YAML on one line: `true`, `12`, `some text`, `[a, b]`
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Take one key out of config.yaml: its default holds again
    Unset {
        /// Dotted key
        key: String,
    },
    /// Print the path of config.yaml
    Path,
    /// Print the path of .env
    EnvPath,
    /// Check the settings (exit code 3 when there are errors)
    Check {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
pub(crate) struct ConfigShowFlags {
    /// The file as it is, with nothing but its secrets masked away
    #[arg(long, conflicts_with_all = ["json", "origin"])]
    pub(crate) raw: bool,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Where each value comes from
    #[arg(long)]
    pub(crate) origin: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct LogsFlags {
    /// agent, errors, gateway or list
    #[arg(default_value = "agent", value_name = "LOG")]
    pub(crate) log: String,
    #[command(flatten)]
    pub(crate) tail: TailFlags,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct TailFlags {
    /// How many lines
    #[arg(short = 'n', long = "lines", default_value_t = 50, value_name = "N")]
    pub(crate) lines: usize,
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only this level and those above it: trace, debug, info, warn or error
    #[arg(long, value_name = "LEVEL", ignore_case = true, value_enum)]
    pub(crate) level: Option<LogLevel>,
    /// Only lines that name this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only the last so long: 30m, 1h, 2d
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) since: Option<u64>,
    /// Only this part of the daemon
    #[arg(long, value_name = "PART", value_enum)]
    pub(crate) component: Option<Component>,
}

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// A part of the daemon, as its log lines name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Component {
    Agent,
    Tools,
    Gateway,
    Cron,
}

/// Reads a positive number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        // A year is far beyond any run, and keeps the sum with the clock in range.
        Ok(seconds) if seconds > 0.0 && seconds <= 31_536_000.0 => Ok(seconds),
        _ => Err("give a number of seconds above 0, such as 30 or 2.5".into()),
    }
}

/// Reads an age such as `30m` into seconds.
fn age(text: &str) -> Result<u64, String> {
    let wrong = || "give a number and a unit: 30s, 30m, 1h, 2d".to_owned();
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or_else(wrong)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)
}

impl ChatFlags {
    /// These flags with those of a later place on the line: the later one wins, an absent one resets
    /// nothing.
    pub(crate) fn then(self, later: Self) -> Self {
        Self {
            version: self.version || later.version,
            oneshot: later.oneshot.or(self.oneshot),
            query: later.query.or(self.query),
            query_file: later.query_file.or(self.query_file),
            quiet: self.quiet || later.quiet,
            output_format: later.output_format.or(self.output_format),
            usage_file: later.usage_file.or(self.usage_file),
            model: later.model.or(self.model),
            provider: later.provider.or(self.provider),
            toolsets: later.toolsets.or(self.toolsets),
            resume: later.resume.or(self.resume),
            continue_last: later.continue_last.or(self.continue_last),
            max_turns: later.max_turns.or(self.max_turns),
            yolo: self.yolo || later.yolo,
            timeout: later.timeout.or(self.timeout),
            stdin: later.stdin.or(self.stdin),
            no_restore_cwd: self.no_restore_cwd || later.no_restore_cwd,
            source: later.source.or(self.source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_seconds_are_read_with_their_units() {
        assert_eq!(age("30m"), Ok(1_800));
        assert_eq!(age("2d"), Ok(172_800));
        for bad in ["", "h", "1", "1w", "-1h", "99999999999999999999d"] {
            assert!(age(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("2.5"), Ok(2.5));
        for bad in ["0", "-1", "NaN", "inf", "soon", "1e12"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
