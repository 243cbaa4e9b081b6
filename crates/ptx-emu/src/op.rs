//! The predecoded program: what lowering produces and the executor runs.
//!
//! A [`Program`] is one kernel with every device function it can reach, as a flat list of
//! [`Inst`]s. Everything textual is gone: branch targets are indices, registers are slots in three
//! files, constants and launch-wide special registers sit in slots that are filled before the
//! first instruction, so an operand is always a slot.
//!
//! Register files (per warp, structure of arrays over 32 lanes):
//! - 32-bit file ([`R32`]): `.b8/.b16/.b32` registers. **Invariant:** 8- and 16-bit values are
//!   zero-extended (an `.s16` of −1 is `0x0000_ffff`); every op that writes one keeps this.
//! - 64-bit file ([`R64`]): `.b64` registers; a `.b128` register is two of them, low half first.
//! - predicate file ([`P`]): one `u32` lane mask per predicate.
//!
//! A lowering that splits one PTX instruction into several [`Inst`]s repeats the guard on each and
//! must copy the guard first if an early part overwrites it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Index of an instruction in [`Program::insts`].
pub type Pc = u32;

/// "Reconverge only when the lanes leave the function."
pub const NO_RECONVERGENCE: Pc = Pc::MAX;

/// First byte of user shared memory. Hopper reserves the first KiB; shared symbols are laid out
/// from here (static ones first, then the dynamic one), so a null shared pointer is a fault.
pub const SHARED_BASE: u32 = 1024;

/// Generic address of shared address 0: a generic pointer into shared memory is this plus the
/// 32-bit shared (`::cta` or `::cluster`) address.
pub const SHARED_WINDOW: u64 = 0x7f00_0000_0000;

/// Generic address of local address 0 of the executing thread.
pub const LOCAL_WINDOW: u64 = 0x7e00_0000_0000;

/// Generic address of parameter byte 0 of the running kernel (`cvta.param`).
pub const PARAM_WINDOW: u64 = 0x7d00_0000_0000;

/// Bits of a `shared::cluster` address that hold `CTA rank + 1`; zero means the executing CTA.
pub const CLUSTER_RANK_SHIFT: u32 = 24;

/// Slot of the 32-bit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct R32(pub u32);
/// Slot of the 64-bit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct R64(pub u32);
/// Slot of the predicate file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct P(pub u16);

/// A slot of either value file, or the `_` sink (written: dropped; read: zero).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// 8-, 16- or 32-bit value.
    W32(R32),
    /// 64-bit value.
    W64(R64),
    /// `_`
    Sink,
}

/// A run of slots in [`Program::slot_pool`]; each list is used by one instruction only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotList {
    /// First index in the pool.
    pub start: u32,
    /// How many.
    pub len: u16,
}

/// `@p` / `@!p`; `None` pred means unconditional.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Guard {
    /// Guarding predicate.
    pub pred: Option<P>,
    /// `@!p`
    pub negate: bool,
}

/// One predecoded instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Inst {
    /// What to do.
    pub op: Op,
    /// For which lanes.
    pub guard: Guard,
    /// Index into [`Program::locs`].
    pub loc: u32,
}

/// Where an instruction comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceLoc {
    /// 1-based line in the PTX text.
    pub ptx_line: u32,
    /// Source frames from `.loc`, innermost first (then each `inlined_at`); empty without `.loc`.
    pub frames: Vec<Frame>,
}

/// One source position of a [`SourceLoc`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// File as named by `.file`.
    pub file: Arc<str>,
    /// 1-based line.
    pub line: u32,
    /// 1-based column, 0 if unknown.
    pub column: u32,
    /// Function the position is in, when the compiler said so.
    pub function: Option<Arc<str>>,
}

/// A loaded PTX module: kernels and module-scope variables.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// Distinguishes modules that live in one [`crate::memory::Memory`]; unique per process.
    pub id: u64,
    /// `.target`, e.g. `sm_90a`.
    pub target: String,
    /// Kernels by name.
    pub kernels: BTreeMap<String, Arc<Program>>,
    /// Module-scope `.global` and `.const` variables, in order of declaration.
    pub globals: Vec<GlobalVar>,
}

/// A `.global` or `.const` variable.
#[derive(Debug, Clone)]
pub struct GlobalVar {
    /// Name in the PTX.
    pub name: String,
    /// `.const` rather than `.global`.
    pub constant: bool,
    /// Alignment in bytes.
    pub align: u64,
    /// Initial bytes; its length is the variable's size.
    pub init: Vec<u8>,
    /// 64-bit addresses of other variables to be written into `init`: (offset, index of the
    /// variable in [`Module::globals`], addend).
    pub relocs: Vec<(u64, usize, i64)>,
}

