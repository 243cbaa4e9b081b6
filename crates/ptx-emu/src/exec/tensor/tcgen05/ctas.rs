//! The CTAs and lanes an instruction of `tcgen05` is for.

use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::Cluster;
use crate::exec::warp::Warp;
use crate::op::{CtaGroup, R32};

impl Cluster<'_> {
    /// The CTAs an instruction works in, the even one of a pair first.
    pub(super) fn tmem_group(&mut self, w: &Warp, group: CtaGroup, what: &str) -> Checked<Ctas> {
        let own = w.cta as usize;
        let known = *self.ctas[own].tmem.group.get_or_insert(group);
        if known != group {
            return Err(illegal(format!(
                "{what} of cta_group::{} in a CTA that has used cta_group::{}: all tcgen05 \
                 instructions of a kernel have the same",
                group.ctas(),
                known.ctas()
            )));
        }
        if group == CtaGroup::One {
            return Ok(Ctas {
                first: own,
                count: 1,
            });
        }
        if self.ctas.len() % 2 == 1 {
            return Err(illegal(format!(
                "{what} of cta_group::2 in a cluster of {}: it needs pairs of CTAs",
                self.ctas.len()
            )));
        }
        Ok(Ctas {
            first: own & !1,
            count: 2,
        })
    }
}

/// One CTA of the cluster, or a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ctas {
    pub(crate) first: usize,
    pub(crate) count: usize,
}

impl Ctas {
    pub(crate) fn all(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }

    /// The other one of a pair.
    pub(crate) fn peer(self, own: usize) -> Option<usize> {
        self.all().find(|&cta| cta != own)
    }
}

/// An instruction for all lanes of a warp together.
pub(crate) fn whole_warp(w: &Warp, mask: u32, what: &str) -> Checked<()> {
    match mask == w.live && mask == u32::MAX {
        true => Ok(()),
        false => Err(illegal(format!(
            "{what} needs all 32 lanes of the warp: it was executed by a diverged warp"
        ))),
    }
}

/// A value that all lanes must agree on.
pub(crate) fn uniform(w: &Warp, r: R32, what: &str) -> Checked<u32> {
    let values = w.get(r);
    match values.iter().all(|v| *v == values[0]) {
        true => Ok(values[0]),
        false => Err(illegal(format!(
            "{what} differs between the lanes of the warp"
        ))),
    }
}
