//! A kernel.

/// Adds one to the first `n` numbers at `p`.
pub(crate) const PTX: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry add_one(.param .u64 p, .param .u32 n)
{
    .reg .u32 %r<4>;
    .reg .u64 %d<3>;
    .reg .pred %q;
    ld.param.u64 %d0, [p];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %q, %r1, %r0;
    @%q ret;
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d2, %d0, %d1;
    ld.global.u32 %r2, [%d2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%d2], %r2;
    ret;
}
";
