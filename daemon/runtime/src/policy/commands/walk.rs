//! Walks through a text as a shell would, without running anything, and hands every command to the rules.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::expand::Arg;
use super::places::absolute;
use super::report::Report;
use super::scope::{MAYBE, Scope, UNKNOWN, Variable};
use super::simple::{Redirection, Simple, Stdin};
use super::syntax::{self, Assign, Command, Kind, Operator, Piece, Pipeline, Script, Target, Word};
use super::{CommandFacts, builtins, inner, outputs, rules};

/// Commands that one text may come to, loops and functions unrolled.
const MAX_STEPS: usize = 25_000;
/// Texts inside texts: `bash -c "bash -c …"`.
const MAX_TEXTS: usize = 12;
/// Functions that call functions.
const MAX_CALLS: usize = 12;
/// Values of a `for` that are tried one by one.
const MAX_VALUES: usize = 32;

/// Whether a file's first line leaves it to a shell.
fn is_shell_script(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    !first.starts_with("#!") || first.trim_end().split(['/', ' ']).any(inner::is_shell)
}

/// What surrounds a command.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    pub(super) stdin: Stdin,
    pub(super) background: bool,
    pub(super) subshell: bool,
    /// Put in the background by a subshell.
    pub(super) orphaned: bool,
    /// The commands whose output is the input.
    pub(super) fed_by: String,
    pub(super) via: Vec<String>,
}

/// Walks one text and what it contains.
#[derive(Debug)]
pub(super) struct Walker<'a> {
    pub(super) facts: &'a CommandFacts<'a>,
    pub(super) report: Report,
    steps: usize,
    texts: usize,
    calls: Vec<String>,
    /// Files that the text writes itself, where it is known what.
    pub(super) written: BTreeMap<String, String>,
}

/// What a command prints, when that is known: parts may be [`UNKNOWN`].
pub(super) type Output = Option<String>;

impl<'a> Walker<'a> {
    pub(super) fn new(facts: &'a CommandFacts<'a>) -> Self {
        Self {
            facts,
            report: Report::default(),
            steps: 0,
            texts: 0,
            calls: Vec::new(),
            written: BTreeMap::new(),
        }
    }

    pub(super) fn home(&self) -> String {
        self.facts.user_home.to_string_lossy().into_owned()
    }

    pub(super) fn hermes_home(&self) -> String {
        self.facts.hermes_home.to_string_lossy().into_owned()
    }

    /// Reads and walks a text.
    pub(super) fn text(&mut self, text: &str, scope: &mut Scope, around: &Surroundings) -> Output {
        if self.texts >= MAX_TEXTS {
            self.report.unreadable("syntax.limits", "runs texts inside texts too deeply");
            return None;
        }
        let reading = match syntax::read(text) {
            Ok(reading) => reading,
            Err(error) => {
                let what = match error {
                    syntax::Unreadable::Open(open) => format!("opens `{open}` and never closes it"),
                    syntax::Unreadable::Unexpected(c) => {
                        format!(
                            "has {c:?} where the shell's grammar, as far as it is known here, allows none"
                        )
                    }
                    syntax::Unreadable::Deep => "is nested too deeply".to_owned(),
                };
                self.report.unreadable("syntax.unparsable", &what);
                return None;
            }
        };
        if let Some(head) = syntax::disagrees(text, &reading.heads) {
            let shape = text.to_owned();
            self.report.ask(
                "syntax.disputed",
                format!("can be read in two ways (`{head}` may be a command)"),
                shape,
            );
        }
        self.texts += 1;
        let output = self.script(&reading.script, scope, around);
        self.texts -= 1;
        output
    }

    pub(super) fn script(&mut self, script: &Script, scope: &mut Scope, around: &Surroundings) -> Output {
        let mut printed = Some(String::new());
        for item in &script.items {
            let mut around = around.clone();
            let output = if item.background {
                around.background = true;
                // A job of a shell that ends at once belongs to nobody.
                around.orphaned |= around.subshell;
                let mut apart = scope.clone();
                self.chain(&item.chain, &mut apart, &around)
            } else {
                self.chain(&item.chain, scope, &around)
            };
            printed = printed.zip(output).map(|(before, more)| before + &more);
        }
        printed
    }

