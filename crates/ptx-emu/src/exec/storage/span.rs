//! How the lanes of an access lie on the host, within one allocation.

use super::banks;
use super::pointers::{HostPtr, Pointers};
#[cfg(target_arch = "x86_64")]
use super::quick;
use crate::exec::lanes::each;

/// Instructions whose layout is remembered.
pub(crate) const LAYOUTS: usize = 256;

/// How the lanes of an access lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// All at one address.
    Same,
    /// All 32, one behind the other.
    Run,
    Scattered,
}

/// Where the lanes of an access lie. Their offsets into one allocation on the host stand beside
/// it, and lanes outside the mask repeat one inside. (In here they would be copied time and again.)
#[derive(Clone, Copy)]
pub(crate) struct Span {
    /// Offset 0, within or before the slice that holds `low` to `high`.
    pub(crate) host: HostPtr,
    pub(crate) low: u32,
    pub(crate) high: u32,
    pub(crate) pattern: Pattern,
}

/// How the lanes of an access lie to each other. Loops repeat themselves: comparing with the last
/// access of an instruction is less work than looking anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Each lane from the first.
    deltas: [u32; 32],
    /// The lowest from the first, and the highest from the lowest.
    low: u32,
    spread: u32,
    /// Bits that are set in the distance of some lane from the lowest.
    bits: u32,
    /// Bytes from each lane to the next, if that is always the same.
    step: u32,
    /// Bank conflicts of lanes that lie like this, once they have been counted: for which mask
    /// (none: not yet), for how many bytes each from which place in a word on, and how many.
    counted: (u32, u32, u32),
    extra: u32,
    /// Accesses since the last that lay like the one before.
    #[cfg(target_arch = "x86_64")]
    pub(super) strangers: u32,
}

/// How far lanes reach, as [`Layout`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) low: u32,
    pub(super) spread: u32,
    pub(super) bits: u32,
    /// Each is as far from the one before as the second from the first.
    pub(super) even: bool,
}

impl Layout {
    /// All lanes in one place.
    pub(crate) const SAME: Self = Self {
        deltas: [0; 32],
        low: 0,
        spread: 0,
        bits: 0,
        step: 0,
        counted: (0, 0, 0),
        extra: 0,
        #[cfg(target_arch = "x86_64")]
        strangers: 0,
    };

    /// Takes the deltas of lanes, and how far they reach. Lanes more than 2 GiB apart are found out
    /// of bounds, and left to the slow way.
    #[inline(always)]
    fn extent(at: &[u32; 32], deltas: &mut [u32; 32]) -> Extent {
        *deltas = each(
            #[inline(always)]
            |i| at[i].wrapping_sub(at[0]),
        );
        let low = deltas.iter().fold(0, |low, &d| low.min(d as i32)) as u32;
        let above: [u32; 32] = each(
            #[inline(always)]
            |i| deltas[i].wrapping_sub(low),
        );
        let step = deltas[1];
        let mut differs = 0;
        for (i, &delta) in deltas.iter().enumerate() {
            differs |= delta ^ (i as u32).wrapping_mul(step);
        }
        let spread = above.iter().fold(0, |most, &a| most.max(a));
        let bits = above.iter().fold(0, |bits, &a| bits | a);
        Extent {
            low,
            spread,
            bits,
            even: differs == 0,
        }
    }

    /// Bank conflicts of the access that was followed last.
    #[inline(always)]
    pub(crate) fn conflicts<const QUICK: bool>(
        &mut self,
        mask: u32,
        at: &[u32; 32],
        bytes: u32,
    ) -> u32 {
        let this = (mask, bytes, at[0] % 4);
        if self.counted != this {
            self.extra = banks::conflicts::<QUICK>(mask, at, bytes);
            self.counted = this;
        }
        self.extra
    }

    /// Each lane from the first, as they lay last.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn deltas(&self) -> &[u32; 32] {
        &self.deltas
    }

    /// Becomes that of lanes that lie so far from the first.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn renew(&mut self, deltas: &[u32; 32], extent: Extent) {
        self.deltas = *deltas;
        self.reach(extent);
    }

    #[inline(always)]
    fn reach(&mut self, extent: Extent) {
        (self.low, self.spread, self.bits) = (extent.low, extent.spread, extent.bits);
        self.step = if extent.even { self.deltas[1] } else { 0 };
        self.counted = (0, 0, 0);
    }

    /// The conflicts of an access, as [`Layout::conflicts`], if they were counted.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn known_conflicts(&self, access: (u32, u32, u32)) -> Option<u32> {
        (self.counted == access).then_some(self.extra)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn remember_conflicts(&mut self, access: (u32, u32, u32), extra: u32) -> u32 {
        (self.counted, self.extra) = (access, extra);
        extra
    }

    /// Makes the layout of the last lanes that of these.
    #[inline(always)]
    pub(crate) fn follow<const QUICK: bool>(&mut self, at: &[u32; 32]) {
        let extent = match QUICK {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: quick machines have AVX2.
            true => unsafe {
                if quick::alike(at, &self.deltas) {
                    return;
                }
                let (low, spread, bits, even) = quick::extent(at, &mut self.deltas);
                Extent {
                    low,
                    spread,
                    bits,
                    even,
                }
            },
            _ => {
                let mut differs = 0;
                for (lane, delta) in at.iter().zip(&self.deltas) {
                    differs |= lane.wrapping_sub(at[0]) ^ delta;
                }
                if differs == 0 {
                    return;
                }
                Self::extent(at, &mut self.deltas)
            }
        };
        self.reach(extent);
    }
}

