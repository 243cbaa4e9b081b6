//! A call whose kernels record when their warps began, waited and ended. The device side is
//! `variants/include/dgx/stamp.cuh`.

use super::call::{OperatorCall, ScratchLayout, ScratchSize};
use dgx_core::domain::Bytes;

/// Bytes that a warp writes first and last, and after each wait.
pub(crate) const HEAD_BYTES: u64 = 64;
pub(crate) const RECORD_BYTES: u64 = 8;

/// The scratch buffer of stamps.
pub(crate) const STAMPS: &str = "stamps";

/// The intended size of all stamps of a call, and the maximum.
const ROOM: u64 = 768 << 20;
const MOST_ROOM: u64 = 1 << 30;
/// Minimum and maximum records of a warp: two hundred cover a tile with a long K, and a persistent
/// CTA has several.
const FEWEST: u64 = 16;
const MOST: u64 = 4096;
/// Slots in `Args::scratch`.
const SLOTS: usize = 8;

/// A call with stamps, and how to read them.
#[derive(Clone, Debug)]
pub struct Stamping {
    pub call: OperatorCall,
    /// Records that a warp has room for.
    pub records: u64,
    /// Warps of all launches before each, and in all.
    pub first_rows: Vec<u64>,
    slot: usize,
}

impl Stamping {
    /// The same call with room for stamps, or the reason why there is none.
    pub fn of(call: &OperatorCall) -> Result<Self, String> {
        let kernels = call.launches.iter().map(|launch| &launch.kernel);
        for (index, kernel) in kernels.clone().enumerate() {
            if kernels.clone().take(index).any(|before| before == kernel) {
                return Err(format!(
                    "it launches {kernel} twice, and stamps could not distinguish the two"
                ));
            }
        }
        let own = call.scratch.iter();
        let taken = own.filter(|s| matches!(s.size, ScratchSize::PerCall(_)));
        let slot = taken.map(|s| s.slot + 1).max().unwrap_or(0);
        if slot >= SLOTS || call.scratch.iter().any(|s| s.name == STAMPS) {
            return Err("its scratch leaves no place for stamps".to_owned());
        }
        let mut first_rows = vec![0];
        for launch in &call.launches {
            let warps = u64::from(launch.threads_per_block().div_ceil(32));
            let ctas = launch.grid.iter().map(|side| u64::from(*side));
            let ctas = ctas.fold(1, u64::saturating_mul);
            let before: u64 = first_rows.last().copied().unwrap_or(0);
            first_rows.push(before.saturating_add(ctas.saturating_mul(warps)));
        }
        let rows = first_rows.last().copied().unwrap_or(0);
        let records = (ROOM / RECORD_BYTES / rows.max(1)).clamp(FEWEST, MOST);
        let bytes = rows.saturating_mul(HEAD_BYTES + RECORD_BYTES * records);
        if bytes > MOST_ROOM {
            let (bytes, most) = (Bytes(bytes), Bytes(MOST_ROOM));
            return Err(format!(
                "stamps of {rows} warps take {bytes}, more than {most}"
            ));
        }
        let mut call = call.clone();
        call.scratch.push(ScratchLayout {
            name: STAMPS.to_owned(),
            slot,
            size: ScratchSize::PerCall(bytes),
            // Records that no warp has written are zero.
            zero: true,
        });
        Ok(Self {
            call,
            records,
            first_rows,
            slot,
        })
    }

    pub(crate) fn row_bytes(&self) -> u64 {
        HEAD_BYTES + RECORD_BYTES * self.records
    }

    /// Additional definitions for the compiler.
    pub fn defines(&self) -> Vec<(String, String)> {
        let mut defines = vec![
            ("DGX_STAMPS".to_owned(), self.records.to_string()),
            ("SCRATCH_STAMPS".to_owned(), self.slot.to_string()),
        ];
        let launches = self.call.launches.iter().zip(&self.first_rows);
        defines.extend(
            launches.map(|(l, first)| (format!("DGX_ROWS_{}", l.kernel), format!("{first}u"))),
        );
        defines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::LaunchGeometry;

    fn call(kernels: &[(&str, u32)]) -> OperatorCall {
        let launch = |&(kernel, blocks): &(&str, u32)| LaunchGeometry {
            kernel: kernel.to_owned(),
            grid: [blocks, 1, 1],
            block: [96, 1, 1],
            cluster: [1; 3],
            smem: 0,
            pdl: false,
            ..LaunchGeometry::default()
        };
        OperatorCall {
            group_order: vec![0],
            tile_begin: vec![0],
            tile_count: 1,
            deal: None,
            scratch: Vec::new(),
            maps: Vec::new(),
            launches: kernels.iter().map(launch).collect(),
        }
    }

    #[test]
    fn every_warp_has_a_row_after_those_of_the_launches_before() {
        let stamping = Stamping::of(&call(&[("a", 10), ("b", 132)])).unwrap();
        assert_eq!(stamping.first_rows, [0, 30, 30 + 396]);
        assert_eq!(stamping.records, MOST);
        let defines = stamping.defines();
        assert!(defines.contains(&("DGX_ROWS_b".to_owned(), "30u".to_owned())));
        let [scratch] = &stamping.call.scratch[..] else {
            panic!("{:?}", stamping.call.scratch);
        };
        assert_eq!(scratch.size.total(), 426 * stamping.row_bytes());
        assert!(scratch.zero && scratch.slot == 0);
    }

    #[test]
    fn what_cannot_be_stamped_is_said() {
        let why = |call: &OperatorCall| Stamping::of(call).unwrap_err();
        assert!(why(&call(&[("a", 1), ("a", 1)])).contains("launches a twice"));
        assert!(why(&call(&[("a", u32::MAX)])).contains("more than 1"));
        let mut full = call(&[("a", 1)]);
        full.scratch.push(ScratchLayout {
            name: "x".to_owned(),
            slot: SLOTS - 1,
            size: ScratchSize::PerCall(1),
            zero: false,
        });
        assert!(why(&full).contains("no place for stamps"));
    }
}
