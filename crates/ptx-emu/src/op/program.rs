//! Kernels, their registers, and where everything in them lies.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::Op;
#[cfg(target_arch = "x86_64")]
use crate::code::Compiled;

/// Index of an instruction in [`Program::insts`].
pub(crate) type Pc = u32;

/// "Reconverge only when the lanes leave the function."
pub(crate) const NO_RECONVERGENCE: Pc = Pc::MAX;

/// First byte of user shared memory. Hopper reserves the first KiB; shared symbols are laid out
/// from here (static ones first, then the dynamic one), so a null shared pointer is a fault.
pub(crate) const SHARED_BASE: u32 = 1024;

/// Generic address of shared address 0: a generic pointer into shared memory is this plus the
/// 32-bit shared (`::cta` or `::cluster`) address.
pub(crate) const SHARED_WINDOW: u64 = 0x7f00_0000_0000;

/// Generic address of local address 0 of the executing thread.
pub(crate) const LOCAL_WINDOW: u64 = 0x7e00_0000_0000;

/// Generic address of parameter byte 0 of the running kernel (`cvta.param`).
pub(crate) const PARAM_WINDOW: u64 = 0x7d00_0000_0000;

/// Address of a module's first function; the others follow 16 bytes apart, in the order of the
/// text. Nothing else lies there, and a null pointer is no function.
pub(crate) const CODE_WINDOW: u64 = 0x7c00_0000_0000;

/// What `%reserved_smem_offset_1` gives: system software has the rest of the reserved KiB, and
/// cooperative groups keep the state of tiles of several warps from here on.
pub(crate) const SHARED_SCRATCH: u32 = 512;

/// Where the bits of a `shared::cluster` address begin that name a CTA; zero is the executing one.
pub(crate) const CLUSTER_RANK_SHIFT: u32 = 24;

/// Marks a named CTA. The rank itself lies as on the device: code that clears its lowest bit means
/// the even CTA of the pair.
const NAMED_RANK: u32 = 0x40;

/// The `shared::cluster` address of the same offset in another CTA.
pub(crate) fn ranked(address: u32, rank: u32) -> u32 {
    let low = (1 << CLUSTER_RANK_SHIFT) - 1;
    // A rank no cluster has must not wrap to another: it is kept for the access to refuse.
    (address & low) | (NAMED_RANK | rank.min(NAMED_RANK - 1)) << CLUSTER_RANK_SHIFT
}

/// The CTA that a `shared::cluster` address names. On the device an address of the own CTA has its
/// rank there too, so code that flips bits of it, as Triton's does, means the CTA whose rank
/// differs in these.
pub(crate) fn rank_of(address: u32, own: u32) -> u32 {
    match address >> CLUSTER_RANK_SHIFT {
        named if named & NAMED_RANK != 0 => named & (NAMED_RANK - 1),
        flipped => own ^ flipped,
    }
}

/// Slot of the 32-bit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct R32(pub u32);
/// Slot of the 64-bit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct R64(pub u32);
/// Slot of the predicate file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct P(pub u16);

/// A slot of either value file, or the `_` sink (written: dropped; read: zero).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// 8-, 16- or 32-bit value.
    W32(R32),
    /// 64-bit value.
    W64(R64),
    /// `_`
    Sink,
}

/// A run of slots in [`Program::slot_pool`]; each list is used by one instruction only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotList {
    /// First index in the pool.
    pub start: u32,
    /// How many.
    pub len: u16,
}

/// `@p` / `@!p`; `None` pred means unconditional.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Guard {
    /// Guarding predicate.
    pub pred: Option<P>,
    /// `@!p`
    pub negate: bool,
}

/// One predecoded instruction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inst {
    /// What to do.
    pub op: Op,
    /// For which lanes.
    pub guard: Guard,
    /// Index into [`Program::locs`].
    pub loc: u32,
}

/// Where an instruction comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SourceLoc {
    /// 1-based line in the PTX text.
    pub ptx_line: u32,
    /// Source frames from `.loc`, innermost first (then each `inlined_at`); empty without `.loc`.
    pub frames: Vec<Frame>,
}

/// One source position of a `SourceLoc`.
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

