//! What an operator takes on the sizes of a shape.

use super::{Operator, Tensor};
use crate::domain::roofline::ResourceDemand;
use crate::domain::{Group, Shape};

impl Operator {
    /// Sizes of a group in this operator's order; `None` if one is missing.
    pub fn sizes_in(&self, group: &Group) -> Option<Vec<u64>> {
        self.sizes_of(|name| group.get(name).map(u64::from))
    }

    /// The minimum work of any design: each operation and each byte once.
    pub fn least_work(&self, shape: &Shape) -> ResourceDemand {
        self.work_of(&shape.groups)
    }

    /// The same for a shape's groups.
    pub fn work_of(&self, groups: &[Group]) -> ResourceDemand {
        let mut work = ResourceDemand::default();
        for group in groups {
            let Some(sizes) = self.sizes_in(group) else {
                continue;
            };
            let least = self.work(&sizes);
            for (rate, flops) in least.products {
                *work.products.entry(rate).or_default() += flops;
            }
            work.memory_bytes += least.bytes as f64;
        }
        work
    }

    /// Bytes of all outputs.
    pub fn bytes_written(&self, groups: &[Group]) -> u64 {
        let sizes = groups.iter().filter_map(|group| self.sizes_in(group));
        let bytes = |sizes: &[u64]| -> u64 {
            let outputs = self.outputs.iter();
            outputs.filter_map(|o| o.tensor.bytes(sizes)).sum()
        };
        sizes.map(|sizes| bytes(&sizes)).sum()
    }

    /// The operations that a rate on `shape` is stated in.
    pub fn operations(&self, shape: &Shape) -> f64 {
        let sizes = shape.groups.iter().filter_map(|group| self.sizes_in(group));
        sizes.map(|sizes| self.work(&sizes).flops()).sum()
    }

    /// Its name, and a hash of its text: `softmax (1f0c9a)`.
    pub fn version(&self) -> String {
        let digest = &self.digest[..self.digest.len().min(6)];
        format!("{} ({digest})", self.name)
    }

    /// Inputs, then outputs.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.inputs
            .iter()
            .chain(self.outputs.iter().map(|o| &o.tensor))
    }
}