/// One kernel, ready to run.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Kernel name.
    pub name: String,
    /// Code; execution starts at 0. Device functions follow the kernel body.
    pub insts: Vec<Inst>,
    /// Backing store of every [`SlotList`].
    pub slot_pool: Vec<Slot>,
    /// Source locations.
    pub locs: Vec<SourceLoc>,
    /// Slots in the 32-bit file, constants and specials included.
    pub n32: u32,
    /// Slots in the 64-bit file.
    pub n64: u32,
    /// Predicates.
    pub npred: u16,
    /// Read-only 32-bit slots with the same value in every lane.
    pub consts32: Vec<(R32, u32)>,
    /// Read-only 64-bit slots with the same value in every lane.
    pub consts64: Vec<(R64, Const64)>,
    /// Read-only 32-bit slots holding a special register.
    pub specials32: Vec<(R32, Special)>,
    /// Read-only 64-bit slots holding a special register (`%gridid`).
    pub specials64: Vec<(R64, Special)>,
    /// Frames of functions that can call themselves.
    pub frames: Vec<FrameSlots>,
    /// Kernel parameters in order.
    pub params: Vec<Param>,
    /// Bytes of all parameters together.
    pub param_bytes: u32,
    /// Shared variables; offsets are absolute shared addresses (≥ [`SHARED_BASE`]).
    pub shared: Vec<SharedVar>,
    /// End of the static shared variables as an absolute shared address (`SHARED_BASE` if none).
    pub shared_static_end: u32,
    /// Absolute shared address at which dynamic shared memory begins.
    pub shared_dynamic_start: u32,
    /// Local bytes per thread (depot, spilled parameters).
    pub local_bytes: u32,
    /// `.maxntid`
    pub max_block: Option<[u32; 3]>,
    /// `.reqntid`
    pub required_block: Option<[u32; 3]>,
    /// `.reqnctapercluster`
    pub cluster: Option<[u32; 3]>,
    /// `.explicitcluster`: must be launched with a cluster size.
    pub explicit_cluster: bool,
    /// `.maxclusterrank`
    pub max_cluster_rank: Option<u32>,
    /// `.minnctapersm`
    pub min_ctas_per_sm: Option<u32>,
    /// `.maxnreg`
    pub max_registers: Option<u32>,
}

/// Everything of one function that a second call of it would overwrite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameSlots {
    /// Slots of the 32-bit file.
    pub r32: Range<u32>,
    /// Slots of the 64-bit file.
    pub r64: Range<u32>,
    /// Predicates.
    pub preds: Range<u32>,
    /// Local bytes: offset and size, multiples of 8 not guaranteed.
    pub local: Vec<(u32, u32)>,
}

/// Value of a 64-bit constant slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Const64 {
    /// Literal bits.
    Bits(u64),
    /// Address of `Module::globals[index]` plus an addend, known at launch.
    Global {
        /// Index in [`Module::globals`].
        index: u32,
        /// Byte offset added.
        addend: i64,
    },
}

/// A kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Name in the PTX.
    pub name: String,
    /// Byte offset in parameter space.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Alignment.
    pub align: u32,
}

/// A shared variable (for naming barriers and faults).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedVar {
    /// Name in the PTX.
    pub name: String,
    /// Absolute shared address.
    pub address: u32,
    /// Bytes; 0 for the dynamic one.
    pub size: u32,
}

/// Special registers that are constant for a thread's whole life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Special {
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    ClusteridX,
    ClusteridY,
    ClusteridZ,
    NclusteridX,
    NclusteridY,
    NclusteridZ,
    ClusterCtaidX,
    ClusterCtaidY,
    ClusterCtaidZ,
    ClusterNctaidX,
    ClusterNctaidY,
    ClusterNctaidZ,
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    DynamicSmemSize,
    TotalSmemSize,
    AggrSmemSize,
    ReservedSmemOffset,
    /// `%envregN`: always 0.
    Envreg,
}

/// Special registers that change while the kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Clock {
    /// `%clock`, `%clock64` and their `_hi`
    Cycles,
    CyclesHi,
    /// `%globaltimer` (ns)
    Nanos,
    NanosLo,
    NanosHi,
}

