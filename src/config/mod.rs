//! A round: the question asked, who competes, on what, and how it is judged.
//! Read from TOML and checked once; what leaves here is right in itself.

mod round;

pub use round::{
    Baseline, Distribution, Gate, Juror, Jury, Measurement, Round, Selection, Validation,
};
