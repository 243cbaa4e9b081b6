//! The predecoded program: typed operations over dense register slots.