/// Width of an integer op on the 32-bit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum W {
    B16,
    B32,
}

/// Two-operand integer operations, for 16, 32 and 64 bits alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IBin {
    Add,
    Sub,
    /// `add.sat.s32`
    AddSat,
    /// `sub.sat.s32`
    SubSat,
    MulLo,
    MulHiS,
    MulHiU,
    /// Division by zero gives all ones, as on the device.
    DivS,
    DivU,
    /// Remainder by zero gives the dividend.
    RemS,
    RemU,
    MinS,
    MinU,
    MaxS,
    MaxU,
    /// `min.s32.relu` / `max.s32.relu`
    MinSRelu,
    MaxSRelu,
    And,
    Or,
    Xor,
    /// Shift amounts (always a 32-bit slot, even for 64-bit values) clamp at the width.
    Shl,
    ShrS,
    ShrU,
    /// `mul24.lo/hi`, signed and unsigned
    Mul24LoS,
    Mul24LoU,
    Mul24HiS,
    Mul24HiU,
}

/// One-operand integer operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IUn {
    Not,
    Neg,
    Abs,
    /// `cnot`: 1 if the operand is 0, else 0.
    Cnot,
    Brev,
}

/// One-operand integer operations with a 32-bit result for 32- and 64-bit operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ICount {
    Popc,
    Clz,
    BfindS,
    BfindU,
    BfindShiftS,
    BfindShiftU,
}

/// Packed 16x2 integer operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum I16x2 {
    Add,
    MinS,
    MinU,
    MaxS,
    MaxU,
    MinSRelu,
    MaxSRelu,
}

/// `prmt` modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PrmtMode {
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// Float rounding of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Round {
    #[default]
    /// `.rn`
    Near,
    /// `.rz`
    Zero,
    /// `.rm`
    Down,
    /// `.rp`
    Up,
    /// `.rna`: nearest, ties away (`cvt` to tf32)
    NearAway,
}

/// Modifiers of float arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FMods {
    /// Rounding of the result.
    pub round: Round,
    /// Flush subnormal inputs and results to zero.
    pub ftz: bool,
    /// Clamp to [0, 1], NaN to 0.
    pub sat: bool,
    /// `.relu` (half types): negative and NaN handling as PTX says (NaN stays canonical NaN).
    pub relu: bool,
    /// `.oob` (`fma` on half types): zero if a factor is the NaN that stands for out of bounds.
    pub oob: bool,
}

/// Two-operand float operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FBin {
    Add,
    Sub,
    Mul,
    /// IEEE division with `FMods::round`.
    Div,
    /// `div.full.f32` (2 ulp) and `div.approx.f32`
    DivFull,
    DivApprox,
    /// The number wins over a NaN.
    Min,
    Max,
    /// `.NaN`: a NaN wins.
    MinNan,
    MaxNan,
    /// `.xorsign.abs` (and with `.NaN`)
    MinXorsignAbs,
    MaxXorsignAbs,
    MinNanXorsignAbs,
    MaxNanXorsignAbs,
    /// `copysign d, a, b`: magnitude of b with the sign of a.
    Copysign,
}

/// One-operand float operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FUn {
    Neg,
    Abs,
    /// IEEE square root / reciprocal with `FMods::round`
    Sqrt,
    Rcp,
    SqrtApprox,
    RcpApprox,
    RsqrtApprox,
    Ex2Approx,
    Lg2Approx,
    SinApprox,
    CosApprox,
    TanhApprox,
}

/// Half formats, scalar (low 16 bits) and packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HFmt {
    F16,
    F16x2,
    Bf16,
    Bf16x2,
}

/// Comparisons; `U` forms are true when an operand is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// both are numbers
    Num,
    /// either is NaN
    Nan,
}

/// `testp` properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FTest {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// Predicate logic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BoolOp {
    And,
    Or,
    Xor,
}

/// Scalar number formats for `cvt`, atomics and reductions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Num {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    F16x2,
    Bf16x2,
    E4m3,
    E5m2,
    E2m1,
    E2m3,
    E3m2,
    Ue8m0,
    /// signed/unsigned 4-bit and 1-bit integers (`mma` operands)
    S4,
    U4,
    B1,
    /// signed/unsigned 2-bit integers (`cvt.pack` results)
    S2,
    U2,
}

