//! How the lanes of an access lie on the host, within one allocation.

use super::access::{HostPtr, Pointers};
use super::warp::each;

/// How the lanes of an access lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// All at one address.
    Same,
    /// All 32, one behind the other.
    Run,
    Scattered,
}

/// The lanes of an access as offsets into one allocation on the host. Lanes outside the mask
/// repeat one inside.
pub(super) struct Span {
    /// Offset 0, within or before the slice that holds `low` to `high`.
    pub(super) host: HostPtr,
    pub(super) at: [u32; 32],
    pub(super) low: u32,
    pub(super) high: u32,
    pub(super) pattern: Pattern,
}

/// How the lanes of an access lie to each other. Loops repeat themselves: comparing with the last
/// access of an instruction is less work than looking anew.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Each lane from the first.
    deltas: [u32; 32],
    /// The lowest from the first, and the highest from the lowest.
    low: u32,
    spread: u32,
    /// Bits that are set in the distance of some lane from the lowest.
    bits: u32,
    /// Bytes from each lane to the next, if that is always the same.
    step: u32,
}

impl Layout {
    /// All lanes in one place.
    pub(super) const SAME: Self = Self {
        deltas: [0; 32],
        low: 0,
        spread: 0,
        bits: 0,
        step: 0,
    };

    /// Lanes more than 2 GiB apart are found out of bounds, and left to the slow way.
    #[inline(always)]
    fn of(deltas: [u32; 32]) -> Self {
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
        Self {
            deltas,
            low,
            spread: above.iter().fold(0, |most, &a| most.max(a)),
            bits: above.iter().fold(0, |bits, &a| bits | a),
            step: if differs == 0 { step } else { 0 },
        }
    }

    /// Makes the layout of the last lanes that of these.
    #[inline(always)]
    fn follow(&mut self, at: &[u32; 32]) {
        let deltas: [u32; 32] = each(
            #[inline(always)]
            |i| at[i].wrapping_sub(at[0]),
        );
        let mut differs = 0;
        for (delta, known) in deltas.iter().zip(&self.deltas) {
            differs |= delta ^ known;
        }
        if differs != 0 {
            *self = Self::of(deltas);
        }
    }
}

impl Span {
    /// None if a lane is not aligned to the `bytes` it accesses or leaves `[first, end)`.
    #[inline(always)]
    pub(super) fn within(
        at: [u32; 32],
        mask: u32,
        bytes: u32,
        (first, end): (u32, u64),
        host: HostPtr,
        layout: &mut Layout,
    ) -> Option<Self> {
        let at = match mask {
            u32::MAX => at,
            _ => {
                let spare = at[mask.trailing_zeros() as usize & 31];
                each(
                    #[inline(always)]
                    |i| spare ^ ((at[i] ^ spare) & 0u32.wrapping_sub(mask >> i & 1)),
                )
            }
        };
        layout.follow(&at);
        let low = at[0].wrapping_add(layout.low);
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
            at,
            low,
            high,
            pattern,
        })
    }

    #[inline(always)]
    pub(super) fn pointers(&self) -> Pointers {
        Pointers(each(
            #[inline(always)]
            |i| self.host.offset(self.at[i] as usize),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::access::lanes;

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
        for _ in 0..20_000 {
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
            let found = Span::within(at, mask, bytes, bounds, HostPtr::default(), &mut layout);
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
