//! Shell completion. The name of a value says what it can be: rounds, runs, contenders, shapes and
//! targets are looked up, in the round or run that the command line already names.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::Arg;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::CompleteEnv;

use super::{known, named, runs};
use dgx_core::config::{Round, target};
use dgx_core::domain::{ContenderId, harmful};
use dgx_core::record;

/// The variable through which a completion script calls dgx, with the words of the line.
pub(super) const VARIABLE: &str = "DGX_COMPLETE";

/// Answers the completion script of a shell, if it is the caller.
pub(super) fn answer() -> bool {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(super::command).var(VARIABLE);
    asked
        .try_complete(std::env::args_os(), here.as_deref())
        .unwrap_or_else(|mistake| mistake.exit())
}

/// The command line of dgx, with completers for its values.
pub(super) fn completed(command: clap::Command) -> clap::Command {
    let verb = |verb: clap::Command| verb.mut_args(with_values);
    command.mut_args(with_values).mut_subcommands(verb)
}

fn with_values(arg: Arg) -> Arg {
    let names = arg.get_value_names().unwrap_or_default();
    let words = names.iter().flat_map(|name| name.split('|'));
    let kinds: Vec<CompletionKind> = words.flat_map(CompletionKind::named).copied().collect();
    match kinds.is_empty() {
        true => arg,
        false => arg.add(ArgValueCompleter::new(move |word: &OsStr| {
            candidates(&kinds, word)
        })),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletionKind {
    Round,
    Run,
    Contender,
    Variant,
    Shape,
    Target,
}

impl CompletionKind {
    /// The kinds of value that the help gives this name.
    fn named(name: &str) -> &'static [Self] {
        match name {
            "ROUND" => &[Self::Round],
            "RUN" => &[Self::Run],
            "CONTENDER" => &[Self::Contender],
            // Either two contenders are compared, or two runs.
            "A" | "B" => &[Self::Contender, Self::Run],
            "DESIGN" => &[Self::Variant],
            "SHAPE" => &[Self::Shape],
            "TARGET" | "TARGET[,KEY=X]" => &[Self::Target],
            _ => &[],
        }
    }

    /// Whether several may be given in one word, separated by commas.
    fn is_listed(self) -> bool {
        matches!(self, Self::Contender | Self::Shape)
    }

    /// Whether a file may be named instead.
    fn is_file(self) -> bool {
        matches!(self, Self::Round | Self::Run | Self::Target)
    }

    fn all(self, line: &Line) -> Vec<String> {
        match self {
            Self::Round => named::rounds(),
            Self::Run => named::runs(),
            Self::Contender => line.contenders(),
            Self::Variant => line.variants(),
            Self::Shape => line.shapes(),
            Self::Target => target::built_in()
                .map(|(name, _)| name.to_owned())
                .collect(),
        }
    }
}

fn candidates(kinds: &[CompletionKind], word: &OsStr) -> Vec<CompletionCandidate> {
    let line = Line::asked();
    let text = word.to_string_lossy();
    let mut found: Vec<CompletionCandidate> = Vec::new();
    for kind in kinds {
        let (before, last) = match text.rfind([',', ';']).filter(|_| kind.is_listed()) {
            Some(at) => text.split_at(at + 1),
            None => ("", &*text),
        };
        let mut names = kind.all(&line);
        // Names that need quotes are not offered.
        names.retain(|name| name.starts_with(last) && !name.contains(needs_quotes));
        let whole = |name: String| CompletionCandidate::new(format!("{before}{name}"));
        found.extend(names.into_iter().map(whole));
    }
    let paths = kinds.iter().any(|kind| kind.is_file()) && (found.is_empty() || text.contains('/'));
    if paths {
        found.extend(PathCompleter::any().complete(word));
    }
    found
}

fn needs_quotes(c: char) -> bool {
    c.is_whitespace() || harmful(c)
}

/// The words of the command line so far.
struct Line(Vec<OsString>);

impl Line {
    fn asked() -> Self {
        let mut words = std::env::args_os().skip_while(|word| word != "--");
        words.next();
        // The program, and its command.
        Self(words.skip(2).collect())
    }

    /// The round or run on the line, else the newest run.
    fn examined_run(&self) -> Option<PathBuf> {
        let words = self.0.iter().filter(|word| !word.is_empty());
        let mut files = words.filter_map(named::file);
        let file = files.find(|path| path.is_file());
        file.or_else(|| Some(runs::newest_of(None).ok()?.path))
    }

    fn folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        let mut words = self.0.iter().filter_map(|word| word.to_str());
        while let Some(word) = words.next() {
            match word.strip_prefix("--variants") {
                Some("") => folders.extend(words.next().map(PathBuf::from)),
                Some(rest) => folders.extend(rest.strip_prefix('=').map(PathBuf::from)),
                None => {}
            }
        }
        folders
    }

    fn variants(&self) -> Vec<String> {
        known::variants(&self.folders())
    }

    /// The contenders of the run on the line, or those of all variants.
    fn contenders(&self) -> Vec<String> {
        let words = self.0.iter().filter_map(named::file);
        let mut headers = words.filter_map(|path| record::header(&path).ok());
        if let Some(header) = headers.next() {
            let ids = header.contenders.iter().map(|c| &c.id);
            return ids
                .chain(&header.yardstick)
                .map(ContenderId::typed)
                .collect();
        }
        known::contenders(&self.folders())
    }

    fn shapes(&self) -> Vec<String> {
        let Some(path) = self.examined_run() else {
            return Vec::new();
        };
        let shapes = match path.extension().is_some_and(|e| e == "toml") {
            true => Round::read(&path).map(|round| round.shapes).ok(),
            false => record::header(&path).map(|header| header.shapes).ok(),
        };
        let shapes = shapes.into_iter().flatten();
        shapes.map(|shape| shape.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value with a known kind of names cannot lose its completer by accident.
    #[test]
    fn every_value_with_names_of_its_own_is_completed() {
        let mut completed = Vec::new();
        for verb in super::super::command().get_subcommands() {
            for arg in verb.get_arguments() {
                if arg.get::<ArgValueCompleter>().is_some() {
                    completed.push(format!("{} {}", verb.get_name(), arg.get_id()));
                }
            }
        }
        for due in [
            "sweep config",
            "sweep only",
            "sweep shape",
            "sweep target",
            "show run",
            "compare base",
            "debug contender",
            "debug of",
            "debug shape",
            "explain contender",
            "profile of",
            "sanitize name",
            "sanitize shape",
            "gate baseline",
            "new from",
        ] {
            assert!(
                completed.iter().any(|one| one == due),
                "{due}: {completed:?}"
            );
        }
    }
}
