//! The instruction set: one table, from which everything about an instruction comes.
//!
//! A row reads `Name { modifiers } [written] = [read] => class, unit;`. From it come the variant of
//! [`Op`], the [`Class`] it is counted under, the registers it reads and writes (for the allocation
//! of slots and for whoever follows values), and the part of the executor that runs it. If that is
//! one that reaches memory, the row also says when it `tells` other CTAs something. What has too
//! many operands for a row is a struct of its own: `Name(operand: Struct) => class, unit;`, and
//! says beside its fields which it writes ([`super::operand`]). Nothing is guessed: a row that
//! lacks one of these does not compile.

use super::operand::{Operand, Register, Role};
use super::{
    Addr, Atom, AtomOp, BarKind, BoolOp, BulkCopy, BulkDir, Clock, Cmp, CtaGroup, CvtMods, Extend,
    FBin, FMods, FTest, FUn, Fence, HFmt, I16x2, IBin, ICount, IUn, MapField, MatrixMove, Mbar,
    Mma, Num, Order, P, Pc, PrmtMode, R32, R64, Redux, Scope, ShflMode, Slot, SlotList, Space,
    SurfaceMove, TensorCopy, TextureRead, TmemCopy, TmemMma, TmemMove, Video, Vote, W, Wgmma, Wmma,
    WmmaMove,
};
use crate::counters::Class;

/// The part of the executor that runs an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Always by the interpreter's own loop. (The usual forms of others are, too.)
    Plain,
    /// 16-bit forms of what is plain at 32 bits.
    Integer,
    /// Everything else on integers, bit by bit or packed.
    Bits,
    /// Everything else on floats.
    Float,
    /// Comparisons, and choices by them.
    Compare,
    /// Conversions between types, packing and unpacking.
    Convert,
    /// Addresses as values.
    Address,
    /// What lanes of a warp tell each other.
    Exchange,
    /// Loads, stores and atomics.
    Memory,
    /// Where a warp goes on.
    Branch,
    /// Registers saved around calls.
    Frame,
    /// What the host gets to see.
    Report,
    /// Special registers and a warp's own state.
    Warp,
    /// What changes nothing that can be seen here.
    Hint,
    /// Barriers of warps, CTAs and clusters.
    Barrier,
    /// Copies that go on by themselves.
    Copy,
    /// Tensor cores and matrix moves.
    Matrix,
    /// Tensor memory and its tensor cores.
    TensorMemory,
}

impl Unit {
    /// Whether its instructions only compute: they read and write registers of their own lanes.
    pub(crate) fn computes(self) -> bool {
        matches!(
            self,
            Self::Plain
                | Self::Integer
                | Self::Bits
                | Self::Float
                | Self::Compare
                | Self::Convert
                | Self::Address
        )
    }
}

/// The table sends an instruction to a unit that does not know it; a test compares the two.
#[cold]
pub(crate) fn misrouted(op: &Op) -> ! {
    unreachable!("{op:?} is executed by another unit")
}

/// Only units that reach memory can tell other CTAs anything, and their rows must say.
macro_rules! tells {
    ($unit:ident, $tells:expr) => {
        $tells
    };
    (Memory) => {
        compile_error!("say when it tells other CTAs something")
    };
    (Copy) => {
        tells!(Memory)
    };
    (Matrix) => {
        tells!(Memory)
    };
    ($unit:ident) => {
        false
    };
}