/// Modifiers of `cvt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CvtMods {
    /// Float rounding, or the integer rounding of `.rni/.rzi/.rmi/.rpi` when `integer` is set.
    pub round: Round,
    /// An integer rounding modifier was given (float → integer, or float → integral float).
    pub integer: bool,
    /// Flush subnormals.
    pub ftz: bool,
    /// `.sat`
    pub sat: bool,
    /// `.satfinite`
    pub satfinite: bool,
    /// `.relu`
    pub relu: bool,
}

/// State spaces of loads and stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Space {
    Generic,
    Global,
    /// `shared` / `shared::cta`
    Shared,
    /// `shared::cluster`
    SharedCluster,
    Local,
    Const,
    /// Parameters of the running kernel.
    Param,
}

/// Base of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// No register: `offset` is the whole address.
    Abs,
    /// 32-bit register, zero-extended; the sum wraps at 32 bits.
    R32(R32),
    /// 64-bit register.
    R64(R64),
    /// Address of `Module::globals[i]`: prefer a constant slot; kept for absolute accesses.
    Global(u32),
}

/// `[base + offset]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addr {
    /// Register part.
    pub base: Base,
    /// Byte offset.
    pub offset: i64,
}

/// Ordering of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Order {
    #[default]
    Weak,
    Volatile,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    /// `.mmio`, treated as relaxed.
    Mmio,
}

/// How a loaded element fills its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Extend {
    Zero,
    /// Sign-extend to 16 bits (a 16-bit register), 32 bits or 64 bits.
    Sign16,
    Sign32,
    Sign64,
}

/// Atomic operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AtomOp {
    Exch,
    Cas,
    Add,
    Min,
    Max,
    /// `inc`/`dec` with wrap at the operand
    Inc,
    Dec,
    And,
    Or,
    Xor,
}

/// `atom` and `red`, scalar or vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Atom {
    /// Global, Shared, SharedCluster or Generic.
    pub space: Space,
    /// Operation.
    pub op: AtomOp,
    /// Element type.
    pub ty: Num,
    /// `.noftz` is the rule for halves; `f32` adds never flush.
    pub order: Order,
    /// Old values; len 0 for `red`; else the vector length (B128: 2 × W64).
    pub d: SlotList,
    /// Where.
    pub addr: Addr,
    /// Operand values (same length as the vector; B128: 2 × W64).
    pub b: SlotList,
    /// `cas`: the new value (b is the compare value); len 0 otherwise.
    pub c: SlotList,
}

/// `shfl.sync` modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

/// `vote.sync` and `match.sync` modes and `redux.sync` operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Vote {
    All,
    Any,
    Uni,
    Ballot,
}

/// `redux.sync` operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Redux {
    Add,
    MinS,
    MinU,
    MaxS,
    MaxU,
    And,
    Or,
    Xor,
    /// `.f32`, with `.abs` and `.NaN` (sm_100)
    MinF {
        abs: bool,
        nan: bool,
    },
    MaxF {
        abs: bool,
        nan: bool,
    },
}

/// `bar` / `barrier.cta` flavours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarKind {
    /// Arrive and wait.
    Sync,
    /// Arrive only.
    Arrive,
    /// Arrive, wait, `d` = number of threads with the predicate.
    RedPopc {
        /// Result.
        d: R32,
        /// Counted predicate.
        p: P,
        /// Count lanes where `p` is false.
        negate: bool,
    },
    /// Arrive, wait, `d` = all (`and`) or any (`or`) of the predicate.
    RedPred {
        /// Result.
        d: P,
        /// Reduced predicate.
        p: P,
        /// Reduce `!p`.
        negate: bool,
        /// `.and` rather than `.or`
        and: bool,
    },
}

/// mbarrier operations; `addr` is shared::cta or shared::cluster (remote arrives).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mbar {
    /// Which.
    pub op: MbarOp,
    /// The barrier's address.
    pub addr: Addr,
    /// Space of `addr`: Shared, SharedCluster or Generic.
    pub space: Space,
}

