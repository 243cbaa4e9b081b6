//! Experiments with a known truth, to check the statistics against.
