//! Device memory as the host sees it.
