//! The name of an element of an output: row and column of a matrix, or the indices of a tensor with
//! another number of axes.

use crate::operator::{GroupOperands, Operands};
use dgx_core::operator::Output;

/// One output of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputName {
    pub tensor: String,
    pub extents: Vec<usize>,
    /// The group, if there are several.
    pub group: Option<usize>,
    /// Whether it is the operator's only output.
    pub only: bool,
}

impl OutputName {
    /// All answers of a call, in the order of their outputs in memory.
    pub(super) fn all(operands: &Operands) -> Vec<Self> {
        let (outputs, groups) = (&operands.operator.outputs, &operands.groups);
        let of_group = |(number, group): (usize, &GroupOperands)| {
            let sizes = operands.operator.sizes_in(&group.group).unwrap_or_default();
            let answer = |output: &Output| {
                let extents = output.tensor.extents(&sizes).unwrap_or_default();
                Self {
                    tensor: output.tensor.name.clone(),
                    extents: extents.into_iter().map(|extent| extent as usize).collect(),
                    group: (groups.len() > 1).then_some(number),
                    only: outputs.len() == 1,
                }
            };
            outputs.iter().map(answer).collect::<Vec<_>>()
        };
        groups.iter().enumerate().flat_map(of_group).collect()
    }

    /// Whether its elements have a row and a column.
    pub fn is_matrix(&self) -> bool {
        self.extents.len() == 2
    }

    /// "group 3", "output y", "output y of group 3"; `None` if there is only one answer.
    pub fn whose(&self) -> Option<String> {
        let name = &self.tensor;
        match (self.only, self.group) {
            (true, None) => None,
            (true, Some(group)) => Some(format!("group {group}")),
            (false, None) => Some(format!("output {name}")),
            (false, Some(group)) => Some(format!("output {name} of group {group}")),
        }
    }

    /// "group 3, row 1, column 2", or `y[0,1,2] of group 3`.
    pub fn element(&self, row: usize, column: usize) -> String {
        if self.is_matrix() {
            let whose = self.whose().map(|whose| whose + ", ").unwrap_or_default();
            return format!("{whose}row {row}, column {column}");
        }
        let last = (!self.extents.is_empty()).then(|| column.to_string());
        self.indexed(self.leading(row).into_iter().chain(last))
    }

    /// The row of an element with other than two axes: `y[0,1,:]`.
    pub fn line(&self, row: usize) -> String {
        self.indexed(self.leading(row).into_iter().chain([":".to_owned()]))
    }

    /// The tensor with an index for each axis: `y[0,1,:] of group 3`.
    pub(super) fn indexed(&self, axes: impl Iterator<Item = String>) -> String {
        let axes: Vec<String> = axes.collect();
        let group = self.group.map(|group| format!(" of group {group}"));
        format!(
            "{}[{}]{}",
            self.tensor,
            axes.join(","),
            group.unwrap_or_default()
        )
    }

    /// The indices of all axes but the last.
    fn leading(&self, row: usize) -> Vec<String> {
        let count = self.extents.len().saturating_sub(1);
        let mut rest = row;
        let mut indices: Vec<String> = (self.extents[..count].iter().rev())
            .map(|extent| {
                let index = rest % extent;
                rest /= extent;
                index.to_string()
            })
            .collect();
        indices.reverse();
        indices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(extents: &[usize], group: Option<usize>, only: bool) -> OutputName {
        OutputName {
            tensor: "y".to_owned(),
            extents: extents.to_vec(),
            group,
            only,
        }
    }

    #[test]
    fn elements_of_a_matrix_have_a_row_and_a_column() {
        let of = |group, only| answer(&[4, 8], group, only).element(3, 5);
        assert_eq!(of(None, true), "row 3, column 5");
        assert_eq!(of(Some(2), true), "group 2, row 3, column 5");
        assert_eq!(of(None, false), "output y, row 3, column 5");
        let both = "output y of group 1, row 3, column 5";
        assert_eq!(of(Some(1), false), both);
    }

    #[test]
    fn elements_of_other_tensors_have_their_own_indices() {
        let norm = answer(&[2, 4, 10, 256], None, true);
        assert_eq!(norm.element(50, 7), "y[1,1,0,7]");
        assert_eq!(norm.line(50), "y[1,1,0,:]");
        assert_eq!(answer(&[9], Some(1), true).element(0, 6), "y[6] of group 1");
        assert_eq!(answer(&[], None, true).element(0, 0), "y[]");
    }
}
