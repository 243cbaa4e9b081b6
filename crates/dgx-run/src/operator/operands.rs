use super::draw::{Draw, Tensor};
use dgx_core::domain::Distribution;
use dgx_core::domain::{Group, Shape};

/// Elements along K that share a scale.
pub(crate) const SCALE_BLOCK: usize = 16;

/// Rows and scales of one blocked atom, and its bytes.
const ATOM_ROWS: usize = 128;
const ATOM_SCALES: usize = 4;
const ATOM_BYTES: usize = 512;

/// The inputs of one group, packed as a kernel reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOperands {
    pub group: Group,
    /// e2m1, two per byte, low nibble first, K/2 bytes a row.
    pub a: Vec<u8>,
    pub b1: Vec<u8>,
    pub b2: Vec<u8>,
    /// e4m3, row-major, K/16 bytes a row.
    pub sfa: Vec<u8>,
    pub sfb1: Vec<u8>,
    pub sfb2: Vec<u8>,
}

impl GroupOperands {
    /// Group `index` of a shape, drawn from `distribution` by `seed`.
    pub fn draw(group: Group, index: usize, distribution: Distribution, seed: u64) -> Self {
        let (m, n, k) = (group.m as usize, group.n as usize, group.k as usize);
        let draw = Draw::new(seed, index, k, distribution);
        let (a, sfa) = draw.tensor(Tensor::A, m, k);
        let (b1, sfb1) = draw.tensor(Tensor::B1, n, k);
        let (b2, sfb2) = draw.tensor(Tensor::B2, n, k);
        Self {
            group,
            a,
            b1,
            b2,
            sfa,
            sfb1,
            sfb2,
        }
    }

    fn blank(group: Group) -> Self {
        let (m, n, k) = (group.m as usize, group.n as usize, group.k as usize);
        let elements = |rows: usize| vec![0; rows * k / 2];
        let scales = |rows: usize| vec![0; rows * (k / SCALE_BLOCK)];
        Self {
            group,
            a: elements(m),
            b1: elements(n),
            b2: elements(n),
            sfa: scales(m),
            sfb1: scales(n),
            sfb2: scales(n),
        }
    }

    pub(crate) fn sfa_atoms(&self) -> Vec<u8> {
        blocked_scales(&self.sfa, self.group.m as usize, self.group.k as usize)
    }

    pub(crate) fn sfb1_atoms(&self) -> Vec<u8> {
        blocked_scales(&self.sfb1, self.group.n as usize, self.group.k as usize)
    }

    pub(crate) fn sfb2_atoms(&self) -> Vec<u8> {
        blocked_scales(&self.sfb2, self.group.n as usize, self.group.k as usize)
    }
}

/// The inputs of a whole shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operands {
    pub groups: Vec<GroupOperands>,
}

impl Operands {
    /// What they take on a device, the blocked scales not counted.
    pub fn bytes(&self) -> u64 {
        let of_group = |g: &GroupOperands| {
            let tensors = [&g.a, &g.b1, &g.b2, &g.sfa, &g.sfb1, &g.sfb2];
            tensors.iter().map(|t| t.len() as u64).sum::<u64>()
        };
        self.groups.iter().map(of_group).sum()
    }

    /// Zeros of the same sizes: for a call whose time alone is asked for.
    pub fn blank(shape: &Shape) -> Self {
        Self {
            groups: shape
                .groups
                .iter()
                .map(|g| GroupOperands::blank(*g))
                .collect(),
        }
    }

    pub fn draw(shape: &Shape, distribution: Distribution, seed: u64) -> Self {
        let groups = shape.groups.iter().enumerate();
        Self {
            groups: groups
                .map(|(index, group)| GroupOperands::draw(*group, index, distribution, seed))
                .collect(),
        }
    }
}

