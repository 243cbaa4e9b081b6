//! dgx
