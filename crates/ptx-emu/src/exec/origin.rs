//! Who does something, and where in the cluster.

/// Where an access or an event comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) cta: u32,
    pub(crate) warp: u32,
    /// The lanes that execute the instruction.
    pub(crate) lanes: u32,
    pub(crate) pc: u32,
    /// The path of the warp they are on.
    pub(crate) branch: Branch,
    /// Number of the copy or product it issued, if that acts now; else 0.
    pub(crate) work: u64,
}

/// A moment at which lanes of a warp parted, by its number among those of the warp, and the
/// outermost one it lies in; 0 where all are together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Split {
    pub(crate) own: u32,
    pub(crate) root: u32,
}

/// A path of a warp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Branch {
    pub(crate) lanes: u32,
    pub(crate) split: Split,
}

impl Branch {
    /// Whether there are others than the lanes of this path, on paths of their own.
    pub(crate) fn is_one_of_several(self) -> bool {
        self.split.own != 0
    }

    /// Whether two paths have no lane in common and did not join in between, as far as their
    /// splits tell: they are of one split, or of one and of another inside it.
    pub(crate) fn apart(self, other: Self) -> bool {
        let (a, b) = (self.split, other.split);
        let outermost = a.own == a.root || b.own == b.root;
        self.lanes & other.lanes == 0
            && a.root == b.root
            && a.root != 0
            && (a.own == b.own || outermost)
    }
}

/// A place in the cluster's shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedAt {
    pub(crate) cta: u32,
    pub(crate) offset: u32,
}
