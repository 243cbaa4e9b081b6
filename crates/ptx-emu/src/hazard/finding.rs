//! What a detector says.

use std::fmt;

use crate::fault::Place;

/// The kinds of hazard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Hazard {
    /// Two accesses of the same bytes, one of them a write, and nothing that orders them.
    Race,
    /// Ordered among threads, but not for copies and tensor cores: no proxy fence between.
    ProxyFence,
    /// An atomic access that does not reach as far as the other one is away.
    Scope,
    /// Shared memory read that nobody has written.
    UninitialisedShared,
    /// A register read that no path has written.
    UninitialisedRegister,
    /// A register touched while a product in flight holds it.
    HeldRegister,
    /// A register of a product changed since the last `wgmma.fence`.
    WgmmaFence,
    /// A barrier used by somebody its initialisation is not ordered before.
    BarrierInit,
    /// A barrier initialised or ended while others may still use it.
    BarrierInUse,
    /// A copy that a barrier did not expect in the phase it was issued for.
    ExpectTx,
    /// A wait that passed two phases or more after the last one this warp knew of.
    ParityLap,
    /// Bytes a copy brought that were overwritten by the next one and never read.
    Overwritten,
    /// A barrier for whole warps executed by a part of one.
    PartialWarp,
    /// A product that reads what is not laid out as its descriptor says.
    MisalignedAtom,
    /// An access outside the tensor, though inside the allocation it lies in.
    OutsideTensor,
    /// Memory of the launch before read or written ahead of `griddepcontrol.wait`.
    DependentLaunch,
}

impl Hazard {
    /// A short stable name.
    pub fn name(self) -> &'static str {
        match self {
            Hazard::Race => "race",
            Hazard::ProxyFence => "proxy-fence",
            Hazard::Scope => "scope",
            Hazard::UninitialisedShared => "uninitialised-shared",
            Hazard::UninitialisedRegister => "uninitialised-register",
            Hazard::HeldRegister => "held-register",
            Hazard::WgmmaFence => "wgmma-fence",
            Hazard::BarrierInit => "barrier-init",
            Hazard::BarrierInUse => "barrier-in-use",
            Hazard::ExpectTx => "expect-tx",
            Hazard::ParityLap => "parity-lap",
            Hazard::Overwritten => "overwritten",
            Hazard::PartialWarp => "partial-warp",
            Hazard::MisalignedAtom => "misaligned-atom",
            Hazard::OutsideTensor => "outside-tensor",
            Hazard::DependentLaunch => "dependent-launch",
        }
    }
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One side of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Who did what: `a thread wrote`, `a bulk copy reads`, …
    pub deed: String,
    /// Where.
    pub place: Place,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.deed, self.place)
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
    /// What they met at: a variable, an allocation, a barrier, a register.
    pub at: String,
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
