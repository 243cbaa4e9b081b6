//! Instructions that only compute: they change the registers of one warp.

pub(crate) mod bits;
pub(crate) mod carry;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod exchange;
pub(crate) mod float;
pub(crate) mod integer;
pub(crate) mod joint;