    fn chain(&mut self, chain: &[Pipeline], scope: &mut Scope, around: &Surroundings) -> Output {
        let Some((first, rest)) = chain.split_first() else { return Some(String::new()) };
        let mut printed = self.pipeline(first, scope, around);
        if rest.is_empty() {
            return printed;
        }
        // The rest runs with what is known so far, and afterwards it may have run or not.
        let mut after = scope.clone();
        for pipeline in rest {
            let output = self.pipeline(pipeline, &mut after, around);
            printed = printed.zip(output).map(|(before, more)| before + &more);
        }
        scope.merge(after);
        printed.map(|text| format!("{MAYBE}{text}"))
    }

    fn pipeline(&mut self, pipeline: &Pipeline, scope: &mut Scope, around: &Surroundings) -> Output {
        match pipeline.commands.as_slice() {
            [] => Some(String::new()),
            [only] => self.command(only, scope, around),
            commands => {
                let mut around = around.clone();
                let mut output = None;
                let mut programs: Vec<String> = Vec::new();
                for command in commands {
                    let before = self.report.simples.len();
                    let mut apart = scope.clone();
                    output = self.command(command, &mut apart, &around);
                    programs.extend(self.programs_since(before));
                    for simple in self.report.simples.get(before..).unwrap_or_default() {
                        around.fed_by.push_str(&simple.raw_line());
                        around.fed_by.push_str(" | ");
                    }
                    around.stdin = match &output {
                        Some(text) if !text.contains([UNKNOWN, MAYBE]) => Stdin::Text(text.clone()),
                        _ => Stdin::Pipe(programs.clone()),
                    };
                }
                output
            }
        }
    }

    pub(super) fn programs_since(&self, before: usize) -> Vec<String> {
        let newer = self.report.simples.get(before..).unwrap_or_default();
        newer.iter().map(|simple| simple.program.clone()).collect()
    }

    fn command(&mut self, command: &Command, scope: &mut Scope, around: &Surroundings) -> Output {
        let mut around = around.clone();
        let mut redirects = Vec::new();
        for redirect in &command.redirects {
            let target = match &redirect.target {
                Target::Word(word) => self.expand_one(word, scope),
                Target::Heredoc(body) => match body.get() {
                    Some(word) => self.expand_one(word, scope),
                    None => Arg::default(),
                },
            };
            // Only what goes to descriptor 0 is the input; another one is reached by its name.
            let is_input = redirect.descriptor.is_none_or(|descriptor| descriptor == 0);
            match redirect.operator {
                Operator::Duplicate if redirect.descriptor == Some(0) => {
                    around.stdin = Stdin::File(Arg::known(&format!("/dev/fd/{}", target.text)));
                }
                _ if !is_input => {}
                Operator::DuplicateRead if !matches!(target.text.as_str(), "-" | "0") => {
                    around.stdin = Stdin::File(Arg::known(&format!("/dev/fd/{}", target.text)));
                }
                Operator::Here => around.stdin = Stdin::Text(target.text.clone()),
                Operator::Read | Operator::ReadWrite if target.process => {
                    around.stdin = Stdin::Pipe(
                        self.report.simples.last().map(|s| s.program.clone()).into_iter().collect(),
                    );
                }
                Operator::Read | Operator::ReadWrite => around.stdin = Stdin::File(target.clone()),
                _ => {}
            }
            redirects.push(Redirection {
                descriptor: redirect.descriptor,
                operator: redirect.operator,
                target,
            });
        }
        let written: Vec<(String, bool)> = redirects
            .iter()
            .filter(|redirect| {
                matches!(redirect.operator, Operator::Write | Operator::Append | Operator::ReadWrite)
            })
            .filter(|redirect| redirect.descriptor.is_none_or(|descriptor| descriptor == 1))
            .filter(|redirect| !redirect.target.text.starts_with("/dev/std"))
            .filter_map(|redirect| {
                Some((
                    absolute(&redirect.target.text, scope.cwd.as_deref())?,
                    redirect.operator == Operator::Append,
                ))
            })
            .collect();
        // `>&2`: what is printed does not come out here.
        let diverted = command.redirects.iter().any(|redirect| {
            redirect.operator == Operator::Duplicate
                && redirect.descriptor.is_none_or(|descriptor| descriptor == 1)
        });
        let output = match &command.kind {
            Kind::Simple { assigns, words } => self.simple(assigns, words, redirects, scope, &around),
            kind => {
                if !redirects.is_empty() {
                    let simple = Simple {
                        redirects,
                        fed_by: around.fed_by.clone(),
                        cwd: scope.cwd.clone(),
                        ..Simple::default()
                    };
                    self.judge(simple);
                }
                self.compound(kind, scope, &around)
            }
        };
        if written.is_empty() {
            return output.filter(|_| !diverted);
        }
        for (path, append) in written {
            match &output {
                Some(text) if append => self.written.entry(path).or_default().push_str(text),
                Some(text) => {
                    self.written.insert(path, text.clone());
                }
                None => {
                    self.written.remove(&path);
                }
            }
        }
        Some(String::new())
    }