/// What an [`Mbar`] does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MbarOp {
    /// `init` with an expected arrival count.
    Init {
        /// Expected arrivals per phase.
        count: R32,
    },
    /// `inval`
    Inval,
    /// `expect_tx`
    ExpectTx {
        /// Bytes.
        bytes: R32,
    },
    /// `complete_tx`
    CompleteTx {
        /// Bytes.
        bytes: R32,
    },
    /// `arrive` / `arrive_drop`; an `expect_tx` is done before the arrival.
    Arrive {
        /// Phase token out (state before the arrival), if wanted.
        state: Option<R64>,
        /// `arrive_drop`: also lowers the expected count of later phases.
        drop: bool,
        /// `.noComplete`: the phase may not complete by this arrival.
        no_complete: bool,
        /// `.expect_tx` byte count.
        expect_tx: Option<R32>,
        /// Arrival count, 1 if absent.
        count: Option<R32>,
    },
    /// `test_wait`: `d` = the phase of `state` has completed.
    TestWait {
        /// Result.
        d: P,
        /// Token.
        phase: Phase,
    },
    /// `try_wait`: as `test_wait`, but may suspend the warp.
    TryWait {
        /// Result.
        d: P,
        /// Token.
        phase: Phase,
    },
    /// `pending_count d, state` (no memory access; `addr` unused).
    PendingCount {
        /// Result.
        d: R32,
        /// Token.
        state: R64,
    },
}

/// What an mbarrier wait waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Token returned by an arrive.
    State(R64),
    /// Parity of the phase.
    Parity(R32),
}

/// `cp.async.bulk` (non-tensor); bytes are moved asynchronously.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BulkCopy {
    /// Direction.
    pub dir: BulkDir,
    /// Destination.
    pub dst: Addr,
    /// Source (for a prefetch: the global address; `dst` unused).
    pub src: Addr,
    /// Size in bytes, multiple of 16.
    pub bytes: R32,
    /// `mbarrier` operand (`complete_tx`); absent for `.bulk_group`.
    pub mbar: Option<Addr>,
    /// Multicast CTA mask (16-bit value).
    pub multicast: Option<R32>,
    /// `cp.reduce.async.bulk`: operation and type.
    pub reduce: Option<(AtomOp, Num)>,
    /// `.cp_mask` byte mask.
    pub byte_mask: Option<R32>,
}

/// Directions of bulk copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkDir {
    /// global → shared::cta or shared::cluster
    GlobalToShared,
    /// shared::cta → global
    SharedToGlobal,
    /// shared::cta → shared::cluster
    SharedToCluster,
    /// `cp.async.bulk.prefetch.L2`
    Prefetch,
}

/// `cp.async.bulk.tensor`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TensorCopy {
    /// Direction (`SharedToCluster` does not occur).
    pub dir: BulkDir,
    /// Dimensions, 1–5.
    pub dims: u8,
    /// Load/store mode.
    pub mode: TensorMode,
    /// Shared-memory side (unused for a prefetch).
    pub shared: Addr,
    /// Generic address of the tensor map.
    pub map: Addr,
    /// Coordinates, innermost first, 32-bit slots.
    pub coords: SlotList,
    /// im2col offsets (16-bit slots), or gather4/scatter4 extra rows; usually empty.
    pub extra: SlotList,
    /// `mbarrier` operand for loads.
    pub mbar: Option<Addr>,
    /// Multicast CTA mask.
    pub multicast: Option<R32>,
    /// `cp.reduce.async.bulk.tensor`
    pub reduce: Option<AtomOp>,
}

/// Modes of tensor copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TensorMode {
    Tile,
    Im2col,
    /// `.tile::gather4` / `.tile::scatter4`
    Gather4,
}

/// `wgmma.mma_async`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wgmma {
    /// N of m64nNkK.
    pub n: u16,
    /// K of m64nNkK.
    pub k: u16,
    /// Accumulator type: F32, F16 or S32.
    pub d_ty: Num,
    /// Operand types.
    pub a_ty: Num,
    /// Operand types.
    pub b_ty: Num,
    /// Accumulator slots (f16: two values per slot).
    pub d: SlotList,
    /// A operand.
    pub a: WgmmaA,
    /// Descriptor of B.
    pub b_desc: R64,
    /// `scale-d`: accumulate if true; `None` means the constant 1 (true).
    pub scale_d: Option<P>,
    /// `scale-d` is the constant 0: D = A·B.
    pub zero_d: bool,
    /// `imm-scale-a` is −1.
    pub negate_a: bool,
    /// `imm-scale-b` is −1.
    pub negate_b: bool,
    /// A in shared memory is MN-major (`imm-trans-a` = 1).
    pub trans_a: bool,
    /// B is MN-major.
    pub trans_b: bool,
    /// `.satfinite` (s32)
    pub satfinite: bool,
}

/// A operand of a [`Wgmma`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WgmmaA {
    /// Matrix descriptor.
    Desc(R64),
    /// Four fragment registers.
    Regs(SlotList),
}

