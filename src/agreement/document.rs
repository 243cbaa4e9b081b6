//! The agreement of modelled with measured runs as a JSON document, and as tables.

use serde::{Deserialize, Serialize};

use super::{Difference, Errors, ModelComparison, ModelledCell, Order};
use crate::export::pretty;
use crate::present::{percent, signed_percent};
use crate::table::{Column, Table, Value, row};
use dgx_core::diagnostic::{InputError, SourceFile};
use dgx_core::domain::{ContenderId, Device};

/// The format's version, raised when a field changes its meaning.
const VERSION: u32 = 2;

const WRITTEN_BY: &str = "name a file that dgx calibrate RUN --export-json wrote";

/// How far modelled times are from those of measured runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agreement {
    version: u32,
    /// The modelled device.
    pub(crate) target: String,
    pub(crate) runs: Vec<RunAgreement>,
    /// Over all runs: the cells that were examined while the model was built, and the others.
    pub(crate) seen: Option<Errors>,
    pub(crate) unseen: Option<Errors>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunAgreement {
    pub(crate) file: String,
    pub(crate) round: String,
    pub(crate) errors: Option<Errors>,
    pub(crate) cells: Vec<ModelledCell>,
    /// One for each shape, then the geometric mean.
    pub(crate) orders: Vec<Order>,
    pub(crate) differences: Vec<Difference>,
    /// Contenders whose sources have changed since they were measured.
    pub(crate) changed: Vec<ContenderId>,
}

impl Agreement {
    pub(crate) fn of(device: &Device, comparisons: &[ModelComparison]) -> Self {
        let all = |seen: bool| {
            let cells = comparisons.iter().flat_map(|c| &c.found.cells);
            Errors::of(cells.filter(move |cell| cell.seen == seen))
        };
        Self {
            version: VERSION,
            target: device.name.clone(),
            runs: comparisons.iter().map(|c| c.found.clone()).collect(),
            seen: all(true),
            unseen: all(false),
        }
    }

    /// The error of the model on each run, and over all runs on seen and on unseen cells, as far as
    /// there are any.
    pub(crate) fn table(&self) -> Table {
        let titles = ["cells", "median", "90th", "worst", "bias"];
        let columns = titles.into_iter().map(Column::right);
        let mut table = Table::keyed("error of modelled times", columns);
        let runs = self.runs.iter().map(|run| (run.file.as_str(), run.errors));
        let parts = [
            ("seen while the model was made", self.seen),
            ("unseen", self.unseen),
        ];
        for (name, errors) in runs.chain(parts) {
            if let Some(e) = errors {
                let shares = [e.median, e.p90, e.worst].map(|s| Value::from(percent(s)).number(s));
                let [median, p90, worst] = shares;
                let bias = Value::from(signed_percent(e.bias)).number(e.bias);
                table.push(row![name, e.cells, median, p90, worst, bias]);
            }
        }
        table
    }

    pub(crate) fn read(path: &std::path::Path) -> Result<Self, InputError> {
        let file = SourceFile::read(path, "agreement", WRITTEN_BY)?;
        let refused =
            |why: String| InputError::new(format!("{}: {why}", path.display()), WRITTEN_BY);
        let found: Self = serde_json::from_str(&file.text).map_err(|e| refused(e.to_string()))?;
        match found.version {
            VERSION => Ok(found),
            other => Err(refused(format!("version {other} is not known here"))),
        }
    }

    pub(crate) fn json(&self) -> String {
        pretty(self)
    }
}