macro_rules! instructions {
    ($(
        $(#[$doc:meta])*
        $name:ident
            $({ $($m:ident: $mt:ty),* } [$($w:ident: $wt:ty),*] = [$($r:ident: $rt:ty),*])?
            $(($b:ident: $bt:ty))?
            => $class:expr, $unit:ident $(, tells $tells:expr)?;
    )*) => {
        /// Instructions. `d` is always the destination.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) enum Op {
            $($(#[$doc])* $name $({ $($m: $mt,)* $($w: $wt,)* $($r: $rt,)* })? $((Box<$bt>))?,)*
        }

        impl Op {
            /// What it counts as.
            #[allow(unused_variables, reason = "few classes depend on operands")]
            pub(crate) fn class(&self) -> Class {
                use Class::*;
                match self {
                    $(Op::$name $({ $($m,)* $($w,)* $($r,)* })? $(($b))? => $class,)*
                }
            }

            /// Whether it may tell other CTAs something through global memory, or be told.
            #[allow(unused_variables, reason = "few depend on operands")]
            pub(crate) fn communicates(&self) -> bool {
                match self {
                    $(Op::$name $({ $($m,)* $($w,)* $($r,)* })? $(($b))? => {
                        tells!($unit $(, $tells)?)
                    })*
                }
            }

            /// Who executes it.
            pub(crate) fn unit(&self) -> Unit {
                match self {
                    $(Op::$name { .. } => Unit::$unit,)*
                }
            }

            /// Shows every register it names, as often as it names it; `pool` holds the lists.
            #[allow(unused_variables, reason = "modifiers are no registers")]
            pub(crate) fn registers(&self, pool: &[Slot], see: &mut dyn FnMut(Role, Register)) {
                match self {
                    $(Op::$name $({ $($m,)* $($w,)* $($r,)* })? $(($b))? => {
                        $($($w.visit(Role::Write, pool, see);)*)?
                        $($($r.visit(Role::Read, pool, see);)*)?
                        $($b.visit(Role::Read, pool, see);)?
                    })*
                }
            }
        }

        /// Every row by name, with its unit.
        #[cfg(test)]
        pub(crate) const ROWS: &[(&str, Unit)] = &[$((stringify!($name), Unit::$unit)),*];
    };
}

instructions! {
    // ---- integer ----
    /// d = a op b on 16- or 32-bit values
    Bin32 { w: W, op: IBin } [d: R32] = [a: R32, b: R32] => Int, Integer;
    /// d = a op b (not for shifts)
    Bin64 { op: IBin } [d: R64] = [a: R64, b: R64] => Int, Plain;
    /// 64-bit shift by a 32-bit amount (Shl, ShrS, ShrU)
    Shift64 { op: IBin } [d: R64] = [a: R64, b: R32] => Int, Plain;
    /// packed 16x2
    Bin16x2 { op: I16x2 } [d: R32] = [a: R32, b: R32] => Int, Bits;
    /// d = op a
    Un32 { w: W, op: IUn } [d: R32] = [a: R32] => Int, Bits;
    /// d = op a
    Un64 { op: IUn } [d: R64] = [a: R64] => Int, Bits;
    /// popc, clz, bfind of a 32-bit value
    Count32 { op: ICount } [d: R32] = [a: R32] => Int, Bits;
    /// … of a 64-bit value
    Count64 { op: ICount } [d: R32] = [a: R64] => Int, Bits;
    /// d = low half of a·b + c
    MadLo32 { w: W } [d: R32] = [a: R32, b: R32, c: R32] => Int, Integer;
    /// d = high half of a·b, plus c (`sat`: `mad.hi.sat.s32`)
    MadHi32 { w: W, signed: bool, sat: bool } [d: R32] = [a: R32, b: R32, c: R32] => Int, Bits;
    /// d = low half of a·b + c
    MadLo64 {} [d: R64] = [a: R64, b: R64, c: R64] => Int, Bits;
    /// d = high half of a·b, plus c
    MadHi64 { signed: bool } [d: R64] = [a: R64, b: R64, c: R64] => Int, Bits;
    /// d = a·b, 32×32→64
    MulWide32 { signed: bool } [d: R64] = [a: R32, b: R32] => Int, Plain;
    /// d = a·b + c, 32×32+64→64
    MadWide32 { signed: bool } [d: R64] = [a: R32, b: R32, c: R64] => Int, Plain;
    /// d = a·b, 16×16→32
    MulWide16 { signed: bool } [d: R32] = [a: R32, b: R32] => Int, Bits;
    /// d = a·b + c, 16×16+32→32
    MadWide16 { signed: bool } [d: R32] = [a: R32, b: R32, c: R32] => Int, Bits;
    /// d = mul24(a, b) + c; `hi` takes bits 16–47 of the product
    Mad24 { signed: bool, hi: bool, sat: bool } [d: R32] = [a: R32, b: R32, c: R32] => Int, Bits;
    /// add/sub with carry: uses the lane's carry flag if `carry_in`, sets it if `carry_out`
    Carry32 { sub: bool, carry_in: bool, carry_out: bool } [d: R32] = [a: R32, b: R32] => Int, Bits;
    /// 64-bit form
    Carry64 { sub: bool, carry_in: bool, carry_out: bool } [d: R64] = [a: R64, b: R64] => Int, Bits;
    /// mad.lo/hi .cc and madc
    MadCarry32 { hi: bool, signed: bool, carry_in: bool, carry_out: bool } [d: R32]
        = [a: R32, b: R32, c: R32] => Int, Bits;
    /// 64-bit form
    MadCarry64 { hi: bool, signed: bool, carry_in: bool, carry_out: bool } [d: R64]
        = [a: R64, b: R64, c: R64] => Int, Bits;
    /// d = |a − b| + c
    Sad32 { w: W, signed: bool } [d: R32] = [a: R32, b: R32, c: R32] => Int, Bits;
    /// 64-bit form
    Sad64 { signed: bool } [d: R64] = [a: R64, b: R64, c: R64] => Int, Bits;
    /// any bitwise function of three inputs
    Lop3 { lut: u8 } [d: R32] = [a: R32, b: R32, c: R32] => Int, Plain;
    /// `lop3.BoolOp`: also p = (d != 0) op q
    Lop3Pred { lut: u8, or: bool } [d: Slot, p: P] = [q: P, a: R32, b: R32, c: R32] => Int, Bits;
    /// byte permute
    Prmt { mode: PrmtMode } [d: R32] = [a: R32, b: R32, c: R32] => Int, Bits;
    /// bit-field extract: b = position, c = length
    Bfe32 { signed: bool } [d: R32] = [a: R32, b: R32, c: R32] => Int, Bits;
    /// 64-bit value, 32-bit position and length
    Bfe64 { signed: bool } [d: R64] = [a: R64, b: R32, c: R32] => Int, Bits;
    /// bit-field insert: field a into e at position b, length c
    Bfi32 {} [d: R32] = [a: R32, e: R32, b: R32, c: R32] => Int, Bits;
    /// 64-bit form
    Bfi64 {} [d: R64] = [a: R64, e: R64, b: R32, c: R32] => Int, Bits;
    /// `bmsk`: d = mask of b bits from position a
    Bmsk { clamp: bool } [d: R32] = [a: R32, b: R32] => Int, Bits;
    /// `szext`: sign- or zero-extend a at bit b
    Szext { signed: bool, clamp: bool } [d: R32] = [a: R32, b: R32] => Int, Bits;
    /// funnel shift of b:a by c
    Shf { left: bool, wrap: bool } [d: R32] = [a: R32, b: R32, c: R32] => Int, Bits;
    /// `fns`: n-th set bit
    Fns {} [d: R32] = [mask: R32, base: R32, offset: R32] => Int, Bits;
    /// four-way byte dot product
    Dp4a { a_signed: bool, b_signed: bool } [d: R32] = [a: R32, b: R32, c: R32] => Int, Bits;
    /// two-way 16×8 dot product
    Dp2a { a_signed: bool, b_signed: bool, hi: bool } [d: R32]
        = [a: R32, b: R32, c: R32] => Int, Bits;

    // ---- float ----
    /// f32 binary
    F32Bin { op: FBin, m: FMods } [d: R32] = [a: R32, b: R32] => Float, Plain;
    /// f32 fused multiply-add
    F32Fma { m: FMods } [d: R32] = [a: R32, b: R32, c: R32] => Float, Plain;
    /// f32 unary
    F32Un { op: FUn, m: FMods } [d: R32] = [a: R32] => unary(*op), Plain;
    /// f64 binary
    F64Bin { op: FBin, m: FMods } [d: R64] = [a: R64, b: R64] => Double, Float;
    /// f64 fused multiply-add
    F64Fma { m: FMods } [d: R64] = [a: R64, b: R64, c: R64] => Double, Float;
    /// f64 unary
    F64Un { op: FUn, m: FMods } [d: R64] = [a: R64] => unary(*op), Float;
    /// packed f32x2 in 64 bits: Add, Sub, Mul
    F32x2Bin { op: FBin, m: FMods } [d: R64] = [a: R64, b: R64] => Float, Float;
    /// packed f32x2 fma
    F32x2Fma { m: FMods } [d: R64] = [a: R64, b: R64, c: R64] => Float, Float;
    /// half binary
    HBin { fmt: HFmt, op: FBin, m: FMods } [d: R32] = [a: R32, b: R32] => Half, Plain;
    /// half fused multiply-add (`oob`: `.oob` form)
    HFma { fmt: HFmt, m: FMods } [d: R32] = [a: R32, b: R32, c: R32] => Half, Plain;
    /// half unary
    HUn { fmt: HFmt, op: FUn, m: FMods } [d: R32] = [a: R32] => unary(*op), Float;
    /// mixed precision `add/sub/fma.f32.{f16,bf16}`: a (and b) are 16-bit, c is f32
    FmaMixed { from: Num, m: FMods } [d: R32] = [a: R32, b: R32, c: R32] => Float, Float;
    /// `testp.f32`; three-input `min.f32` and `max.f32` are two [`Op::F32Bin`]
    Testp32 { test: FTest } [d: P] = [a: R32] => Float, Compare;
    /// `testp.f64`
    Testp64 { test: FTest } [d: P] = [a: R64] => Double, Compare;

    // ---- compare and select ----
    /// d = a cmp b on 16- or 32-bit integers
    SetpI32 { w: W, cmp: Cmp, signed: bool } [d: P] = [a: R32, b: R32] => Int, Compare;
    /// d = a cmp b on 64-bit integers
    SetpI64 { cmp: Cmp, signed: bool } [d: P] = [a: R64, b: R64] => Int, Plain;
    /// d = a cmp b on f32
    SetpF32 { cmp: Cmp, ftz: bool } [d: P] = [a: R32, b: R32] => Float, Plain;
    /// d = a cmp b on f64
    SetpF64 { cmp: Cmp } [d: P] = [a: R64, b: R64] => Double, Compare;
    /// d (and q for the high half of packed forms) = a cmp b on halves
    SetpH { fmt: HFmt, cmp: Cmp, ftz: bool } [d: P, q: Option<P>] = [a: R32, b: R32] => Half, Compare;
    /// d = a op b, either negated first
    PLogic { op: BoolOp, na: bool, nb: bool } [d: P] = [a: P, b: P] => Int, Plain;
    /// d = a or !a
    PMov { negate: bool } [d: P] = [a: P] => Int, Plain;
    /// d = constant
    PConst { value: bool } [d: P] = [] => Int, Plain;
    /// d = p ? a : b
    Selp32 {} [d: R32] = [a: R32, b: R32, p: P] => Int, Plain;
    /// d = p ? a : b
    Selp64 {} [d: R64] = [a: R64, b: R64, p: P] => Int, Plain;
    /// d = (c ≥ 0 as s32) ? a : b
    Slct32 { float: bool } [d: R32] = [a: R32, b: R32, c: R32] => Int, Compare;
    /// 64-bit values
    Slct64 { float: bool } [d: R64] = [a: R64, b: R64, c: R32] => Int, Compare;

    // ---- moves and conversions ----
    /// d = a
    Mov32 {} [d: R32] = [a: R32] => Int, Plain;
    /// d = a
    Mov64 {} [d: R64] = [a: R64] => Int, Plain;
    /// d = {lo, hi} of 32 bits each
    Pack64 {} [d: R64] = [lo: R32, hi: R32] => Int, Plain;
    /// {lo, hi} = a; sinks allowed
    Unpack64 {} [lo: Slot, hi: Slot] = [a: R64] => Int, Plain;
    /// d = {lo, hi} of 16 bits each
    Pack32 {} [d: R32] = [lo: R32, hi: R32] => Int, Plain;
    /// {lo, hi} = a; sinks allowed
    Unpack32 {} [lo: Slot, hi: Slot] = [a: R32] => Int, Plain;
    /// general pack: parts of `bits` each, low first, into d (any width)
    PackN { bits: u8 } [d: Slot] = [parts: SlotList] => Int, Convert;
    /// general unpack
    UnpackN { bits: u8 } [parts: SlotList] = [a: Slot] => Int, Convert;
    /// scalar conversion; slot widths follow the types
    Cvt { from: Num, to: Num, m: CvtMods } [d: Slot] = [a: Slot] => conversion(*from, *to), Convert;
    /// two f32 into packed halves or fp8/fp4 pairs: d = {hi: a, lo: b}
    CvtPack { to: Num, m: CvtMods } [d: R32] = [a: R32, b: R32] => Convert, Convert;
    /// `cvt.rs`: two or four f32, the first on top, rounded by random bits
    CvtStochastic { to: Num, m: CvtMods } [d: R32]
        = [from: SlotList, random: R32] => Convert, Convert;
    /// `cvt.scaled::n2::ue8m0` and conversions of s2f6 (`Num::S2f6`): a pair to bf16, or two f32 (or
    /// a pair of bf16, `b` absent) to s2f6
    CvtScaled { from: Num, to: Num, m: CvtMods } [d: R32]
        = [a: R32, b: Option<R32>, scales: R32] => Convert, Convert;
    /// packed pair of `to` from a packed half pair (`cvt.…e4m3x2.f16x2`) or back
    /// (`cvt.rn.f16x2.e4m3x2`, `cvt.rn.bf16x2.ue8m0x2`); element types given
    CvtPair { from: Num, to: Num, m: CvtMods } [d: R32] = [a: R32] => Convert, Convert;
    /// `cvt.pack.sat`: two s32 saturated to `to` (S16,U16,S8,U8,S4,U4), above the low part of c
    CvtPackInt { to: Num, from_signed: bool } [d: R32]
        = [a: R32, b: R32, c: Option<R32>] => Convert, Convert;
    /// space-to-generic (`to_generic`) or generic-to-space address conversion, 64-bit
    Cvta { space: Space, to_generic: bool } [d: R64] = [a: R64] => Int, Address;
    /// d = generic address a lies in the space
    Isspacep { space: Space } [d: P] = [a: R64] => Int, Address;
    /// shared::cluster address of the same offset in CTA rank b; 32-bit addresses
    Mapa32 {} [d: R32] = [a: R32, b: R32] => Int, Address;
    /// 64-bit; generic addresses if `generic`
    Mapa64 { generic: bool } [d: R64] = [a: R64, b: R32] => Int, Address;
    /// CTA rank of a shared::cluster address
    GetCtaRank { generic: bool } [d: R32] = [a: Slot] => Int, Address;
    /// d = clock register
    ReadClock32 { clock: Clock } [d: R32] = [] => Int, Warp;
    /// d = clock register
    ReadClock64 { clock: Clock } [d: R64] = [] => Int, Warp;
    /// d = mask of lanes that execute this
    Activemask {} [d: R32] = [] => Int, Warp;

    // ---- memory ----
    /// load `d.len` elements of `width` bytes; alignment is width·len
    Ld { space: Space, order: Order, width: u8, ext: Extend } [d: SlotList]
        = [addr: Addr] => memory(*space), Memory, tells ordered(*space, *order);
    /// store; `Slot::Sink` never occurs
    St { space: Space, order: Order, width: u8 } []
        = [s: SlotList, addr: Addr] => memory(*space), Memory, tells ordered(*space, *order);
    /// atom and red
    Atom(atom: Atom) => memory(atom.space), Memory, tells beyond_cta(atom.space);
    /// `prefetch`, `discard`, `applypriority`: changes nothing here, wherever it points
    Prefetch { space: Space } [] = [addr: Addr] => memory(*space), Hint;
    /// `createpolicy.*`: d = an opaque policy
    CreatePolicy {} [d: R64] = [] => Int, Warp;
    /// `st.async` (with mbarrier complete_tx) to shared::cluster
    StAsync { width: u8 } [] = [s: SlotList, addr: Addr, mbar: Addr] => Async, Copy, tells false;
    /// `st.bulk`: zeros in the CTA's own shared memory
    StBulk {} [] = [bytes: R64, addr: Addr] => Shared, Copy, tells false;
    /// `tex`, `tld4`
    Texture(read: TextureRead) => Global, Copy, tells false;
    /// `suld`, `sust`
    Surface(moved: SurfaceMove) => Global, Copy, tells false;
    /// `red.async` to shared::cluster with complete_tx
    RedAsync { op: AtomOp, ty: Num } [] = [b: Slot, addr: Addr, mbar: Addr] => Async, Copy, tells false;

    // ---- control ----
    /// Branch for the lanes of the guard. `reconverge`: first instruction all paths meet at
    /// (immediate post-dominator of this branch), or [`super::NO_RECONVERGENCE`].
    Bra { target: Pc, reconverge: Pc, uniform: bool } [] = [] => Control, Branch;
    /// Jump table: lane goes to `targets[index]`
    Brx { targets: Box<[Pc]>, reconverge: Pc } [] = [index: R32] => Control, Branch;
    /// Call; arguments and results are moved by the lowering. Slots and local bytes are static per
    /// function, so a call that may re-enter its caller stands between the two ops below.
    Call { target: Pc } [] = [] => Control, Branch;
    /// Pushes the registers and local bytes of `Program::frames[frame]` on each lane's own stack
    SaveFrame { frame: u32 } [] = [] => Int, Frame;
    /// Pops what the matching [`Op::SaveFrame`] pushed
    RestoreFrame { frame: u32 } [] = [] => Int, Frame;
    /// Indirect call: the register holds the address of one of the `targets`
    CallIndirect { targets: Box<[(u64, Pc)]>, reconverge: Pc } [] = [target: R64] => Control, Branch;
    /// Return from a device function; in the kernel: exit
    Ret => Control, Branch;
    /// Thread ends
    Exit => Control, Branch;
    /// `trap`
    Trap => Control, Report;
    /// `brkpt`
    Brkpt => Control, Report;
    /// `__assertfail(message, file, line, function, …)`: generic string addresses
    AssertFail {} [] = [message: R64, file: R64, line: R32, function: R64] => Control, Report;
    /// `vprintf(format, args)`; d = number of arguments read
    Printf {} [d: R32] = [format: R64, args: R64] => Control, Report;
    /// no effect (`pmevent` and other hints)
    Nop => Control, Hint;
    /// give other warps a turn
    Nanosleep {} [] = [nanos: R32] => Control, Warp;

    // ---- synchronisation ----
    /// `bar`/`barrier.cta`; threads = participating thread count or None for all
    Bar { aligned: bool } [] = [kind: BarKind, id: R32, threads: Option<R32>] => Sync, Barrier;
    /// `barrier.cluster.arrive`; releases unless relaxed
    ClusterArrive { order: Order } [] = [] => Sync, Barrier;
    /// `barrier.cluster.wait`, which acquires
    ClusterWait => Sync, Barrier;
    /// `bar.warp.sync mask`
    WarpSync {} [] = [mask: R32] => Sync, Exchange;
    /// `shfl.sync`: p (optional) = source lane in range
    Shfl { mode: ShflMode } [d: R32, p: Option<P>]
        = [a: R32, b: R32, c: R32, mask: R32] => Sync, Exchange;
    /// `vote.sync` with a predicate result (All, Any, Uni)
    VotePred { vote: Vote, negate: bool } [d: P] = [p: P, mask: R32] => Sync, Exchange;
    /// `vote.sync.ballot`
    Ballot { negate: bool } [d: R32] = [p: P, mask: R32] => Sync, Exchange;
    /// `match.any` (`all` false) / `match.all` with optional predicate
    Match { all: bool } [d: R32, p: Option<P>] = [a: Slot, mask: R32] => Sync, Exchange;
    /// `redux.sync`
    Redux { op: Redux } [d: R32] = [a: R32, mask: R32] => Sync, Exchange;
    /// `elect.sync d|p, mask`
    Elect {} [d: Slot, p: P] = [mask: R32] => Sync, Exchange;
    /// `fence`, `membar`; `map` is the tensor map a `fence.proxy.tensormap` acquires
    Fence { fence: Fence } [] = [map: Option<Addr>] => Sync, Barrier;
    /// mbarrier operations
    Mbar(mbar: Mbar) => Sync, Barrier;

    // ---- asynchronous copies ----
    /// `cp.async` of `bytes` (4, 8, 16) with optional source size (rest zero-filled) or ignore-src
    CpAsync { bytes: u8 } []
        = [dst: Addr, src: Addr, src_bytes: Option<R32>, ignore: Option<P>] => Async, Copy, tells false;
    /// `cp.async.commit_group`
    CpAsyncCommit => Async, Copy, tells false;
    /// `cp.async.wait_group n`; `cp.async.wait_all` is n = 0 with `all` (uncommitted included)
    CpAsyncWait { n: u32, all: bool } [] = [] => Async, Copy, tells false;
    /// `cp.async.mbarrier.arrive(.noinc)`
    CpAsyncMbarArrive { noinc: bool, space: Space } [] = [addr: Addr] => Async, Copy, tells false;
    /// `cp.async.bulk` and `cp.reduce.async.bulk`
    Bulk(copy: BulkCopy) => Async, Copy,
        tells copy.dir == BulkDir::SharedToGlobal && copy.reduce.is_some();
    /// `cp.async.bulk.tensor`, its reduce and prefetch forms
    Tensor(copy: TensorCopy) => Async, Copy, tells copy.reduce.is_some();
    /// `clusterlaunchcontrol.try_cancel`: asks for a cluster that has not been launched
    TryCancel { multicast: bool } [] = [dst: Addr, mbar: Addr] => Async, Copy, tells true;
    /// `cp.async.bulk.commit_group`
    BulkCommit => Async, Copy, tells false;
    /// `cp.async.bulk.wait_group n`; `read`: sources read is enough
    BulkWait { n: u32, read: bool } [] = [] => Async, Copy, tells false;
    /// `tensormap.replace`: map at `addr`, new field value in `value`
    TensormapReplace { field: MapField, space: Space } []
        = [addr: Addr, value: Slot] => Async, Copy, tells false;
    /// `tensormap.cp_fenceproxy`: copy 128 bytes shared → global and release them as a tensor map
    TensormapCp { scope: Scope, bytes: u32 } [] = [dst: Addr, src: Addr] => Async, Copy, tells false;
    /// `prefetch.tensormap`: changes nothing here
    PrefetchTensormap {} [] = [addr: Addr] => Async, Hint;

    // ---- tensor cores ----
    /// `wgmma.mma_async`
    Wgmma(product: Wgmma) => Tensor, Matrix, tells false;
    /// `wgmma.fence`
    WgmmaFence => Tensor, Matrix, tells false;
    /// `wgmma.commit_group`
    WgmmaCommit => Tensor, Matrix, tells false;
    /// `wgmma.wait_group n`
    WgmmaWait { n: u32 } [] = [] => Tensor, Matrix, tells false;
    /// `mma.sync`
    Mma(product: Mma) => Tensor, Matrix, tells false;
    /// `wmma.mma`
    Wmma(product: Wmma) => Tensor, Matrix, tells false;
    /// `wmma.load`, `wmma.store`
    WmmaMove(tile: WmmaMove) => memory(tile.space), Matrix, tells false;
    /// `ldmatrix`, `stmatrix`
    MatrixMove(tile: MatrixMove) => Shared, Matrix, tells false;
    /// `movmatrix.sync.aligned.m8n8.trans.b16`
    Movmatrix {} [d: R32] = [a: R32] => Int, Matrix, tells false;
    /// `vadd`, `vabsdiff4`, …
    Video(video: Video) => Int, Bits;

    // ---- tensor memory ----
    /// `tcgen05.alloc`: the address goes to shared memory
    TmemAlloc { group: CtaGroup, space: Space } [] = [dst: Addr, columns: R32] => Tensor, TensorMemory;
    /// `tcgen05.dealloc`
    TmemDealloc { group: CtaGroup } [] = [at: R32, columns: R32] => Tensor, TensorMemory;
    /// `tcgen05.relinquish_alloc_permit`
    TmemRelinquish { group: CtaGroup } [] = [] => Tensor, TensorMemory;
    /// `tcgen05.mma`
    TmemMma(product: TmemMma) => Tensor, TensorMemory;
    /// `tcgen05.cp`
    TmemCopy(copy: TmemCopy) => Tensor, TensorMemory;
    /// `tcgen05.shift.down`
    TmemShift { group: CtaGroup } [] = [at: Addr] => Tensor, TensorMemory;
    /// `tcgen05.commit`: an arrival once this thread's work is done
    TmemCommit { group: CtaGroup, space: Space } []
        = [barrier: Addr, multicast: Option<R32>] => Tensor, TensorMemory;
    /// `tcgen05.ld`, `tcgen05.st`
    TmemMove(tile: TmemMove) => Tensor, TensorMemory;
    /// `tcgen05.wait::ld`, `::st`
    TmemWait { store: bool } [] = [] => Tensor, TensorMemory;
    /// `tcgen05.fence::before_thread_sync`, `::after_thread_sync`: warps keep their order anyway
    TmemFence { after: bool } [] = [] => Tensor, Hint;

    // ---- the rest of Hopper ----
    /// `setmaxnreg.inc/.dec`
    Setmaxnreg { inc: bool, count: u32 } [] = [] => Control, Warp;
    /// `griddepcontrol.wait` / `.launch_dependents`
    GridDep { wait: bool } [] = [] => Control, Hint;
}

impl Op {
    /// Whether anybody but its warp can tell when it is executed. Others cannot when it does
    /// nothing but read and write registers and the own memory of its lanes.
    pub(crate) fn is_observable(&self) -> bool {
        match self {
            Op::Ld { space, .. } | Op::St { space, .. } => {
                !matches!(space, Space::Local | Space::Const | Space::Param)
            }
            Op::Activemask { .. } | Op::CreatePolicy { .. } => false,
            Op::Mma(_) | Op::Wmma(_) | Op::Movmatrix { .. } => false,
            _ => match self.unit() {
                Unit::Exchange | Unit::Branch | Unit::Frame | Unit::Hint => false,
                unit => !unit.computes(),
            },
        }
    }
}

/// Whether other CTAs see what is done there.
fn beyond_cta(space: Space) -> bool {
    match space {
        Space::Generic | Space::Global => true,
        Space::Shared | Space::SharedCluster | Space::Local | Space::Const | Space::Param => false,
    }
}

/// A weak access tells nobody: others may not rely on when they see it.
fn ordered(space: Space, order: Order) -> bool {
    order != Order::Weak && beyond_cta(space)
}

/// Accesses count by the memory they lead to.
fn memory(space: Space) -> Class {
    match space {
        Space::Generic | Space::Global => Class::Global,
        Space::Shared | Space::SharedCluster => Class::Shared,
        Space::Local | Space::Const | Space::Param => Class::OtherMemory,
    }
}

/// Special functions have a unit of their own.
fn unary(op: FUn) -> Class {
    match op {
        FUn::Neg | FUn::Abs | FUn::Sqrt | FUn::Rcp => Class::Float,
        FUn::SqrtApprox
        | FUn::RcpApprox
        | FUn::RsqrtApprox
        | FUn::Ex2Approx
        | FUn::Lg2Approx
        | FUn::SinApprox
        | FUn::CosApprox
        | FUn::TanhApprox => Class::Mufu,
    }
}

/// Between integers a conversion is a move.
fn conversion(from: Num, to: Num) -> Class {
    match from.is_integer() && to.is_integer() {
        true => Class::Int,
        false => Class::Convert,
    }
}
