//! What a launch did, counted.
