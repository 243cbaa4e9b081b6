//! The contest alone: the jury and its accuracy, the rounds and the designs they promoted, the gain
//! of each idea over its parent, and the gain of choosing per shape. No other module may use this
//! one.

pub(crate) mod dispatch_table;
pub(crate) mod jury;
pub(crate) mod lineage;
pub(crate) mod rounds;
pub(crate) mod story;
