//! Runs warps of a predecoded program.
