//! The nouns everyone shares: shapes, statuses, units, exit codes.
//! Nothing here reads a file, prints, or knows a backend.

mod block;
pub(crate) mod bounds;
mod chip;
mod claim;
mod contender;
mod counter;
mod device;
mod exit;
mod hash;
mod hazard;
mod pattern;
mod refusal;
pub(crate) mod roofline;
mod shape;
mod status;
mod text;
mod timing;
mod tuning;
mod units;
mod verdict;

pub(crate) use crate::printable::{harmful, printable, printable_line};
pub(crate) use block::{Block, Sample};
pub(crate) use chip::Chip;
pub(crate) use claim::Claim;
pub(crate) use contender::ContenderId;
pub(crate) use counter::{Counter, PANELS};
pub(crate) use device::{Calibration, Card, Device, Limits, Peaks};
pub(crate) use exit::Exit;
pub(crate) use hash::content_hash;
pub(crate) use hazard::{Access, Found, Hazard, Watch, add_hazard, each_once};
pub(crate) use pattern::Pattern;
pub(crate) use refusal::{DECLARE, is_undeclared};
pub(crate) use shape::{Group, Shape};
pub(crate) use status::Status;
pub(crate) use text::{counted, short, typed};
pub(crate) use timing::{BackendKind, KernelTime, Timing};
pub(crate) use tuning::{ALGORITHM_DIGITS, Algorithm, Tuning};
pub(crate) use units::{Bytes, Interval, Micros};
pub(crate) use verdict::Verdict;