/// Moves lanes outside a mask to its first one.
#[inline(always)]
fn confine<const QUICK: bool>(at: &mut [u32; 32], mask: u32) {
    match QUICK {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: quick machines have AVX2.
        true => unsafe { quick::confine(at, mask) },
        _ => {
            let spare = at[mask.trailing_zeros() as usize & 31];
            for (i, at) in at.iter_mut().enumerate() {
                *at = spare ^ ((*at ^ spare) & 0u32.wrapping_sub(mask >> i & 1));
            }
        }
    }
}

impl Span {
    /// None if a lane is not aligned to the `bytes` it accesses or leaves `[first, end)`. Lanes
    /// outside the mask are moved inside.
    #[inline(always)]
    pub(crate) fn within<const QUICK: bool>(
        at: &mut [u32; 32],
        mask: u32,
        bytes: u32,
        (first, end): (u32, u64),
        host: HostPtr,
        layout: &mut Layout,
    ) -> Option<Self> {
        if mask != u32::MAX {
            confine::<QUICK>(at, mask);
        }
        layout.follow::<QUICK>(at);
        Self::placed(at[0], mask, bytes, (first, end), host, layout)
    }

    /// As [`Span::within`], for lanes that lie to the first as a layout says.
    #[inline(always)]
    pub(crate) fn placed(
        first_lane: u32,
        mask: u32,
        bytes: u32,
        (first, end): (u32, u64),
        host: HostPtr,
        layout: &Layout,
    ) -> Option<Self> {
        let low = first_lane.wrapping_add(layout.low);
        // Lanes that lie alike may lie around the end of the address space.
        let high = low.checked_add(layout.spread)?;
        let aligned = (low | layout.bits) & (bytes - 1) == 0;
        if !aligned || low < first || u64::from(high) + u64::from(bytes) > end {
            return None;
        }
        let pattern = match layout.spread {
            0 => Pattern::Same,
            _ if mask == u32::MAX && layout.step == bytes => Pattern::Run,
            _ => Pattern::Scattered,
        };
        Some(Self {
            host,
            low,
            high,
            pattern,
        })
    }

    /// Lanes that lie anywhere.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn apart(host: HostPtr) -> Self {
        Self {
            host,
            low: 0,
            high: 0,
            pattern: Pattern::Scattered,
        }
    }

    /// All lanes at one offset, as [`Span::within`].
    #[inline(always)]
    pub(crate) fn at_once(
        at: u32,
        bytes: u32,
        (first, end): (u32, u64),
        host: HostPtr,
    ) -> Option<Self> {
        let aligned = at & (bytes - 1) == 0;
        let inside = at >= first && u64::from(at) + u64::from(bytes) <= end;
        (aligned && inside).then_some(Self {
            host,
            low: at,
            high: at,
            pattern: Pattern::Same,
        })
    }

    #[inline(always)]
    pub(crate) fn pointers(&self, at: &[u32; 32]) -> Pointers {
        Pointers(each(
            #[inline(always)]
            |i| self.host.offset(at[i] as usize),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::lanes::lanes;
    use crate::numeric::simd::Level;

    /// What a remembered layout says is what looking anew says, wherever the lanes went.
    #[test]
    fn a_layout_that_is_followed_finds_the_same_lanes() {
        let mut state = 1u32;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let mut layout = Layout::SAME;
        let mut kinds = [0; 4];
        let mut at = [0u32; 32];
        for _ in 0..40_000 {
            let bytes = 1 << draw(5);
            let mask = [u32::MAX, draw(1 << 24) << 8 | 1][draw(2) as usize];
            match draw(4) {
                0 => at = each(|_| draw(4096)),
                1 => at = each(|lane| 512 + lane as u32 * bytes),
                2 => at = [draw(4096); 32],
                // The same again, moved, at times over the end of the address space.
                _ => {
                    let by = [64, 0u32.wrapping_sub(1024)][draw(2) as usize];
                    at = each(|lane| at[lane].wrapping_add(by));
                }
            }
            let bounds = (256, 3000);
            let (mut inside, host) = (at, HostPtr::default());
            let quick = Level::best() >= Level::Avx2 && draw(2) == 0;
            let within = match quick {
                true => Span::within::<true>,
                false => Span::within::<false>,
            };
            let found = within(&mut inside, mask, bytes, bounds, host, &mut layout);
            let lanes = || lanes(mask).map(|lane| at[lane]);
            let (low, high) = (lanes().min().unwrap(), lanes().max().unwrap());
            let fits = low >= 256 && u64::from(high) + u64::from(bytes) <= 3000;
            let aligned = lanes().all(|a| a.is_multiple_of(bytes));
            assert_eq!(found.is_some(), fits && aligned, "{bytes} {mask:#x} {at:?}");
            let run =
                mask == u32::MAX && (0..32).all(|i| at[i] == low.wrapping_add(i as u32 * bytes));
            let kind = found.map(|span| {
                assert_eq!((span.low, span.high), (low, high));
                match (low == high, run) {
                    (true, _) => assert_eq!(span.pattern, Pattern::Same),
                    (_, true) => assert_eq!(span.pattern, Pattern::Run),
                    _ => assert_eq!(span.pattern, Pattern::Scattered),
                }
                span.pattern as usize
            });
            kinds[kind.unwrap_or(3)] += 1;
        }
        assert!(kinds.iter().all(|n| *n > 200), "{kinds:?}");
    }
}