/// A `.global` or `.const` variable.
#[derive(Debug, Clone)]
pub(crate) struct GlobalVar {
    /// Name in the PTX.
    pub name: String,
    /// `.const` rather than `.global`.
    pub constant: bool,
    /// Initial bytes; its length is the variable's size.
    pub init: Vec<u8>,
    /// Addresses of other variables to be written into `init`.
    pub relocs: Vec<Reloc>,
}

/// The address of a variable within another one's initial value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reloc {
    /// Where it is written, in bytes.
    pub offset: u64,
    /// Index of the variable it names in [`crate::module::Module::globals`].
    pub global: usize,
    /// Bytes past that variable.
    pub addend: i64,
    /// One byte of the address instead of all eight.
    pub byte: Option<u8>,
}

impl Reloc {
    /// Writes the address, once it is known, into the initial bytes it belongs to.
    pub(crate) fn write(&self, address: u64, init: &mut [u8]) {
        let bytes = address.wrapping_add_signed(self.addend).to_le_bytes();
        let part = match self.byte {
            None => &bytes[..],
            Some(byte) => &bytes[usize::from(byte)..][..1],
        };
        let start = self.offset as usize;
        if let Some(place) = init.get_mut(start..start.saturating_add(part.len())) {
            place.copy_from_slice(part);
        }
    }
}

/// One kernel, ready to run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    /// Kernel name.
    pub name: String,
    /// Forms of its instructions: see [`crate::Evidence`].
    pub forms: BTreeSet<String>,
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
    /// First shared byte a thread may touch: [`SHARED_BASE`], or [`SHARED_SCRATCH`] in a kernel
    /// that asks where the reserved bytes are.
    pub shared_start: u32,
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
    /// What is wrong with its registers, whatever it is launched with.
    pub register_hazards: Vec<RegisterHazard>,
    /// Its machine code, once that pays.
    #[cfg(target_arch = "x86_64")]
    pub compiled: Compiled,
}

/// A register in trouble, at an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisterHazard {
    pub trouble: RegisterTrouble,
    pub at: Pc,
    /// The other instruction, if there are two: the product that holds it, or what changed it.
    pub other: Option<Pc>,
    /// As the text calls it; empty where it has no name.
    pub register: String,
}

/// The kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RegisterTrouble {
    /// Touched while a product in flight holds it.
    Held,
    /// Used by a product, with no `wgmma.fence` since it was changed (or none at all).
    Unfenced,
    /// Read, and nothing gives it a value.
    Uninitialised,
    /// Used before the load of tensor memory that fills it was waited for.
    Loaded,
}

impl Program {
    /// Whether its CTAs may talk to each other through global memory.
    pub(crate) fn communicates(&self) -> bool {
        self.insts.iter().any(|inst| inst.op.communicates())
    }

    /// Whether it allocates tensor memory.
    pub(crate) fn allocates(&self) -> bool {
        let allocates = |inst: &Inst| matches!(inst.op, Op::TmemAlloc { .. });
        self.insts.iter().any(allocates)
    }

    /// Whether it takes over clusters that have not been launched.
    pub(crate) fn cancels(&self) -> bool {
        let cancels = |inst: &Inst| matches!(inst.op, Op::TryCancel { .. });
        self.insts.iter().any(cancels)
    }
}

/// Everything of one function that a second call of it would overwrite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FrameSlots {
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
pub(crate) enum Const64 {
    /// Literal bits.
    Bits(u64),
    /// Address of `Module::globals[index]` plus an addend, known at launch.
    Global {
        /// Index in [`crate::module::Module::globals`].
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
pub(crate) struct SharedVar {
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
pub(crate) enum Special {
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
    /// What the device adds to the addresses of a CTA's shared variables: its rank, named.
    SharedRank,
    /// `%envreg1` and `%envreg2`: the address of a cooperative launch's workspace, or 0.
    WorkspaceHigh,
    WorkspaceLow,
}

/// Special registers that change while the kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Clock {
    /// `%clock`, `%clock64` and their `_hi`
    Cycles,
    CyclesHi,
    /// `%globaltimer` (ns)
    Nanos,
    NanosLo,
    NanosHi,
}

/// The slots of a list.
#[inline(always)]
pub(crate) fn pool(program: &Program, list: SlotList) -> &[Slot] {
    &program.slot_pool[list.start as usize..][..list.len as usize]
}
