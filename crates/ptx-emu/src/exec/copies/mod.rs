//! Copies that go on by themselves: issued by an instruction, completed later.

pub(crate) mod bulk;
pub(crate) mod cancel;
pub(crate) mod complete;
pub(crate) mod issue;
pub(crate) mod lane;
pub(crate) mod tensor;
