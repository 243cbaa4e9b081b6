use super::Packed;
use dgx_core::domain::Group;
use dgx_core::fields::{ATOM_BYTES, ATOM_ROWS, ATOM_SCALES};
use dgx_core::operator::{self, ElementType, Operator};

/// An input of one group, packed as a kernel reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    pub element: ElementType,
    /// First axis first.
    pub extents: Vec<usize>,
    /// Two 4-bit elements to a byte, the even one in the low half.
    pub elements: Vec<u8>,
    /// Row-major, one for each block along the last axis; empty if the type has none.
    pub scales: Vec<u8>,
}

impl Tensor {
    /// Zeros.
    ///
    /// # Panics
    /// If `group` does not have the operator's sizes.
    pub(super) fn blank(operator: &Operator, tensor: &operator::Tensor, group: &Group) -> Self {
        let sizes = operator.sizes_in(group);
        let extents = sizes.and_then(|sizes| tensor.extents(&sizes));
        let extents: Vec<usize> = extents
            .expect("a group of the operator's sizes")
            .into_iter()
            .map(|extent| extent as usize)
            .collect();
        let mut blank = Self {
            name: tensor.name.clone(),
            element: tensor.element,
            extents,
            elements: Vec::new(),
            scales: Vec::new(),
        };
        let (rows, columns) = (blank.rows(), blank.columns());
        let row = (columns * tensor.element.bits() as usize).div_ceil(8);
        blank.elements = vec![0; rows * row];
        blank.scales = vec![0; rows * blank.scale_columns()];
        blank
    }

    pub(crate) fn packed(&self) -> Packed<'_> {
        Packed {
            element: self.element,
            elements: &self.elements,
            scales: &self.scales,
            extents: self.extents.clone(),
        }
    }

    /// All axes but the last.
    pub fn rows(&self) -> usize {
        let (_, leading) = self.extents.split_last().unwrap_or((&1, &[]));
        leading.iter().product()
    }

    pub fn columns(&self) -> usize {
        self.extents.last().copied().unwrap_or(1)
    }

    /// Scales of a row.
    fn scale_columns(&self) -> usize {
        let scale = self.element.scale();
        scale.map_or(0, |scale| self.columns().div_ceil(scale.block as usize))
    }

    /// Its scales in atoms of 128 rows by four scales, the form Blackwell's
    /// tensor cores read. Rows are padded with zero scales.
    pub(crate) fn atoms(&self) -> Vec<u8> {
        blocked_scales(&self.scales, self.rows(), self.scale_columns())
    }
}

fn blocked_scales(scales: &[u8], rows: usize, width: usize) -> Vec<u8> {
    const FOUR: usize = ATOM_SCALES as usize;
    let [atom_rows, atom_bytes] = [ATOM_ROWS, ATOM_BYTES].map(|extent| extent as usize);
    let across = width.div_ceil(FOUR);
    let mut blocked = vec![0; rows.div_ceil(atom_rows) * across * atom_bytes];
    for (row, row_scales) in scales.chunks_exact(width.max(1)).take(rows).enumerate() {
        let (row_block, r) = (row / atom_rows, row % atom_rows);
        let within = (r % 32) * 16 + (r / 32) * 4;
        let start = row_block * across * atom_bytes + within;
        let (fours, rest) = row_scales.as_chunks::<FOUR>();
        // Four at a time as one word: a copy of any length is a call.
        let mut places = blocked[start..].chunks_mut(atom_bytes);
        for (four, place) in fours.iter().zip(&mut places) {
            place[..FOUR].copy_from_slice(four);
        }
        if let Some(place) = places.next().filter(|_| !rest.is_empty()) {
            place[..rest.len()].copy_from_slice(rest);
        }
    }
    blocked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms_hold_each_scale_where_the_contract_says() {
        let (rows, k) = (130, 256);
        let scales: Vec<u8> = (0..rows * k / 16).map(|i| (i % 251) as u8).collect();
        let blocked = blocked_scales(&scales, rows, k / 16);
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
