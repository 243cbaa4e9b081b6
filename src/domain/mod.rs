//! The nouns everyone shares: shapes, statuses, units, exit codes.
//! Nothing here reads a file, prints, or knows a backend.

mod block;
pub mod bounds;
mod chip;
mod claim;
mod contender;
mod counter;
mod device;
mod exit;
mod hash;
pub mod roofline;
mod shape;
mod status;
mod text;
mod timing;
mod tuning;
mod units;
mod verdict;

pub use block::{Block, Sample};
pub use chip::Chip;
pub use claim::Claim;
pub use contender::ContenderId;
pub use counter::{Counter, INSTRUCTIONS};
pub use device::{Card, Device, Limits, Model, Peaks};
pub use exit::Exit;
pub use hash::content_hash;
pub use shape::{Group, Shape};
pub use status::Status;
pub use text::{harmful, printable, printable_line};
pub use timing::{BackendKind, Timing};
pub use tuning::{ALGORITHM_DIGITS, Algorithm, Tuning};
pub use units::{Bytes, Interval, Micros};
pub use verdict::Verdict;
