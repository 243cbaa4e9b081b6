//! What is only about the contest: the jury and how well it foresaw, the rounds
//! and whom they promoted, which idea bought what over its parent, and what
//! choosing per shape would bring. Nothing else may need this room.

pub mod dispatch;
pub mod jury;
pub mod lineage;
pub mod rounds;
pub mod story;
