//! mbarriers: eight bytes of shared memory with a shadow that knows what they mean.
//!
//! The bytes hold a digest of the shadow, so that ordinary stores over a live barrier are noticed
//! at its next use.

use crate::exec::checked::Checked;
use std::collections::BTreeMap;

use crate::fault::FaultKind;

/// Most arrivals a barrier can expect.
const MAX_COUNT: u32 = (1 << 20) - 1;

/// Most bytes a barrier can be missing, or have received too early.
const MAX_TX: i64 = (1 << 20) - 1;

/// One initialised barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mbarrier {
    /// Completed phases.
    pub(crate) phase: u64,
    /// Arrivals expected per phase.
    pub(crate) expected: u32,
    /// Arrivals still missing in this phase; may dip below zero between a `noinc` pair.
    pub(crate) pending: i64,
    /// Bytes still missing in this phase (may be negative before the expect).
    pub(crate) tx: i64,
    /// Instruction that initialised it.
    pub(crate) creator: u32,
    /// Warps that ever arrived here or sent bytes, a bit for each ([`helper`]); for reports.
    pub(crate) helpers: u64,
}

/// The bit of a warp, by its number in the cluster. Clusters of more share bits.
pub(crate) fn helper(warp: u32) -> u64 {
    1 << (warp % 64)
}

impl Mbarrier {
    /// The eight bytes as stored.
    fn digest(&self) -> u64 {
        0x8000_0000_0000_0000
            | (self.phase & 0x3ff) << 52
            | (self.pending as u64 & 0xf_ffff) << 32
            | (self.tx as u64 & 0xffff_ffff)
    }

    /// Token an arrive returns: phase number and pending count before it.
    pub(crate) fn token(&self) -> u64 {
        self.phase << 20 | (self.pending as u64 & u64::from(MAX_COUNT))
    }

    fn complete_if_due(&mut self) {
        if self.pending == 0 && self.tx == 0 {
            self.phase += 1;
            self.pending = i64::from(self.expected);
        }
    }

    /// What the current phase lacks, in words.
    pub(crate) fn missing(&self) -> String {
        let arrivals = format!("{} of {} arrivals", self.pending, self.expected);
        let more = format!("{} bytes more than were expected", -self.tx);
        match (self.pending, self.tx) {
            (0, ..0) => more,
            (0, tx) => format!("{tx} bytes missing"),
            (_, 0) => format!("{arrivals} missing"),
            (_, ..0) => format!("{arrivals} missing, and {more}"),
            (_, tx) => format!("{arrivals} and {tx} bytes missing"),
        }
    }

    /// Whether something has come to this phase, but not all of it.
    pub(crate) fn begun(&self) -> bool {
        self.tx != 0 || self.pending < i64::from(self.expected)
    }
}

/// Number of the phase a token was taken in.
pub(crate) fn token_phase(token: u64) -> u64 {
    token >> 20
}

/// Pending count in a token.
pub(crate) fn token_pending(token: u64) -> u32 {
    (token & u64::from(MAX_COUNT)) as u32
}

/// The barriers of a CTA.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mbarriers {
    live: BTreeMap<u32, Mbarrier>,
}

fn wrong(address: u32, reason: impl Into<String>) -> Box<FaultKind> {
    Box::new(FaultKind::Mbarrier {
        address,
        reason: reason.into(),
    })
}

fn word(shared: &mut [u8], address: u32) -> Checked<&mut [u8]> {
    if !address.is_multiple_of(8) {
        return Err(wrong(address, "address is not a multiple of 8"));
    }
    let at = address as usize;
    shared
        .get_mut(at..at + 8)
        .ok_or_else(|| wrong(address, "address is outside the CTA's shared memory"))
}

impl Mbarriers {
    /// The barrier at `address`, for reports.
    pub(crate) fn peek(&self, address: u32) -> Option<&Mbarrier> {
        self.live.get(&address)
    }

    pub(crate) fn init(
        &mut self,
        shared: &mut [u8],
        address: u32,
        count: u32,
        pc: u32,
    ) -> Checked<()> {
        if count == 0 || count > MAX_COUNT {
            return Err(wrong(
                address,
                format!("arrival count {count} is not in 1..={MAX_COUNT}"),
            ));
        }
        let barrier = Mbarrier {
            phase: 0,
            expected: count,
            pending: i64::from(count),
            tx: 0,
            creator: pc,
            helpers: 0,
        };
        word(shared, address)?.copy_from_slice(&barrier.digest().to_le_bytes());
        self.live.insert(address, barrier);
        Ok(())
    }

    pub(crate) fn inval(&mut self, shared: &mut [u8], address: u32) -> Checked<()> {
        self.get(shared, address)?;
        self.live.remove(&address);
        word(shared, address)?.fill(0);
        Ok(())
    }

