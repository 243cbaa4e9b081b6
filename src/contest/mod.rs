//! What is only about the contest: the jury and how well it foresaw, the rounds
//! and what they promoted, which idea bought what over its parent, and what
//! choosing per shape would bring. Nothing else may need this room.

pub(crate) mod dispatch;
pub(crate) mod jury;
pub(crate) mod lineage;
pub(crate) mod rounds;
pub(crate) mod story;
