//! The nouns everyone shares: shapes, statuses, units, exit codes.
//! Nothing here reads a file, prints, or knows a backend.

pub mod bounds;
mod contender;
mod counter;
mod exit;
mod shape;
mod status;
mod text;
mod units;

pub use contender::ContenderId;
pub use counter::{Counter, INSTRUCTIONS};
pub use exit::Exit;
pub use shape::{Group, Shape};
pub use status::Status;
pub use text::{harmful, printable, printable_line};
pub use units::{Bytes, Interval, Micros};
