//! The run file: what a sweep saw, one JSON object a line, appended as it is
//! known. Everything right of it in the pipeline reads only this.

pub mod schema;
