//! The contenders that a gate judges, and why it judges none.

use thiserror::Error;

use crate::config::Gate;
use crate::diagnostic::{CommandError, InputError, did_you_mean};
use crate::domain::{ContenderId, Status};
use crate::rank::{Mismatch, Ranking};
use crate::record::Run;
use crate::record::schema::ContenderRecord;

/// What a run is compared with.
#[derive(Clone, Copy)]
pub enum ComparedWith<'a> {
    Contender(&'a ContenderId),
    /// Each contender against itself in an earlier run.
    Run(&'a Run, &'a Ranking),
}

#[derive(Debug, Error)]
pub enum GateError {
    #[error("`{name}` is not a contender of {file}")]
    NoContender {
        name: String,
        file: String,
        /// The run's contenders.
        known: Vec<String>,
    },
    #[error("no contender is left to judge: {0}")]
    Nobody(String),
    #[error("the two runs have no shape in common")]
    NoCommonShape,
    #[error("the two runs have no contender in common")]
    NoCommonContender,
    #[error("the two runs {}", .0.why())]
    Mismatched(Mismatch),
}

impl GateError {
    pub fn remedy(&self) -> String {
        let remedy = match self {
            Self::NoContender { name, known, .. } => {
                let names = || known.iter().map(String::as_str);
                let list = || format!("it has {}", known.join(", "));
                return did_you_mean(name, names()).unwrap_or_else(list);
            }
            Self::Nobody(_) => "name one with --contender, or sweep more than the baseline",
            Self::NoCommonShape | Self::NoCommonContender => "compare runs of the same round",
            Self::Mismatched(difference) => difference.remedy(),
        };
        remedy.to_owned()
    }
}

impl From<GateError> for CommandError {
    fn from(error: GateError) -> Self {
        InputError::new(error.to_string(), error.remedy()).into()
    }
}

/// The contenders that the rules apply to.
pub(super) fn chosen(
    run: &Run,
    gate: &Gate,
    over: ComparedWith,
) -> Result<Vec<ContenderId>, GateError> {
    let records = &run.header.contenders;
    let base = match over {
        ComparedWith::Contender(id) => Some(id),
        ComparedWith::Run(base, _) => {
            let common = |c: &ContenderRecord| base.contender(&c.id).is_some();
            if !records.iter().any(common) {
                return Err(GateError::NoCommonContender);
            }
            None
        }
    };
    if gate.contenders.is_empty() {
        let judged = |c: &&ContenderRecord| match over {
            ComparedWith::Contender(id) => c.id != *id && c.expect == Status::Ok,
            ComparedWith::Run(..) => true,
        };
        let ids: Vec<ContenderId> = records
            .iter()
            .filter(judged)
            .map(|c| c.id.clone())
            .collect();
        let alone = records.len() == 1;
        return match ids.is_empty() && alone {
            true => Err(GateError::Nobody(
                "the run has only its baseline".to_owned(),
            )),
            false => Ok(ids),
        };
    }
    let mut chosen = Vec::new();
    for name in &gate.contenders {
        let named = |c: &&ContenderRecord| c.id.as_str() == name || c.variant == *name;
        let ids: Vec<ContenderId> = records.iter().filter(named).map(|c| c.id.clone()).collect();
        if ids.is_empty() {
            return Err(GateError::NoContender {
                name: name.clone(),
                file: run.path.display().to_string(),
                known: records.iter().map(|c| c.id.typed()).collect(),
            });
        }
        chosen.extend(ids.into_iter().filter(|id| Some(id) != base));
    }
    match chosen.is_empty() {
        true => Err(GateError::Nobody("only the baseline is named".to_owned())),
        false => Ok(chosen),
    }
}
