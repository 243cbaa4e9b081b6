//! What can end a launch early, and where it happened.
