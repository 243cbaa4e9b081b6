//! The findings of a detector.

use std::fmt;

use crate::fault::Place;

/// Declares the kinds of hazard: each once, with its name.
macro_rules! hazards {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal,)+) => {
        /// The kinds of hazard.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Hazard {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl Hazard {
            /// All of them.
            pub const ALL: &[Hazard] = &[$(Hazard::$kind),+];

            /// A short stable name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Hazard::$kind => $name,)+
                }
            }
        }
    };
}

hazards! {
    /// Two unordered accesses of the same bytes, one of them a write.
    Race = "race",
    /// Ordered among threads, but not for copies and tensor cores: no proxy fence in between.
    ProxyFence = "proxy-fence",
    /// Ordered by an atomic access or fence whose scope does not include the other access.
    Scope = "scope",
    /// A read of shared memory that was never written.
    UninitialisedShared = "uninitialised-shared",
    /// A read of a register that no path has written.
    UninitialisedRegister = "uninitialised-register",
    /// A read of tensor memory that was not written since it was allocated.
    UninitialisedTensor = "uninitialised-tensor",
    /// A register used while a product or a load of tensor memory holds it.
    HeldRegister = "held-register",
    /// A register of a product changed since the last `wgmma.fence`.
    WgmmaFence = "wgmma-fence",
    /// Ordered among threads, but no `tcgen05.fence::after_thread_sync` before tensor memory is
    /// used.
    TensorFence = "tensor-fence",
    /// `setmaxnreg` requests registers that no warp will release.
    RegisterBudget = "register-budget",
    /// A barrier whose initialisation is not ordered before its use.
    BarrierInit = "barrier-init",
    /// A barrier initialised or ended while others may still use it.
    BarrierInUse = "barrier-in-use",
    /// A barrier that gets more or fewer arrivals than it was initialised for.
    BarrierCount = "barrier-count",
    /// A copy that a barrier did not expect in the phase it was issued for.
    ExpectTx = "expect-tx",
    /// A wait that succeeded two or more phases after the last one this warp knew of.
    ParityLap = "parity-lap",
    /// Bytes of a copy that were overwritten by the next one and never read.
    Overwritten = "overwritten",
    /// A barrier for whole warps, or a warp-wide instruction, executed by only some of its lanes.
    PartialWarp = "partial-warp",
    /// A product whose operand is not laid out as its descriptor says.
    MisalignedAtom = "misaligned-atom",
    /// An access outside the tensor, but inside its allocation.
    OutsideTensor = "outside-tensor",
    /// Shared memory used before its CTA is known to have begun, or when that may have ended.
    Lifetime = "lifetime",
    /// Memory of the launch before read or written ahead of `griddepcontrol.wait`.
    DependentLaunch = "dependent-launch",
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One side of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The access in words: `a thread writes`, `a bulk copy reads`, …
    pub deed: String,
    /// The place; its CTA, warp and lanes are valid only if it was `executed`.
    pub place: Place,
    /// False if the code alone shows the hazard, in any thread.
    pub executed: bool,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.executed {
            true => write!(f, "{} at {}", self.deed, self.place),
            false => write!(
                f,
                "{} at {}: kernel {} (PTX line {})",
                self.deed,
                self.place.line(),
                self.place.kernel,
                self.place.ptx_line
            ),
        }
    }
}

/// The location of a hazard: a place in memory, a barrier, a register.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spot {
    /// `global`, `shared`, `tensor`, `barrier`, `register` or `warp`.
    pub space: &'static str,
    /// The tensor ([`Sanitize::regions`](super::Sanitize::regions)), allocation or variable it lies
    /// in; empty if that is not known.
    pub name: String,
    /// Bytes from the start of `name`.
    pub offset: u64,
    /// The address: a device address, one in the shared window of its CTA, or of tensor memory.
    pub address: Option<u64>,
    /// The rank of the CTA that owns the shared or tensor memory, in a cluster of several.
    pub rank: Option<u32>,
    /// Further details: phases of a barrier, missing lanes.
    pub detail: String,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.space)?;
        if let ("tensor", Some(address)) = (self.space, self.address) {
            let (lane, column) = (address >> 16, address & 0xffff);
            write!(f, " memory, column {column}, lane {lane}")?;
        }
        match (self.name.as_str(), self.address) {
            _ if self.space == "tensor" => {}
            ("", Some(address)) => write!(f, " address {address:#x}")?,
            ("", None) => {}
            (name, None) => write!(f, " {name}")?,
            (name, Some(_)) => write!(f, " {name}+{:#x}", self.offset)?,
        }
        if let Some(rank) = self.rank {
            write!(f, " of CTA {rank} of the cluster")?;
        }
        match self.detail.as_str() {
            "" => Ok(()),
            detail => write!(f, ": {detail}"),
        }
    }
}

/// A hazard, found once or more often at the same two places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub hazard: Hazard,
    /// The access or event at which it was detected.
    pub here: Site,
    /// The other one, if there are two.
    pub there: Option<Site>,
    /// Their location.
    pub at: Spot,
    /// What is missing.
    pub missing: String,
    /// The usual remedy.
    pub remedy: String,
    /// How often these two places conflicted.
    pub times: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  {}", self.hazard, self.at, self.here)?;
        if let Some(there) = &self.there {
            write!(f, "\n  {there}")?;
        }
        write!(f, "\n  {}; {}", self.missing, self.remedy)
    }
}
