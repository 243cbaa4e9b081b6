//! What a replay tells: when CTAs and warps did what, and what their time went to.

/// What a warp's time went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// Issuing, and the fixed latencies between instructions.
    Issuing,
    /// Another warp had the scheduler or the pipe.
    Contending,
    /// A result of shared memory, a conversion or the like.
    Result,
    /// A result of global memory.
    Memory,
    /// An mbarrier.
    Phase,
    /// A barrier of the CTA or the cluster.
    Barrier,
    /// Products, and loads of them from tensor memory.
    Wgmma,
    /// Copies by groups.
    Copies,
    /// The launch before.
    Launch,
}

impl Activity {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 9] = [
        Self::Issuing,
        Self::Contending,
        Self::Result,
        Self::Memory,
        Self::Phase,
        Self::Barrier,
        Self::Wgmma,
        Self::Copies,
        Self::Launch,
    ];
}

/// What the way to the end of a launch goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Starting: launches, CTAs, and waiting for the launch before.
    Launch,
    /// Products, what they take of the rest of the SM, and tensor memory.
    Tensor,
    /// The pipes that do arithmetic, and the latencies of those that have scoreboards.
    Arithmetic,
    /// Instructions taking their turn, and the fixed latencies between them.
    Issue,
    /// Shared memory.
    Shared,
    /// The bandwidth of memory.
    Memory,
    /// The bandwidth of L2 and of the way to it.
    L2,
    /// The latency of L2 and memory.
    Latency,
    /// Barriers of all kinds, once everybody has arrived.
    Barriers,
}

impl Cause {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 9] = [
        Self::Launch,
        Self::Tensor,
        Self::Arithmetic,
        Self::Issue,
        Self::Shared,
        Self::Memory,
        Self::L2,
        Self::Latency,
        Self::Barriers,
    ];

    /// In a word or two: the same in run files, tables and explanations.
    pub fn word(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Tensor => "tensor cores",
            Self::Arithmetic => "arithmetic",
            Self::Issue => "issue",
            Self::Shared => "shared memory",
            Self::Memory => "memory bandwidth",
            Self::L2 => "L2 bandwidth",
            Self::Latency => "memory latency",
            Self::Barriers => "barriers",
        }
    }
}

/// A warp's whole time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarpTimes {
    /// Which of the CTAs that ran, in order of their start.
    pub cta: usize,
    /// Which of its warps.
    pub warp: usize,
    /// Cycles, by what they went to.
    pub spent: [f64; Activity::ALL.len()],
}

/// A piece of a warp's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Which of the CTAs that ran, in order of their start.
    pub cta: usize,
    /// Which of its warps.
    pub warp: usize,
    /// Cycles.
    pub from: f64,
    /// Cycles.
    pub to: f64,
    /// What it went to.
    pub activity: Activity,
    /// Line of the PTX.
    pub line: u32,
}

/// A warp's way from its last product of a tile to its last store of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epilogue {
    /// Which of the CTAs that ran, in order of their start.
    pub cta: usize,
    /// Which of its warps.
    pub warp: usize,
    /// Cycles: the end of the product.
    pub from: f64,
    /// Cycles: the store, or the end of the warp after its last product.
    pub to: f64,
}

/// When a CTA did what.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CtaTimes {
    /// Its number in the grid.
    pub cta: u64,
    /// Its first instruction.
    pub start: f64,
    /// Its first tensor instruction.
    pub first_mma: Option<f64>,
    /// The end of its last tensor instruction.
    pub last_mma: Option<f64>,
    /// Its last warp's end.
    pub end: f64,
}
