//! Lowers the syntax tree to the predecoded program.