    fn compound(&mut self, kind: &Kind, scope: &mut Scope, around: &Surroundings) -> Output {
        match kind {
            Kind::Simple { .. } => None,
            Kind::Group { body, subshell: false } => self.script(body, scope, around),
            Kind::Group { body, subshell: true } => {
                let around = Surroundings { subshell: true, ..around.clone() };
                self.script(body, &mut scope.clone(), &around)
            }
            Kind::If { arms, otherwise } => {
                for (condition, body) in arms {
                    self.script(condition, scope, around);
                    self.perhaps(body, scope, around);
                }
                if let Some(body) = otherwise {
                    self.perhaps(body, scope, around);
                }
                None
            }
            Kind::Loop { condition, body } => {
                for _ in 0..2 {
                    let before = scope.clone();
                    self.script(condition, scope, around);
                    self.perhaps(body, scope, around);
                    if scope.same_values(&before) {
                        break;
                    }
                }
                None
            }
            Kind::Count { arithmetic, body } => {
                self.run_expansions(arithmetic, scope);
                self.arithmetic(arithmetic, scope);
                self.perhaps(body, scope, around);
                self.perhaps(body, scope, around);
                None
            }
            Kind::For { name, words, body } => {
                let mut values = Vec::new();
                for word in words.iter().flatten() {
                    values.extend(self.expand(word, scope));
                }
                let open = words.is_none() || values.len() > MAX_VALUES;
                if open || values.iter().any(|value| value.splits) {
                    scope.set(name, Variable::One(UNKNOWN.to_string()));
                    self.perhaps(body, scope, around);
                    self.perhaps(body, scope, around);
                }
                for value in values.into_iter().take(MAX_VALUES) {
                    scope.set(name, Variable::One(value.text));
                    self.perhaps(body, scope, around);
                }
                None
            }
            Kind::Case { subject, arms } => {
                self.expand_one(subject, scope);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.expand_one(pattern, scope);
                    }
                    self.perhaps(body, scope, around);
                }
                None
            }
            Kind::Function { name, body } => {
                self.function(name, body, scope, around);
                Some(String::new())
            }
            Kind::Test { words } => {
                for word in words {
                    let arg = self.expand_one(word, scope);
                    if rules::injects(&arg.text) {
                        self.report.ask(
                            "syntax.arithmetic",
                            "computes a text that contains a command",
                            arg.text,
                        );
                    }
                    if word.pieces.iter().any(|piece| matches!(piece, Piece::Arithmetic(_)))
                        || word.source.is_empty()
                    {
                        self.arithmetic(&word.pieces, scope);
                    }
                }
                Some(String::new())
            }
            Kind::Beside(command) => {
                let around = Surroundings { background: true, ..around.clone() };
                self.command(command, &mut scope.clone(), &around)
            }
        }
    }

    /// Walks a part that runs or does not.
    fn perhaps(&mut self, body: &Script, scope: &mut Scope, around: &Surroundings) {
        let mut after = scope.clone();
        self.script(body, &mut after, around);
        scope.merge(after);
    }

    /// A function is judged where it is defined, since it stays for later commands, and again where it is called.
    fn function(&mut self, name: &str, body: &Rc<Command>, scope: &mut Scope, around: &Surroundings) {
        if rules::is_fork_bomb(name, body) {
            self.report.block("block.fork_bomb", "starts itself again and again (a fork bomb)");
        }
        let mut inside = scope.clone();
        inside.positional = None;
        self.calls.push(name.to_owned());
        self.command(body, &mut inside, around);
        self.calls.pop();
        scope.functions.insert(name.to_owned(), Rc::clone(body));
    }

    pub(super) fn substituted(&mut self, script: &Script, scope: &mut Scope) -> Output {
        self.script(script, scope, &Surroundings { subshell: true, ..Surroundings::default() })
    }

    pub(super) fn process_substitution(&mut self, script: &Script, reads: bool, scope: &mut Scope) {
        let stdin = if reads { Stdin::Inherited } else { Stdin::Pipe(vec!["a program".to_owned()]) };
        self.script(script, scope, &Surroundings { stdin, subshell: true, ..Surroundings::default() });
    }

    fn simple(
        &mut self,
        assigns: &[Assign],
        words: &[Word],
        redirects: Vec<Redirection>,
        scope: &mut Scope,
        around: &Surroundings,
    ) -> Output {
        let declares = words.first().is_some_and(|word| {
            matches!(word.source.as_str(), "declare" | "typeset" | "local" | "export" | "readonly")
        });
        let mut assigned = Vec::new();
        if words.is_empty() || declares {
            for assign in assigns {
                assigned.push(self.assign(assign, scope));
            }
        } else {
            // For one command only; its words are expanded without them.
            let mut apart = scope.clone();
            for assign in assigns {
                assigned.push(self.assign(assign, &mut apart));
            }
        }
        if let Some(first) = words.first()
            && let Some(text) = scope.aliases.get(&first.source).cloned()
            && !self.calls.contains(&first.source)
        {
            let rest: Vec<&str> = words.iter().skip(1).map(|word| word.source.as_str()).collect();
            self.calls.push(first.source.clone());
            self.text(&format!("{text} {}", rest.join(" ")), scope, around);
            self.calls.pop();
        }
        let mut argv = Vec::new();
        for word in words {
            argv.extend(self.expand(word, scope));
        }
        let mut simple = Simple {
            assigns: assigned,
            redirects,
            stdin: around.stdin.clone(),
            cwd: scope.cwd.clone(),
            background: around.background,
            subshell: around.subshell,
            orphaned: around.orphaned,
            environment: scope.exported.iter().cloned().collect(),
            fed_by: around.fed_by.clone(),
            via: around.via.clone(),
            ..Simple::default()
        };
        simple.set_words(&argv);
        let called = self.call(&simple, scope, around);
        let output = self.run(simple, scope);
        called.unwrap_or(output)
    }

    /// The function that a command calls; `None` when it calls none.
    fn call(&mut self, simple: &Simple, scope: &mut Scope, around: &Surroundings) -> Option<Output> {
        let name = simple.called.literal()?;
        let body = Rc::clone(scope.functions.get(name)?);
        if self.calls.len() >= MAX_CALLS || self.calls.iter().any(|call| call == name) {
            if around.background {
                self.report.block("block.fork_bomb", "starts itself again and again (a fork bomb)");
            }
            return Some(None);
        }
        let open = simple.args.iter().any(|arg| arg.splits);
        let outer = scope.positional.take();
        scope.positional = (!open).then(|| simple.args.iter().map(|arg| arg.text.clone()).collect());
        self.calls.push(name.to_owned());
        let before = scope.clone();
        scope.locals.clear();
        let output = self.command(&body, scope, around);
        scope.leave(&before);
        self.calls.pop();
        scope.positional = outer;
        Some(output)
    }

    /// Judges a command, what it does to the shell, and what it runs itself.
    pub(super) fn run(&mut self, simple: Simple, scope: &mut Scope) -> Output {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.report.unreadable("syntax.limits", "comes to more commands than can be judged");
            return None;
        }
        let output = outputs::of(&simple);
        let inner = inner::of(&simple);
        if let Some(text) = inner::script(&simple)
            .and_then(|script| absolute(&script, simple.cwd.as_deref()))
            .and_then(|path| self.written.remove(&path))
            .filter(|text| is_shell_script(text) && syntax::read(text).is_ok())
        {
            // What the text has just written is known, and is read as the shell will read it.
            let around = Surroundings { via: simple.via.clone(), ..Surroundings::default() };
            self.text(&text, &mut scope.clone(), &around);
        }
        self.copies(&simple, output.as_deref());
        let simple = self.judge(simple);
        builtins::apply(self, &simple, scope);
        let mut printed = None;
        for inner in inner {
            printed = self.inner(inner, &simple, scope);
        }
        output.or(printed)
    }

    /// Scripts that the text runs before, or while, it writes them.
    pub(super) fn late_scripts(&mut self) {
        let run = |simple: &Simple| absolute(&inner::script(simple)?, simple.cwd.as_deref());
        let paths: Vec<String> = self.report.simples.iter().filter_map(run).collect();
        for path in paths {
            let text = self.written.remove(&path);
            if let Some(text) = text.filter(|text| is_shell_script(text) && syntax::read(text).is_ok()) {
                let mut scope = Scope::new(&self.facts.cwd.to_string_lossy(), BTreeMap::new());
                self.text(&text, &mut scope, &Surroundings::default());
            }
        }
    }

    fn inner(&mut self, inner: inner::Inner, outer: &Simple, scope: &mut Scope) -> Output {
        match inner {
            inner::Inner::Command { words, stdin, folder } => {
                let mut simple = outer.running(&words);
                if let Some(stdin) = stdin {
                    simple.stdin = stdin;
                }
                match folder {
                    inner::Folder::Same => {}
                    inner::Folder::Unknown => simple.cwd = None,
                    inner::Folder::At(folder) => simple.cwd = absolute(&folder, outer.cwd.as_deref()),
                }
                // Functions are not seen by programs; `command`, `eval` and `builtin` are no programs.
                self.run(simple, scope)
            }
            inner::Inner::Text { text, here, positional } => {
                let mut around = Surroundings {
                    stdin: if matches!(outer.stdin, Stdin::Text(ref stdin) if *stdin == text) {
                        Stdin::Inherited
                    } else {
                        outer.stdin.clone()
                    },
                    background: outer.background,
                    subshell: outer.subshell,
                    orphaned: outer.orphaned,
                    fed_by: outer.fed_by.clone(),
                    via: outer.via.clone(),
                };
                around.via.push(outer.program.clone());
                if here {
                    for (name, value) in &outer.assigns {
                        scope.set(name, Variable::One(value.text.clone()));
                    }
                    return self.text(&text, scope, &around);
                }
                let mut apart = scope.clone();
                apart.exported.extend(outer.environment.iter().cloned());
                apart
                    .exported
                    .extend(outer.assigns.iter().map(|(name, value)| format!("{name}={}", value.text)));
                apart.cwd.clone_from(&outer.cwd);
                // `bash -c text name one two`.
                let mut positional = positional.map(Vec::into_iter);
                if let Some(name) = positional.as_mut().and_then(Iterator::next) {
                    apart.set("0", Variable::One(name));
                }
                apart.positional = positional.map(Iterator::collect);
                apart.aliases.clear();
                for (name, value) in &outer.assigns {
                    apart.set(name, Variable::One(value.text.clone()));
                }
                self.text(&text, &mut apart, &around)
            }
        }
    }

    fn judge(&mut self, simple: Simple) -> Simple {
        rules::judge(&simple, self.facts, &mut self.report);
        self.report.simples.push(simple.clone());
        simple
    }
}
