//! The nouns that all modules share: shapes, statuses, units, exit codes. Nothing here reads a
//! file, prints, or knows a backend.

mod block;
pub mod bounds;
mod chip;
mod claim;
mod contender;
mod counter;
mod device;
mod distribution;
mod exit;
mod hash;
mod hazard;
mod pattern;
mod refusal;
pub mod roofline;
mod shape;
mod status;
mod text;
mod timing;
mod tuning;
mod units;
mod verdict;

pub use crate::printable::{harmful, printable, printable_line};
pub use block::{Block, Sample};
pub use chip::Chip;
pub use claim::Claim;
pub use contender::ContenderId;
pub use counter::{Counter, PANELS};
pub use device::{Calibration, Card, Device, Limits, Peaks};
pub use distribution::Distribution;
pub use exit::Exit;
pub use hash::{content_hash, mix};
pub use hazard::{Access, ContenderHazard, Hazard, HazardWatch, add_hazard, each_once};
pub use pattern::Pattern;
pub use refusal::{DECLARE, is_undeclared};
pub use shape::{Group, Shape};
pub use status::Status;
pub use text::{Joined, counted, distinct, first_few, short, typed};
pub use timing::{BackendKind, KernelTime, Timing};
pub use tuning::{ALGORITHM_DIGITS, Algorithm, Tuning};
pub use units::{Bytes, Interval, Micros};
pub use verdict::Verdict;
