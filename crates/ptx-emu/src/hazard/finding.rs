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
    /// Two accesses of the same bytes, one of them a write, and nothing that orders them.
    Race = "race",
    /// Ordered among threads, but not for copies and tensor cores: no proxy fence between.
    ProxyFence = "proxy-fence",
    /// Ordered by an atomic access or fence that does not reach as far as the other one is away.
    Scope = "scope",
    /// Shared memory read that nobody has written.
    UninitialisedShared = "uninitialised-shared",
    /// A register read that no path has written.
    UninitialisedRegister = "uninitialised-register",
    /// Tensor memory read that nobody has written since it was allocated.
    UninitialisedTensor = "uninitialised-tensor",
    /// A register touched while a product or a load of tensor memory holds it.
    HeldRegister = "held-register",
    /// A register of a product changed since the last `wgmma.fence`.
    WgmmaFence = "wgmma-fence",
    /// Ordered among threads, but no `tcgen05.fence::after_thread_sync` before tensor memory is used.
    TensorFence = "tensor-fence",
    /// `setmaxnreg` asks for registers that nobody will give back.
    RegisterBudget = "register-budget",
    /// A barrier used by somebody its initialisation is not ordered before.
    BarrierInit = "barrier-init",
    /// A barrier initialised or ended while others may still use it.
    BarrierInUse = "barrier-in-use",
    /// A barrier that gets more or fewer arrivals than it was initialised for.
    BarrierCount = "barrier-count",
    /// A copy that a barrier did not expect in the phase it was issued for.
    ExpectTx = "expect-tx",
    /// A wait that passed two phases or more after the last one this warp knew of.
    ParityLap = "parity-lap",
    /// Bytes a copy brought that were overwritten by the next one and never read.
    Overwritten = "overwritten",
    /// A barrier for whole warps, or a warp-wide instruction, executed by a part of those it is for.
    PartialWarp = "partial-warp",
    /// A product that reads what is not laid out as its descriptor says.
    MisalignedAtom = "misaligned-atom",
    /// An access outside the tensor, though inside the allocation it lies in.
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
    /// Who did what: `a thread writes`, `a bulk copy reads`, …
    pub deed: String,
    /// Where; the CTA, warp and lanes of it only if it was `executed`.
    pub place: Place,
    /// False for what the code shows by itself, whoever runs it.
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

/// What was met: a place in memory, a barrier, a register.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spot {
    /// `global`, `shared`, `tensor`, `barrier`, `register` or `warp`.
    pub space: &'static str,
    /// The tensor ([`Sanitize::regions`](super::Sanitize::regions)), allocation or variable it lies
    /// in; empty where that is not known.
    pub name: String,
    /// Bytes from the first one of what `name` names.
    pub offset: u64,
    /// The address: a device address, one in the shared window of its CTA, or of tensor memory.
    pub address: Option<u64>,
    /// Whose shared or tensor memory, in a cluster of several CTAs: the rank.
    pub rank: Option<u32>,
    /// What else is to be known: phases of a barrier, lanes that are missing.
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
    /// The access or event that was noticed.
    pub here: Site,
    /// The other one, if there are two.
    pub there: Option<Site>,
    /// What they met at.
    pub at: Spot,
    /// What is missing.
    pub missing: String,
    /// The usual remedy.
    pub remedy: String,
    /// How often these two places met.
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