    /// The barrier at `address`, which must be initialised and intact.
    pub(crate) fn get(&mut self, shared: &mut [u8], address: u32) -> Checked<&mut Mbarrier> {
        let bytes = word(shared, address)?;
        let Some(barrier) = self.live.get_mut(&address) else {
            return Err(wrong(
                address,
                "used before mbarrier.init: is there a barrier of the threads behind it?",
            ));
        };
        if *bytes != barrier.digest().to_le_bytes() {
            return Err(wrong(
                address,
                "its bytes were overwritten by an ordinary store or copy",
            ));
        }
        Ok(barrier)
    }

    /// Changes a barrier, completes the phase if due, and stores the new digest; how many phases
    /// were over before.
    pub(crate) fn update(
        &mut self,
        shared: &mut [u8],
        address: u32,
        change: impl FnOnce(&mut Mbarrier) -> Checked<()>,
    ) -> Checked<u64> {
        let barrier = self.get(shared, address)?;
        let before = barrier.phase;
        change(barrier)?;
        if barrier.tx.abs() > MAX_TX {
            let tx = barrier.tx;
            let reason = format!("{tx} pending bytes: a barrier counts to {MAX_TX}");
            return Err(wrong(address, reason));
        }
        barrier.complete_if_due();
        let digest = barrier.digest();
        word(shared, address)?.copy_from_slice(&digest.to_le_bytes());
        Ok(before)
    }

    /// `count` arrivals, `expect` bytes added first; the token from before. `by` is whose they are,
    /// see [`helper`].
    pub(crate) fn arrive(
        &mut self,
        shared: &mut [u8],
        address: u32,
        arrival: Arrival,
        by: u64,
    ) -> Checked<u64> {
        let mut token = 0;
        self.update(shared, address, |b| {
            token = b.token();
            b.helpers |= by;
            b.tx += i64::from(arrival.expect_tx);
            b.pending -= i64::from(arrival.count);
            if arrival.drop {
                b.expected = b.expected.saturating_sub(arrival.count);
            }
            if b.pending < 0 {
                let over = format!(
                    "more arrivals than the {} it was initialised for",
                    b.expected
                );
                return Err(wrong(address, over));
            }
            if arrival.no_complete && b.pending == 0 && b.tx == 0 {
                return Err(wrong(address, "arrive.noComplete completed the phase"));
            }
            Ok(())
        })?;
        Ok(token)
    }
}

/// One `mbarrier.arrive`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) count: u32,
    pub(crate) expect_tx: u32,
    pub(crate) drop: bool,
    pub(crate) no_complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Arrival = Arrival {
        count: 1,
        expect_tx: 0,
        drop: false,
        no_complete: false,
    };

    #[test]
    fn a_phase_needs_arrivals_and_bytes() {
        let (mut shared, mut set) = (vec![0; 64], Mbarriers::default());
        set.init(&mut shared, 8, 2, 0).unwrap();
        set.arrive(
            &mut shared,
            8,
            Arrival {
                expect_tx: 100,
                ..ONE
            },
            helper(5),
        )
        .unwrap();
        let receive = |set: &mut Mbarriers, shared: &mut [u8], bytes: i64| {
            let change = |b: &mut Mbarrier| {
                b.tx -= bytes;
                Ok(())
            };
            set.update(shared, 8, change).unwrap()
        };
        assert_eq!(receive(&mut set, &mut shared, 60), 0);
        set.arrive(&mut shared, 8, ONE, helper(0)).unwrap();
        assert_eq!(set.peek(8).unwrap().missing(), "40 bytes missing");
        assert_eq!(set.peek(8).unwrap().helpers, 1 << 5 | 1);
        assert_eq!(receive(&mut set, &mut shared, 40), 0);
        assert_eq!(set.peek(8).unwrap().phase, 1);
        assert_eq!(set.peek(8).unwrap().pending, 2);
        assert_eq!(receive(&mut set, &mut shared, 30), 1);
        let missing = set.peek(8).unwrap().missing();
        assert_eq!(
            missing,
            "2 of 2 arrivals missing, and 30 bytes more than were expected"
        );
    }

    #[test]
    fn overwriting_or_overarriving_is_a_fault() {
        let (mut shared, mut set) = (vec![0; 64], Mbarriers::default());
        assert!(set.arrive(&mut shared, 8, ONE, 1).is_err());
        set.init(&mut shared, 8, 1, 0).unwrap();
        assert!(
            set.arrive(&mut shared, 8, Arrival { count: 2, ..ONE }, 1)
                .is_err()
        );
        set.init(&mut shared, 8, 1, 0).unwrap();
        shared[9] = 0x55;
        assert!(
            set.arrive(&mut shared, 8, ONE, 1)
                .unwrap_err()
                .to_string()
                .contains("overwritten")
        );
    }
}
