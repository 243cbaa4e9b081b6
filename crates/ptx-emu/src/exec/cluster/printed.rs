//! What the kernels of a launch have printed.

use crate::report::Print;

/// Bytes kept of one launch's output, as large as the device's own buffer.
const MAX_PRINTED: usize = 1 << 20;

/// What has been printed so far.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    bytes: usize,
    prints: Vec<Print>,
}

impl Printed {
    pub(crate) fn add(&mut self, print: Print) {
        if self.bytes + print.text.len() <= MAX_PRINTED {
            self.bytes += print.text.len();
            self.prints.push(print);
        }
    }

    /// Adds what another cluster said, as far as there is room.
    pub(crate) fn append(&mut self, other: Self) {
        for print in other.prints {
            self.add(print);
        }
    }

    /// Everything, CTA by CTA and in each in the order it was said.
    pub(crate) fn in_order(mut self) -> Vec<Print> {
        self.prints.sort_by_key(|print| {
            let [x, y, z] = print.cta;
            [z, y, x]
        });
        self.prints
    }
}
