//! How tensor copies have laid out shared memory.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::tensor::swizzle::Swizzle;

/// One copy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) swizzle: Swizzle,
    /// The copy.
    pub(crate) pc: u32,
}

/// What copies have brought to the shared memory of a CTA, each in place of what lay there before.
/// Stores of threads go unnoticed.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    /// By first addresses, with the first one behind; no two overlap.
    pieces: BTreeMap<u32, (u32, Layout)>,
}

impl Layouts {
    /// A tensor copy fills these bytes.
    pub(crate) fn lay(&mut self, bytes: Range<u32>, layout: Layout) {
        self.forget(bytes.clone());
        self.pieces.insert(bytes.start, (bytes.end, layout));
    }

    /// Something without a layout fills them.
    pub(crate) fn forget(&mut self, bytes: Range<u32>) {
        while let Some((&start, &(end, layout))) = self.pieces.range(..bytes.end).next_back()
            && end > bytes.start
        {
            self.pieces.remove(&start);
            if end > bytes.end {
                self.pieces.insert(bytes.end, (end, layout));
            }
            if start < bytes.start {
                self.pieces.insert(start, (bytes.start, layout));
            }
        }
    }

    /// The layout of the byte at an address, if a tensor copy brought it.
    pub(crate) fn at(&self, address: u32) -> Option<Layout> {
        let (_, &(end, layout)) = self.pieces.range(..=address).next_back()?;
        (address < end).then_some(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_later_lies_in_place_of_what_was_there() {
        let by = |pc| Layout {
            swizzle: Swizzle::B128,
            pc,
        };
        let mut layouts = Layouts::default();
        let pcs = |layouts: &Layouts| -> Vec<Option<u32>> {
            let at = |address| layouts.at(address).map(|layout| layout.pc);
            (0..8).map(|i| at(100 * i)).collect()
        };
        layouts.lay(100..200, by(1));
        layouts.lay(200..300, by(2));
        layouts.lay(0..700, by(3));
        let all = Some(3);
        assert_eq!(pcs(&layouts), [all, all, all, all, all, all, all, None]);
        layouts.lay(300..400, by(4));
        layouts.lay(200..350, by(5));
        layouts.forget(500..600);
        assert_eq!(
            pcs(&layouts),
            [3, 3, 5, 5, 3, 0, 3, 0].map(|pc| (pc != 0).then_some(pc))
        );
        assert_eq!(layouts.at(399).map(|layout| layout.pc), Some(4));
    }
}
