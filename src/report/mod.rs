//! One self-contained HTML page about one run, or about several: no network,
//! light and dark, for a screen, a phone and paper. All text goes through
//! maud's escaping; the only raw strings are this folder's own style and
//! script.

mod agreement;
mod claims;
mod counters;
mod environment;
mod failures;
mod filter;
mod hazards;
mod heat;
mod history;
mod kernels;
mod lineage;
mod margin;
mod page;
mod pairs;
mod plot;
mod ranking;
mod roofline;
mod samples;
mod summary;

use dgx_core::claims::ClaimResult;
use dgx_core::domain::ContenderId;
use dgx_core::rank::Ranking;
use dgx_core::record::Run;

pub(crate) use agreement::svg;
pub(crate) use hazards::hazards_page;
pub(crate) use page::page;

/// A run with its ranking.
pub(crate) struct RankedRun {
    pub run: Run,
    pub ranking: Ranking,
    /// SHA-256 of the run file, so that a page can be traced to it.
    pub hash: String,
}

impl RankedRun {
    pub(crate) fn new(run: Run, hash: String) -> Self {
        Self {
            ranking: Ranking::of(&run),
            run,
            hash,
        }
    }

    pub(crate) fn claim(&self, contender: &ContenderId) -> Option<ClaimResult> {
        dgx_core::claims::judge(&self.run, &self.ranking, contender)
    }

    /// The file's name without its folder.
    pub(crate) fn file(&self) -> String {
        let name = self.run.path.file_name();
        name.map_or(String::new(), |n| n.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests;
