//! Suggests the next commands, ready to be pasted.

use std::path::{Path, PathBuf};

use dgx_core::domain::{ContenderId, Status, is_undeclared, typed};
use dgx_core::record::schema::Header;
use dgx_core::record::{Run, is_elided};

/// Folders of variants that a command must name; none for the usual one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folders(Vec<Option<PathBuf>>);

impl Folders {
    /// Those that a command line names.
    pub(crate) fn named(folders: &[PathBuf]) -> Self {
        Self(folders.iter().cloned().map(Some).collect())
    }

    /// Those of a run. The path of one outside the project is not recorded.
    pub(crate) fn of(header: &Header) -> Self {
        let folders = header.folders().into_iter();
        Self(folders.map(|folder| folder.map(PathBuf::from)).collect())
    }

    /// Those that this command was given, whose paths are known, or else those of the run.
    pub(crate) fn here(named: &[PathBuf], header: &Header) -> Self {
        match named {
            [] => Self::of(header),
            named => Self::named(named),
        }
    }

    /// All of them, if their paths are known.
    pub(crate) fn paths(&self) -> Option<Vec<PathBuf>> {
        self.0.iter().cloned().collect()
    }

    /// As arguments of a command line, each with a space before it; the reader must fill in an
    /// unknown folder.
    pub(crate) fn flags(&self) -> String {
        let word = |folder: &Option<PathBuf>| match folder {
            Some(folder) => format!(" --variants {}", typed(folder)),
            None => " --variants FOLDER".to_owned(),
        };
        self.0.iter().map(word).collect()
    }
}

/// The run or round that suggested commands name.
pub(crate) struct Commands<'a> {
    /// The run, or the round.
    pub run: &'a Path,
    /// The file of that round.
    pub round: &'a str,
    pub folders: &'a Folders,
}

impl<'a> Commands<'a> {
    pub(crate) fn for_run(run: &'a Run, folders: &'a Folders) -> Self {
        Self {
            run: &run.path,
            round: &run.header.config.path,
            folders,
        }
    }

    /// One cell as arguments of a command.
    pub(crate) fn cell(&self, contender: &ContenderId, shape: &str) -> String {
        let (contender, run) = (contender.typed(), typed(self.run));
        let flags = self.folders.flags();
        format!("{contender} {run} --shape {}{flags}", typed(shape))
    }

    /// The command that helps with a failure. `None` if nothing is to be done.
    pub(crate) fn next(
        &self,
        contender: &ContenderId,
        shape: &str,
        status: Status,
        reason: Option<&str>,
    ) -> Option<String> {
        let (cell, flags) = (self.cell(contender, shape), self.folders.flags());
        let check = || format!("dgx check {}{flags}", self.round());
        Some(match status {
            Status::Ok | Status::NotValidated => return None,
            // The shape or the machine lacks something; the reason says what.
            Status::Unsupported => return None,
            Status::Wrong | Status::Crashed | Status::Hung => format!("dgx debug {cell}"),
            Status::Racy => format!("dgx sanitize {}{flags}", contender.typed()),
            Status::CompileError => check(),
            // The source is at fault, not the device.
            Status::LaunchError if reason.is_some_and(is_undeclared) => check(),
            Status::LaunchError => format!("dgx explain {cell}"),
        })
    }

    /// For a round outside the project only the name is recorded.
    fn round(&self) -> String {
        match is_elided(self.round) {
            true => "ROUND".to_owned(),
            false => typed(self.round),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::synthetic::Synthetic;

    #[test]
    fn the_next_command_is_the_one_for_that_failure_and_can_be_pasted() {
        let id = ContenderId::from_text("x[STAGES=2]");
        let next = |folders: &Folders, shape: &str, status, reason| {
            let commands = Commands {
                run: Path::new("results/r.jsonl"),
                round: "r.toml",
                folders,
            };
            commands.next(&id, shape, status, reason)
        };
        let folders = Folders::named(&["my variants".into()]);
        let elsewhere = next(&folders, "s", Status::Racy, None).unwrap();
        let expected = "dgx sanitize x:STAGES=2 --variants 'my variants'";
        assert_eq!(elsewhere, expected);
        let step = |status| next(&Folders::default(), "a b", status, None);
        let wrong = step(Status::Wrong).unwrap();
        assert_eq!(wrong, "dgx debug x:STAGES=2 results/r.jsonl --shape 'a b'");
        let limits = step(Status::LaunchError).unwrap();
        assert!(limits.starts_with("dgx explain x:"), "{limits}");
        assert_eq!(step(Status::Racy).unwrap(), "dgx sanitize x:STAGES=2");
        let undeclared = Some("there is no kernel `k` in it: declare it extern \"C\" __global__");
        let source = next(&Folders::default(), "s", Status::LaunchError, undeclared);
        assert_eq!(source.unwrap(), "dgx check r.toml");
        assert_eq!(step(Status::CompileError).unwrap(), "dgx check r.toml");
        for status in Status::ALL {
            let harmless = matches!(
                status,
                Status::Ok | Status::NotValidated | Status::Unsupported
            );
            assert_eq!(step(status).is_none(), harmless, "{status}");
        }
    }

    #[test]
    fn what_a_run_file_does_not_say_is_left_to_the_reader() {
        let mut run = Synthetic::round4().run();
        run.header.argv = ["dgx", "sweep", "…/r.toml", "--variants", "…/mine"]
            .map(Into::into)
            .into();
        run.header.argv.push("--variants=a b".into());
        run.header.config.path = "…/r.toml".into();
        let folders = Folders::of(&run.header);
        assert_eq!(folders.flags(), " --variants FOLDER --variants 'a b'");
        assert_eq!(folders.paths(), None);
        let id = run.header.baseline.clone();
        let next = Commands::for_run(&run, &folders).next(&id, "s", Status::CompileError, None);
        let expected = "dgx check ROUND --variants FOLDER --variants 'a b'";
        assert_eq!(next.unwrap(), expected);
        // A command that was given the folders repeats them.
        let here = Folders::here(&["/there/mine".into()], &run.header);
        assert_eq!(here.flags(), " --variants /there/mine");
        assert_eq!(Folders::here(&[], &run.header), folders);
    }
}