/// `mma.sync`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mma {
    /// Shape.
    pub m: u16,
    /// Shape.
    pub n: u16,
    /// Shape.
    pub k: u16,
    /// D and C type.
    pub d_ty: Num,
    /// C type (usually D's).
    pub c_ty: Num,
    /// Operand types.
    pub a_ty: Num,
    /// Operand types.
    pub b_ty: Num,
    /// Result fragment.
    pub d: SlotList,
    /// A fragment.
    pub a: SlotList,
    /// B fragment.
    pub b: SlotList,
    /// C fragment.
    pub c: SlotList,
    /// `.satfinite`
    pub satfinite: bool,
    /// A is column-major (only m8n8k4).
    pub a_col: bool,
    /// B is row-major (only m8n8k4).
    pub b_row: bool,
    /// `.and.popc` / `.xor.popc` for b1.
    pub b1_op: Option<BoolOp>,
    /// `mma.sp`: metadata register and selector.
    pub sparse: Option<(R32, u8)>,
    /// `.block_scale`: (scale vector size, scale type, a scale, byte id, thread id, b scale, …).
    pub block_scale: Option<BlockScale>,
}

/// Scale operands of a block-scaled `mma.sync`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockScale {
    /// 1, 2 or 4 (`scale_vec::nX`).
    pub vec: u8,
    /// Ue8m0 or E4m3 (`ue4m3`).
    pub ty: Num,
    /// Scale data of A.
    pub a: R32,
    /// byte-id-a, thread-id-a
    pub a_ids: (u8, u8),
    /// Scale data of B.
    pub b: R32,
    /// byte-id-b, thread-id-b
    pub b_ids: (u8, u8),
}

/// `ldmatrix` / `stmatrix`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixMove {
    /// Store rather than load.
    pub store: bool,
    /// Number of 8×8 (or 16×8, 16×16) matrices: 1, 2 or 4.
    pub count: u8,
    /// Matrix shape.
    pub shape: MatrixShape,
    /// `.trans`
    pub trans: bool,
    /// Row addresses (shared).
    pub addr: Addr,
    /// Space of `addr`.
    pub space: Space,
    /// Fragment registers.
    pub regs: SlotList,
}

/// Shapes of `ldmatrix`/`stmatrix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MatrixShape {
    /// `.m8n8.b16`
    M8n8B16,
    /// `.m16n16.b8` (ldmatrix, trans) and `.m16n8.b8` (stmatrix, trans)
    M16n16B8,
    M16n8B8,
    /// `.m16n16.b8x16.b6x16_p32` / `.b4x16_p64`
    M16n16B6,
    M16n16B4,
    /// `.m8n16.b8x16.b6x16_p32` / `.b4x16_p64`
    M8n16B6,
    M8n16B4,
}

/// Fields of `tensormap.replace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MapField {
    GlobalAddress,
    Rank,
    BoxDim(u8),
    GlobalDim(u8),
    GlobalStride(u8),
    ElementStride(u8),
    ElemType,
    InterleaveLayout,
    SwizzleMode,
    SwizzleAtomicity,
    FillMode,
}

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
    /// (immediate post-dominator of this branch), or [`NO_RECONVERGENCE`].
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
    /// Indirect call: the register holds one of the `targets` (code addresses are their [`Pc`]s)
    CallIndirect {
        target: R64,
        targets: Box<[Pc]>,
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
    /// `barrier.cluster.arrive`
    ClusterArrive,
    /// `barrier.cluster.wait`
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
    /// membar / fence.{sc,acq_rel,…}: ordering only
    Fence,
    /// `fence.proxy.async`, `fence.proxy.tensormap`, `fence.mbarrier_init`
    FenceProxy { kind: ProxyFence },
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
    /// `tensormap.cp_fenceproxy`: copy 128 bytes shared → global
    TensormapCp { dst: Addr, src: Addr, bytes: u32 },
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
    /// `ldmatrix`, `stmatrix`
    MatrixMove(Box<MatrixMove>),
    /// `movmatrix.sync.aligned.m8n8.trans.b16`
    Movmatrix { d: R32, a: R32 },
    // ---- the rest of Hopper ----
    /// `setmaxnreg.inc/.dec`
    Setmaxnreg { inc: bool, count: u32 },
    /// `griddepcontrol.wait` / `.launch_dependents`
    GridDep { wait: bool },
}

/// Kinds of proxy fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ProxyFence {
    Async,
    AsyncGlobal,
    AsyncShared,
    Alias,
    TensormapAcquire,
    TensormapRelease,
    MbarrierInit,
}
