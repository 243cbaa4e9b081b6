//! What the kernels of a launch have printed.

use crate::report::Print;

/// Bytes kept of one launch's output. A device's buffer has 1 MiB, and loses what is older.
const MAX_PRINTED: usize = 1 << 26;

/// What has been printed so far.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    bytes: usize,
    prints: Vec<Print>,
    lost: usize,
}

impl Printed {
    pub(crate) fn add(&mut self, print: Print) {
        if self.bytes + print.text.len() <= MAX_PRINTED {
            self.bytes += print.text.len();
            self.prints.push(print);
        } else {
            self.lost += 1;
        }
    }

    /// Adds what another cluster said, as far as there is room.
    pub(crate) fn append(&mut self, other: Self) {
        for print in other.prints {
            self.add(print);
        }
        self.lost += other.lost;
    }

    /// Everything, CTA by CTA and in each in the order it was said; and how much was too much.
    pub(crate) fn in_order(mut self) -> Vec<Print> {
        self.prints.sort_by_key(|print| {
            let [x, y, z] = print.cta;
            [z, y, x]
        });
        if let (Some(last), 1..) = (self.prints.last(), self.lost) {
            let text = format!(
                "\ndgx: {} more lines of this launch were left out\n",
                self.lost
            );
            let last = Print { text, ..*last };
            self.prints.push(last);
        }
        self.prints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let print = |x: u32, bytes: usize| Print {
            cta: [x, 0, 0],
            thread: [0; 3],
            text: "x".repeat(bytes),
        };
        let (mut all, mut other) = (Printed::default(), Printed::default());
        all.add(print(1, MAX_PRINTED));
        all.add(print(2, 1));
        other.add(print(0, 1));
        all.append(other);
        let said = all.in_order();
        assert_eq!(said.len(), 2);
        assert_eq!(
            said[1].text,
            "\ndgx: 2 more lines of this launch were left out\n"
        );
    }
}
