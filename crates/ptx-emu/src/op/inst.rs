//! The instructions themselves.

use super::{
    Addr, Atom, AtomOp, BarKind, BoolOp, BulkCopy, Clock, Cmp, CvtMods, Extend, FBin, FMods, FTest,
    FUn, Fence, HFmt, I16x2, IBin, ICount, IUn, MapField, MatrixMove, Mbar, Mma, Num, Order, P, Pc,
    PrmtMode, R32, R64, Redux, Scope, ShflMode, Slot, SlotList, Space, TensorCopy, Video, Vote, W,
    Wgmma, Wmma, WmmaMove,
};

/// Instructions. `d` is always the destination.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    // ---- integer ----
    /// d = a op b on 16- or 32-bit values
    Bin32 {
        w: W,
        op: IBin,
        d: R32,
        a: R32,
        b: R32,
    },
    /// d = a op b (not for shifts)
    Bin64 { op: IBin, d: R64, a: R64, b: R64 },
    /// 64-bit shift by a 32-bit amount (Shl, ShrS, ShrU)
    Shift64 { op: IBin, d: R64, a: R64, b: R32 },
    /// packed 16x2
    Bin16x2 { op: I16x2, d: R32, a: R32, b: R32 },
    /// d = op a
    Un32 { w: W, op: IUn, d: R32, a: R32 },
    /// d = op a
    Un64 { op: IUn, d: R64, a: R64 },
    /// popc, clz, bfind of a 32-bit value
    Count32 { op: ICount, d: R32, a: R32 },
    /// … of a 64-bit value
    Count64 { op: ICount, d: R32, a: R64 },
    /// d = low half of a·b + c
    MadLo32 {
        w: W,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// d = high half of a·b, plus c (`sat`: `mad.hi.sat.s32`)
    MadHi32 {
        w: W,
        signed: bool,
        sat: bool,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// d = low half of a·b + c
    MadLo64 { d: R64, a: R64, b: R64, c: R64 },
    /// d = high half of a·b, plus c
    MadHi64 {
        signed: bool,
        d: R64,
        a: R64,
        b: R64,
        c: R64,
    },
    /// d = a·b, 32×32→64
    MulWide32 {
        signed: bool,
        d: R64,
        a: R32,
        b: R32,
    },
    /// d = a·b + c, 32×32+64→64
    MadWide32 {
        signed: bool,
        d: R64,
        a: R32,
        b: R32,
        c: R64,
    },
    /// d = a·b, 16×16→32
    MulWide16 {
        signed: bool,
        d: R32,
        a: R32,
        b: R32,
    },
    /// d = a·b + c, 16×16+32→32
    MadWide16 {
        signed: bool,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// d = mul24(a, b) + c; `hi` takes bits 16–47 of the product
    Mad24 {
        signed: bool,
        hi: bool,
        sat: bool,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// add/sub with carry: uses the lane's carry flag if `carry_in`, sets it if `carry_out`
    Carry32 {
        sub: bool,
        carry_in: bool,
        carry_out: bool,
        d: R32,
        a: R32,
        b: R32,
    },
    /// 64-bit form
    Carry64 {
        sub: bool,
        carry_in: bool,
        carry_out: bool,
        d: R64,
        a: R64,
        b: R64,
    },
    /// mad.lo/hi .cc and madc
    MadCarry32 {
        hi: bool,
        signed: bool,
        carry_in: bool,
        carry_out: bool,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// 64-bit form
    MadCarry64 {
        hi: bool,
        signed: bool,
        carry_in: bool,
        carry_out: bool,
        d: R64,
        a: R64,
        b: R64,
        c: R64,
    },
    /// d = |a − b| + c
    Sad32 {
        w: W,
        signed: bool,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// 64-bit form
    Sad64 {
        signed: bool,
        d: R64,
        a: R64,
        b: R64,
        c: R64,
    },
    /// any bitwise function of three inputs
    Lop3 {
        lut: u8,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// `lop3.BoolOp`: also p = (d != 0) op q
    Lop3Pred {
        lut: u8,
        or: bool,
        d: Slot,
        p: P,
        q: P,
        a: R32,
        b: R32,
        c: R32,
    },
    /// byte permute
    Prmt {
        mode: PrmtMode,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// bit-field extract: b = position, c = length
    Bfe32 {
        signed: bool,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// 64-bit value, 32-bit position and length
    Bfe64 {
        signed: bool,
        d: R64,
        a: R64,
        b: R32,
        c: R32,
    },
    /// bit-field insert: field a into e at position b, length c
    Bfi32 {
        d: R32,
        a: R32,
        e: R32,
        b: R32,
        c: R32,
    },
    /// 64-bit form
    Bfi64 {
        d: R64,
        a: R64,
        e: R64,
        b: R32,
        c: R32,
    },
    /// `bmsk`: c − mask of b bits from position a
    Bmsk { clamp: bool, d: R32, a: R32, b: R32 },
    /// `szext`: sign- or zero-extend a at bit b
    Szext {
        signed: bool,
        clamp: bool,
        d: R32,
        a: R32,
        b: R32,
    },
    /// funnel shift of b:a by c
    Shf {
        left: bool,
        wrap: bool,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// `fns`: n-th set bit
    Fns {
        d: R32,
        mask: R32,
        base: R32,
        offset: R32,
    },
    /// four-way byte dot product
    Dp4a {
        a_signed: bool,
        b_signed: bool,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// two-way 16×8 dot product
    Dp2a {
        a_signed: bool,
        b_signed: bool,
        hi: bool,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    // ---- float ----
    /// f32 binary
    F32Bin {
        op: FBin,
        m: FMods,
        d: R32,
        a: R32,
        b: R32,
    },
    /// f32 fused multiply-add
    F32Fma {
        m: FMods,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// f32 unary
    F32Un { op: FUn, m: FMods, d: R32, a: R32 },
    /// f64 binary
    F64Bin {
        op: FBin,
        m: FMods,
        d: R64,
        a: R64,
        b: R64,
    },
    /// f64 fused multiply-add
    F64Fma {
        m: FMods,
        d: R64,
        a: R64,
        b: R64,
        c: R64,
    },
    /// f64 unary
    F64Un { op: FUn, m: FMods, d: R64, a: R64 },
    /// packed f32x2 in 64 bits: Add, Sub, Mul
    F32x2Bin {
        op: FBin,
        m: FMods,
        d: R64,
        a: R64,
        b: R64,
    },
    /// packed f32x2 fma
    F32x2Fma {
        m: FMods,
        d: R64,
        a: R64,
        b: R64,
        c: R64,
    },
    /// half binary
    HBin {
        fmt: HFmt,
        op: FBin,
        m: FMods,
        d: R32,
        a: R32,
        b: R32,
    },
    /// half fused multiply-add (`oob`: `.oob` form)
    HFma {
        fmt: HFmt,
        m: FMods,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// half unary
    HUn {
        fmt: HFmt,
        op: FUn,
        m: FMods,
        d: R32,
        a: R32,
    },
    /// mixed precision `add/sub/fma.f32.{f16,bf16}`: a (and b) are 16-bit, c is f32
    FmaMixed {
        from: Num,
        m: FMods,
        d: R32,
        a: R32,
        b: R32,
        c: R32,
    },
    /// three-input min/max `min.f32 d,a,b,c` uses two F32Bin; testp
    Testp32 { test: FTest, d: P, a: R32 },
    /// testp.f64
    Testp64 { test: FTest, d: P, a: R64 },
    // ---- compare and select ----
    /// d = a cmp b on 16- or 32-bit integers
    SetpI32 {
        w: W,
        cmp: Cmp,
        signed: bool,
        d: P,
        a: R32,
        b: R32,
    },
    /// d = a cmp b on 64-bit integers
    SetpI64 {
        cmp: Cmp,
        signed: bool,
        d: P,
        a: R64,
        b: R64,
    },
    /// d = a cmp b on f32
    SetpF32 {
        cmp: Cmp,
        ftz: bool,
        d: P,
        a: R32,
        b: R32,
    },
    /// d = a cmp b on f64
    SetpF64 { cmp: Cmp, d: P, a: R64, b: R64 },
    /// d (and q for the high half of packed forms) = a cmp b on halves
    SetpH {
        fmt: HFmt,
        cmp: Cmp,
        ftz: bool,
        d: P,
        q: Option<P>,
        a: R32,
        b: R32,
    },
    /// d = a op b, either negated first
    PLogic {
        op: BoolOp,
        d: P,
        a: P,
        na: bool,
        b: P,
        nb: bool,
    },
    /// d = a or !a
    PMov { d: P, a: P, negate: bool },
    /// d = constant
    PConst { d: P, value: bool },
    /// d = p ? a : b
    Selp32 { d: R32, a: R32, b: R32, p: P },
    /// d = p ? a : b
    Selp64 { d: R64, a: R64, b: R64, p: P },
    /// d = (c ≥ 0 as s32) ? a : b
    Slct32 {
        d: R32,
        a: R32,
        b: R32,
        c: R32,
        float: bool,
    },
    /// 64-bit values
    Slct64 {
        d: R64,
        a: R64,
        b: R64,
        c: R32,
        float: bool,
    },
    // ---- moves and conversions ----
    /// d = a
    Mov32 { d: R32, a: R32 },
    /// d = a
    Mov64 { d: R64, a: R64 },
    /// d = {lo, hi} of 32 bits each
    Pack64 { d: R64, lo: R32, hi: R32 },
    /// {lo, hi} = a; sinks allowed
    Unpack64 { lo: Slot, hi: Slot, a: R64 },
    /// d = {lo, hi} of 16 bits each
    Pack32 { d: R32, lo: R32, hi: R32 },
    /// {lo, hi} = a; sinks allowed
    Unpack32 { lo: Slot, hi: Slot, a: R32 },
    /// general pack: parts of `bits` each, low first, into d (any width)
    PackN { d: Slot, bits: u8, parts: SlotList },
    /// general unpack
    UnpackN { a: Slot, bits: u8, parts: SlotList },
    /// scalar conversion; slot widths follow the types
    Cvt {
        from: Num,
        to: Num,
        m: CvtMods,
        d: Slot,
        a: Slot,
    },
    /// two f32 into packed halves or fp8/fp4 pairs: d = {hi: a, lo: b}
    CvtPack {
        to: Num,
        m: CvtMods,
        d: R32,
        a: R32,
        b: R32,
    },
    /// packed pair of `to` from a packed half pair (`cvt.…e4m3x2.f16x2`) or back
    /// (`cvt.rn.f16x2.e4m3x2`, `cvt.rn.bf16x2.ue8m0x2`); element types given
    CvtPair {
        from: Num,
        to: Num,
        m: CvtMods,
        d: R32,
        a: R32,
    },
    /// `cvt.pack.sat`: two s32 saturated to `to` (S16,U16,S8,U8,S4,U4), above the low part of c
    CvtPackInt {
        to: Num,
        from_signed: bool,
        d: R32,
        a: R32,
        b: R32,
        c: Option<R32>,
    },
    /// space-to-generic (`to_generic`) or generic-to-space address conversion, 64-bit
    Cvta {
        space: Space,
        to_generic: bool,
        d: R64,
        a: R64,
    },
    /// d = generic address a lies in the space
    Isspacep { space: Space, d: P, a: R64 },
    /// shared::cluster address of the same offset in CTA rank b; 32-bit addresses
    Mapa32 { d: R32, a: R32, b: R32 },
    /// 64-bit; generic addresses if `generic`
    Mapa64 {
        generic: bool,
        d: R64,
        a: R64,
        b: R32,
    },
    /// CTA rank of a shared::cluster address
    GetCtaRank { generic: bool, d: R32, a: Slot },
    /// d = clock register
    ReadClock32 { clock: Clock, d: R32 },
    /// d = clock register
    ReadClock64 { clock: Clock, d: R64 },
    /// d = mask of lanes that execute this
    Activemask { d: R32 },
    // ---- memory ----
    /// load `d.len` elements of `width` bytes; alignment is width·len
    Ld {
        space: Space,
        order: Order,
        width: u8,
        ext: Extend,
        d: SlotList,
        addr: Addr,
    },
    /// store; `Slot::Sink` never occurs
    St {
        space: Space,
        order: Order,
        width: u8,
        s: SlotList,
        addr: Addr,
    },
    /// atom and red
    Atom(Box<Atom>),
    /// prefetch, discard, applypriority, createpolicy-less hints: checked address only
    Prefetch { space: Space, addr: Addr },
    /// `createpolicy.*`: d = an opaque policy
    CreatePolicy { d: R64 },
    /// `st.async` (with mbarrier complete_tx) to shared::cluster
    StAsync {
        width: u8,
        s: SlotList,
        addr: Addr,
        mbar: Addr,
    },
    /// `red.async` to shared::cluster with complete_tx
    RedAsync {
        op: AtomOp,
        ty: Num,
        b: Slot,
        addr: Addr,
        mbar: Addr,
    },
    // ---- control ----
    /// Branch for the lanes of the guard. `reconverge`: first instruction all paths meet at
    /// (immediate post-dominator of this branch), or [`super::NO_RECONVERGENCE`].
    Bra {
        target: Pc,
        reconverge: Pc,
        uniform: bool,
    },
    /// Jump table: lane goes to `targets[index]`
    Brx {
        index: R32,
        targets: Box<[Pc]>,
        reconverge: Pc,
    },
    /// Call; arguments and results are moved by the lowering. Slots and local bytes are static per
    /// function, so a call that may re-enter its caller stands between the two ops below.
    Call { target: Pc },
    /// Pushes the registers and local bytes of `Program::frames[frame]` on each lane's own stack
    SaveFrame { frame: u32 },
    /// Pops what the matching [`Op::SaveFrame`] pushed
    RestoreFrame { frame: u32 },
    /// Indirect call: the register holds the address of one of the `targets`
    CallIndirect {
        target: R64,
        targets: Box<[(u64, Pc)]>,
        reconverge: Pc,
    },
    /// Return from a device function; in the kernel: exit
    Ret,
    /// Thread ends
    Exit,
    /// `trap`
    Trap,
    /// `brkpt`
    Brkpt,
    /// `__assertfail(message, file, line, function, …)`: generic string addresses
    AssertFail {
        message: R64,
        file: R64,
        line: R32,
        function: R64,
    },
    /// `vprintf(format, args)`; d = number of arguments read
    Printf { d: R32, format: R64, args: R64 },
    /// no effect (`pmevent`, `nanosleep`, hints)
    Nop,
    /// give other warps a turn
    Nanosleep { nanos: R32 },
    // ---- synchronisation ----
    /// `bar`/`barrier.cta`; threads = participating thread count or None for all
    Bar {
        kind: BarKind,
        id: R32,
        threads: Option<R32>,
        aligned: bool,
    },
    /// `barrier.cluster.arrive`; releases unless relaxed
    ClusterArrive { order: Order },
    /// `barrier.cluster.wait`, which acquires
    ClusterWait,
    /// `bar.warp.sync mask`
    WarpSync { mask: R32 },
    /// `shfl.sync`: p (optional) = source lane in range
    Shfl {
        mode: ShflMode,
        d: R32,
        p: Option<P>,
        a: R32,
        b: R32,
        c: R32,
        mask: R32,
    },
    /// `vote.sync` with a predicate result (All, Any, Uni)
    VotePred {
        vote: Vote,
        d: P,
        p: P,
        negate: bool,
        mask: R32,
    },
    /// `vote.sync.ballot`
    Ballot {
        d: R32,
        p: P,
        negate: bool,
        mask: R32,
    },
    /// `match.any` (`all` false) / `match.all` with optional predicate
    Match {
        all: bool,
        d: R32,
        p: Option<P>,
        a: Slot,
        mask: R32,
    },
    /// `redux.sync`
    Redux {
        op: Redux,
        d: R32,
        a: R32,
        mask: R32,
    },
    /// `elect.sync d|p, mask`
    Elect { d: Slot, p: P, mask: R32 },
    /// `fence`, `membar`; `map` is the tensor map a `fence.proxy.tensormap` acquires
    Fence { fence: Fence, map: Option<Addr> },
    /// mbarrier operations
    Mbar(Box<Mbar>),
    // ---- asynchronous copies ----
    /// `cp.async` of `bytes` (4, 8, 16) with optional source size (rest zero-filled) or ignore-src
    CpAsync {
        dst: Addr,
        src: Addr,
        bytes: u8,
        src_bytes: Option<R32>,
        ignore: Option<P>,
    },
    /// `cp.async.commit_group`
    CpAsyncCommit,
    /// `cp.async.wait_group n`; `cp.async.wait_all` is n = 0 with `all` (uncommitted included)
    CpAsyncWait { n: u32, all: bool },
    /// `cp.async.mbarrier.arrive(.noinc)`
    CpAsyncMbarArrive {
        noinc: bool,
        space: Space,
        addr: Addr,
    },
    /// `cp.async.bulk` and `cp.reduce.async.bulk`
    Bulk(Box<BulkCopy>),
    /// `cp.async.bulk.tensor`, its reduce and prefetch forms
    Tensor(Box<TensorCopy>),
    /// `cp.async.bulk.commit_group`
    BulkCommit,
    /// `cp.async.bulk.wait_group n`; `read`: sources read is enough
    BulkWait { n: u32, read: bool },
    /// `tensormap.replace`: map at `addr`, new field value in `value`
    TensormapReplace {
        field: MapField,
        space: Space,
        addr: Addr,
        value: Slot,
    },
    /// `tensormap.cp_fenceproxy`: copy 128 bytes shared → global and release them as a tensor map
    TensormapCp {
        scope: Scope,
        dst: Addr,
        src: Addr,
        bytes: u32,
    },
    /// `prefetch.tensormap`: map address checked only
    PrefetchTensormap { addr: Addr },
    // ---- tensor cores ----
    /// `wgmma.mma_async`
    Wgmma(Box<Wgmma>),
    /// `wgmma.fence`
    WgmmaFence,
    /// `wgmma.commit_group`
    WgmmaCommit,
    /// `wgmma.wait_group n`
    WgmmaWait { n: u32 },
    /// `mma.sync`
    Mma(Box<Mma>),
    /// `wmma.mma`
    Wmma(Box<Wmma>),
    /// `wmma.load`, `wmma.store`
    WmmaMove(Box<WmmaMove>),
    /// `ldmatrix`, `stmatrix`
    MatrixMove(Box<MatrixMove>),
    /// `movmatrix.sync.aligned.m8n8.trans.b16`
    Movmatrix { d: R32, a: R32 },
    /// `vadd`, `vabsdiff4`, …
    Video(Box<Video>),
    // ---- the rest of Hopper ----
    /// `setmaxnreg.inc/.dec`
    Setmaxnreg { inc: bool, count: u32 },
    /// `griddepcontrol.wait` / `.launch_dependents`
    GridDep { wait: bool },
}