/// Row-major scales of `rows` × `k` elements as 128-row × 4-scale atoms, the
/// form Blackwell's tensor cores read. Rows are padded with zero scales.
pub(super) fn blocked_scales(scales: &[u8], rows: usize, k: usize) -> Vec<u8> {
    let width = k / SCALE_BLOCK;
    let atoms_across = width.div_ceil(ATOM_SCALES);
    let mut blocked = vec![0; rows.div_ceil(ATOM_ROWS) * atoms_across * ATOM_BYTES];
    for (row, row_scales) in scales.chunks_exact(width).take(rows).enumerate() {
        let (row_block, r) = (row / ATOM_ROWS, row % ATOM_ROWS);
        let within = (r % 32) * 16 + (r / 32) * 4;
        for (across, four) in row_scales.chunks(ATOM_SCALES).enumerate() {
            let at = (row_block * atoms_across + across) * ATOM_BYTES + within;
            blocked[at..at + four.len()].copy_from_slice(four);
        }
    }
    blocked
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const GROUP: Group = Group {
        m: 200,
        n: 256,
        k: 2048,
    };

    fn nibbles(bytes: &[u8]) -> BTreeSet<u8> {
        bytes.iter().flat_map(|b| [b & 15, b >> 4]).collect()
    }

    #[test]
    fn full_covers_every_code_of_both_formats() {
        let group = Group {
            m: 1000,
            n: 1024,
            ..GROUP
        };
        let operands = GroupOperands::draw(group, 0, Distribution::Full, 7);
        for elements in [&operands.a, &operands.b1, &operands.b2] {
            assert_eq!(nibbles(elements).len(), 16);
        }
        let finite: BTreeSet<u8> = (0..=0x7e).collect();
        for scales in [&operands.sfa, &operands.sfb1, &operands.sfb2] {
            let drawn: BTreeSet<u8> = scales.iter().copied().collect();
            assert_eq!(drawn, finite);
        }
    }

    /// A kernel that looks at one scale learns nothing of the others, and there
    /// are tokens that are padding.
    #[test]
    fn full_has_no_place_of_its_own_for_anything() {
        let (mut peaks, mut empty) = (BTreeSet::new(), BTreeSet::new());
        for seed in 0..40 {
            let operands = GroupOperands::draw(GROUP, 0, Distribution::Full, seed);
            let (k, first) = (GROUP.k as usize, operands.sfa[0]);
            peaks.insert(first > 0x40);
            let same = operands.sfa.chunks(k / 16).filter(|row| row[0] == first);
            assert!(same.count() < 150, "one scale for all rows");
            let rows = operands.a.chunks(k / 2).enumerate();
            let zeros = rows.filter(|(_, row)| row.iter().all(|byte| byte & 0x77 == 0));
            let zeros: Vec<usize> = zeros.map(|(index, _)| index).collect();
            assert!(zeros.len() < 100, "{}", zeros.len());
            empty.extend(zeros);
        }
        assert_eq!(peaks.len(), 2);
        assert!(empty.len() > 100, "{}", empty.len());
        let one = Group { m: 1, ..GROUP };
        let alone = GroupOperands::draw(one, 0, Distribution::Full, 1);
        assert!(alone.a.iter().any(|byte| byte & 0x77 != 0));
    }

    #[test]
    fn benchmark_keeps_the_public_range() {
        let operands = GroupOperands::draw(GROUP, 0, Distribution::Benchmark, 7);
        let codes = BTreeSet::from([0, 1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(nibbles(&operands.a), codes);
        assert!(operands.sfb2.iter().all(|scale| *scale <= 0x38));
    }

    #[test]
    fn blanks_are_as_large_as_what_is_drawn() {
        let (drawn, blank) = (
            GroupOperands::draw(GROUP, 0, Distribution::Full, 7),
            GroupOperands::blank(GROUP),
        );
        let sizes = |g: &GroupOperands| {
            [&g.a, &g.b1, &g.b2, &g.sfa, &g.sfb1, &g.sfb2].map(|tensor| tensor.len())
        };
        assert_eq!(sizes(&blank), sizes(&drawn));
        assert!(blank.b2.iter().chain(&blank.sfa).all(|byte| *byte == 0));
    }

    #[test]
    fn data_depend_on_seed_group_and_tensor() {
        let draw = |index, seed| GroupOperands::draw(GROUP, index, Distribution::Full, seed);
        let one = draw(0, 1);
        assert_eq!(one, draw(0, 1));
        assert_ne!(one.a, draw(0, 2).a);
        assert_ne!(one.a, draw(1, 1).a);
        assert_ne!(one.b1, one.b2);
    }

    #[test]
    fn atoms_hold_each_scale_where_the_contract_says() {
        let (rows, k) = (130, 256);
        let scales: Vec<u8> = (0..rows * k / 16).map(|i| (i % 251) as u8).collect();
        let blocked = blocked_scales(&scales, rows, k);
        assert_eq!(blocked.len(), 256 * k / 16);
        for row in 0..rows {
            for j in 0..k / 16 {
                let (r, atom) = (row % 128, (row / 128) * (k / 64) + j / 4);
                let at = atom * 512 + (r % 32) * 16 + (r / 32) * 4 + j % 4;
                assert_eq!(blocked[at], scales[row * (k / 16) + j]);
            }
        }
    }
}
