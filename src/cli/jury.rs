use std::path::{Path, PathBuf};

use super::{Globals, named, runs};
use crate::contest::jury::{foresight, outcomes, recount};
use crate::contest::rounds::evidence;
use crate::contest::story;
use dgx_core::config::Round;
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::Exit;
use dgx_core::rank::Ranking;
use dgx_core::record::Run;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The round
    #[arg(value_name = "ROUND", value_parser = named::round())]
    round: PathBuf,
    /// Run file to compare the vote with [default: the newest of the round]
    #[arg(value_name = "RUN", value_parser = named::run())]
    run: Option<PathBuf>,
}

pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let style = runs::style(globals);
    let round = Round::read(&args.round)?;
    let jury = round.jury.as_ref().ok_or_else(|| {
        let message = format!("{} has no [jury]", round.file.path.display());
        InputError::new(message, "docs/rounds.md shows how scores are written down")
    })?;
    let found = found(&args, &round)?;
    let ranking = found.as_ref().map(Ranking::of);
    let both = found.as_ref().zip(ranking.as_ref());
    let recount = recount(jury);
    say!("{}\n", style.titled(&round.name, &round.question));
    say!("{}\n", story::recount_table(&recount).render(&style));
    for (juror, vote) in recount.jurors.iter().zip(&recount.votes) {
        say!(" {juror} voted for {vote}");
    }
    let names: Vec<String> = recount
        .tallies
        .iter()
        .map(|t| t.candidate.clone())
        .collect();
    let outcomes = outcomes(&round, &names, both);
    say!("\n{}", story::outcome_table(&outcomes).render(&style));
    match both {
        None => say!(
            "\nNot measured yet: dgx sweep {}",
            round.file.path.display()
        ),
        Some((run, ranking)) => {
            match foresight(&round, &recount, run, ranking) {
                Some((tau, count)) => {
                    let sentence = format!(
                        "Kendall's τ between the jury's scores and the {} speeds of {count} \
                         candidates: {tau:+.2}",
                        run.timing().as_str()
                    );
                    say!("\n{}", style.fold(&sentence, 2));
                }
                None => {
                    say!("\nToo few candidates were timed to compare with the jury's scores.")
                }
            }
            say!("{}", run.path.display());
        }
    }
    Ok(Exit::Done)
}

fn found(args: &Args, round: &Round) -> Result<Option<Run>, CommandError> {
    match &args.run {
        Some(path) => Ok(Some(runs::load(Some(path))?)),
        None => Ok(evidence(round, Path::new(runs::RESULTS))?.map(|e| e.run)),
    }
}
