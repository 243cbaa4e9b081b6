//! Instruction descriptors: the 32 bits that say what is multiplied, and how.

use super::super::Element;
use super::super::descriptor::Matrix;
use super::super::scaled::Scale;
use super::{BLOCK, Block};

/// `.kind::…`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    F16,
    Tf32,
    F8f6f4,
    I8,
    Mxf8f6f4,
    Mxf4,
    Mxf4nvf4,
}

impl Kind {
    /// Whether blocks of the operands have scales.
    pub(crate) fn scaled(self) -> bool {
        matches!(self, Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4)
    }

    /// Whether operands are packed 4-bit floats.
    pub(crate) fn fours(self) -> bool {
        matches!(self, Kind::Mxf4 | Kind::Mxf4nvf4)
    }

    /// K of an instruction: what 32 bytes hold.
    pub(crate) fn depth(self) -> u32 {
        match self {
            Kind::Tf32 => 8,
            Kind::F16 => 16,
            Kind::F8f6f4 | Kind::I8 | Kind::Mxf8f6f4 => 32,
            Kind::Mxf4 | Kind::Mxf4nvf4 => 64,
        }
    }

    /// Elements of a 16-byte chunk.
    pub(crate) fn per_chunk(self) -> u32 {
        self.depth() / 2
    }
}

/// `.scale_vec::1X`, `2X`, `4X`: scales of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Vector {
    One,
    Two,
    Four,
}

impl Vector {
    pub(crate) fn scales(self) -> usize {
        match self {
            Vector::One => 1,
            Vector::Two => 2,
            Vector::Four => 4,
        }
    }
}

/// What sums are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sum {
    F16,
    F32,
    S32,
}

/// Scales of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Scaling {
    pub scale: Scale,
    pub vector: Vector,
    /// First byte of A's and B's scales in their words.
    pub ids: [u32; 2],
}

/// A decoded instruction descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    pub kind: Kind,
    /// Rows and columns of the product, of both CTAs of a pair together.
    pub m: u32,
    pub n: u32,
    pub a: Element,
    pub b: Element,
    pub d: Sum,
    /// A and B have opposite signs to what is stored.
    pub negate: bool,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub saturate: bool,
    pub scaling: Option<Scaling>,
    /// CTAs that take part, 1 or 2.
    pub ctas: u32,
    /// `.ws`
    pub stationary: bool,
    /// `.sp`: A stores half of its elements, and K is twice as much; which column of metadata is
    /// meant.
    pub sparse: Option<u32>,
}

/// The bits of a field.
fn field(bits: u32, low: u32, width: u32) -> u32 {
    bits >> low & ((1 << width) - 1)
}

fn small_float(code: u32) -> Option<Element> {
    Some(match code {
        0 => Element::E4m3,
        1 => Element::E5m2,
        3 => Element::E2m3,
        4 => Element::E3m2,
        5 => Element::E2m1,
        _ => return None,
    })
}

fn element(kind: Kind, code: u32) -> Option<Element> {
    match (kind, code) {
        (Kind::F16, 0) => Some(Element::F16),
        (Kind::F16, 1) => Some(Element::Bf16),
        (Kind::Tf32, 2) => Some(Element::Tf32),
        (Kind::I8, 0) => Some(Element::U8),
        (Kind::I8, 1) => Some(Element::S8),
        (Kind::Mxf4 | Kind::Mxf4nvf4, 1) => Some(Element::E2m1),
        (Kind::F8f6f4 | Kind::Mxf8f6f4, code) => small_float(code),
        _ => None,
    }
}

impl Form {
    /// Reads a descriptor; why it is none, in words.
    pub(crate) fn decode(
        kind: Kind,
        vector: Option<Vector>,
        (ctas, stationary, sparse): (u32, bool, bool),
        bits: u32,
    ) -> Result<Self, String> {
        let wrong = |what: &str| Err(format!("instruction descriptor {bits:#010x}: {what}"));
        match (field(bits, 2, 1) == 1, sparse) {
            (true, false) => {
                return wrong("bit 2 announces a sparse A, which the instruction does not have");
            }
            (false, true) => return wrong("bit 2 must announce the instruction's sparse A"),
            _ => {}
        }
        let selector = match (sparse, kind) {
            (true, Kind::F16 | Kind::Tf32) => 0b01,
            _ => 0,
        };
        let reserved = match kind.scaled() {
            true => 0b0111 << 24 | 1 << 6 | 0b1011,
            false if stationary => 1 << 29 | 1 << 23 | 1 << 6 | 0b11,
            false => 0b111 << 29 | 1 << 23 | 1 << 6 | 0b11,
        };
        let k96 = kind.fours() && bits >> 31 == 1;
        if k96 {
            return wrong("bit 31 asks for K = 96, which only sm_103a has");
        }
        let reserved = (reserved | u32::from(kind.scaled()) << 31) & !selector;
        if bits & reserved != 0 {
            return wrong(&format!("bits {:#x} must be zero", bits & reserved));
        }
        let saturate = field(bits, 3, 1) == 1;
        if saturate && kind != Kind::I8 {
            return wrong("only integers saturate (bit 3)");
        }
        let (a_code, b_code) = (field(bits, 7, 3), field(bits, 10, 3));
        let (Some(a), Some(b)) = (element(kind, a_code), element(kind, b_code)) else {
            return wrong(&format!(
                "{kind:?} does not multiply types {a_code} and {b_code}"
            ));
        };
        let d = match (kind.scaled(), kind, field(bits, 4, 2)) {
            (true, ..) => Sum::F32,
            (_, Kind::I8, 2) => Sum::S32,
            (_, Kind::F16 | Kind::F8f6f4, 0) if a != Element::Bf16 && b != Element::Bf16 => {
                Sum::F16
            }
            (_, Kind::F16 | Kind::F8f6f4 | Kind::Tf32, 1) => Sum::F32,
            (.., code) => return wrong(&format!("{kind:?} does not sum in type {code}")),
        };
        let [negate_a, negate_b, transpose_a, transpose_b] =
            [13, 14, 15, 16].map(|bit| field(bits, bit, 1) == 1);
        if kind == Kind::I8 && (negate_a || negate_b) {
            return wrong("integers are not negated");
        }
        let narrow = |element: Element| element.bits() < 8;
        if (transpose_a && narrow(a)) || (transpose_b && narrow(b)) {
            return wrong("4- and 6-bit operands are K-major");
        }
        let n = 8 * field(bits, 17, 6);
        let m = match kind.scaled() {
            true => 128 * field(bits, 27, 2),
            false => 16 * field(bits, 24, 5),
        };
        let form = Self {
            kind,
            m,
            n,
            a,
            b,
            d,
            negate: negate_a != negate_b,
            transpose_a,
            transpose_b,
            saturate,
            scaling: match (kind.scaled(), vector) {
                (true, Some(vector)) => Some(scaling(kind, vector, bits)?),
                (true, None) => return wrong("the scales' number is missing"),
                (false, _) => None,
            },
            ctas,
            stationary,
            sparse: sparse.then_some(bits & selector),
        };
        match form.has_shape() {
            true => Ok(form),
            false => wrong(&format!(
                "{kind:?} has no {m} × {n} with cta_group::{ctas}{}",
                if stationary { " and .ws" } else { "" }
            )),
        }
    }

    fn has_shape(&self) -> bool {
        let (m, n) = (self.m, self.n);
        if self.stationary {
            return matches!(m, 32 | 64 | 128) && matches!(n, 64 | 128 | 256);
        }
        let rows = match (self.ctas, self.kind.scaled()) {
            (1, false) => matches!(m, 64 | 128),
            (1, true) => m == 128,
            _ => matches!(m, 128 | 256),
        };
        let bytes = self.transpose_b && self.b.bits() == 8;
        let columns = match (self.kind, self.ctas) {
            (Kind::I8, 1) => matches!(n, 8 | 24) || n.is_multiple_of(16),
            (Kind::I8, _) => n.is_multiple_of(32),
            (_, ctas) => n.is_multiple_of(8 * ctas * if bytes { 2 } else { 1 }),
        };
        rows && columns && (8..=256).contains(&n)
    }

    /// K of the instruction.
    pub(crate) fn depth(&self) -> u32 {
        self.kind.depth() * if self.sparse.is_some() { 2 } else { 1 }
    }

    /// The second half of B's tile, where A is sparse; `None` also if the swizzle has no room for it.
    pub(crate) fn next_b(&self, b: &Matrix) -> Option<Matrix> {
        self.sparse.and_then(|_| b.next_k())
    }

    /// Columns of tensor memory that metadata takes.
    pub(crate) fn metadata_columns(&self) -> u32 {
        // Of kind::f16 and tf32 an instruction reads one of the two.
        if self.sparse.is_some() { 2 } else { 0 }
    }

    /// Rows of A and D in each CTA.
    pub(crate) fn rows(&self) -> u32 {
        self.m / self.ctas
    }

    /// Columns of D in tensor memory.
    pub(crate) fn columns(&self) -> u32 {
        match self.halves() {
            0 => self.n,
            parts => self.n / parts,
        }
    }

    /// Parts in which D's columns lie beside each other in other lanes; 0 if they do not.
    fn halves(&self) -> u32 {
        match (self.stationary, self.ctas, self.m) {
            (true, _, 32) => 4,
            (true, _, 64) | (false, 2, 128) => 2,
            _ => 0,
        }
    }

    /// M = 64 uses half of the lanes of each warp's quarter.
    pub(crate) fn half_lanes(&self) -> bool {
        !self.stationary && self.rows() == 64 && self.ctas == 1
    }

    /// Where D lies in each CTA. `base` is 0, or 16 for the other half of the lanes.
    pub(crate) fn blocks(&self, base: u32) -> Vec<Block> {
        let rows = (0..self.rows()).step_by(BLOCK);
        let parts = self.halves().max(1);
        let width = self.n / parts;
        let part_lanes = match parts {
            4 => 32,
            _ => 64,
        };
        let place = |row: u32, part: u32| Block {
            row,
            n: part * width,
            width,
            lane: match self.half_lanes() {
                true => 2 * row + base,
                false => row + part * part_lanes,
            },
            column: 0,
        };
        rows.flat_map(|row| (0..parts).map(move |part| place(row, part)))
            .collect()
    }
}

fn scaling(kind: Kind, vector: Vector, bits: u32) -> Result<Scaling, String> {
    let wrong = |what: &str| Err(format!("instruction descriptor {bits:#010x}: {what}"));
    let scale = match field(bits, 23, 1) {
        1 => Scale::Ue8m0,
        _ => Scale::Ue4m3,
    };
    let fits = match (kind, vector) {
        (Kind::Mxf8f6f4, Vector::One) | (Kind::Mxf4 | Kind::Mxf4nvf4, Vector::Two) => {
            scale == Scale::Ue8m0
        }
        (Kind::Mxf4nvf4, Vector::Four) => true,
        _ => false,
    };
    if !fits {
        return wrong(&format!(
            "{kind:?} with {} scales a row does not take {scale:?} (bit 23)",
            vector.scales()
        ));
    }
    let ids = [field(bits, 29, 2), field(bits, 4, 2)];
    let known = |id: u32| match vector {
        Vector::One => true,
        Vector::Two => matches!(id, 0 | 2),
        Vector::Four => id == 0,
    };
    if !ids.into_iter().all(known) {
        return wrong(&format!(
            "scale ids {} (A) and {} (B) do not go with {} scales a row",
            ids[0],
            ids[1],
            vector.scales()
        ));
    }
    Ok(Scaling { scale, vector, ids })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nvfp4(ctas: u32, bits: u32) -> Result<Form, String> {
        Form::decode(
            Kind::Mxf4nvf4,
            Some(Vector::Four),
            (ctas, false, false),
            bits,
        )
    }

    #[test]
    fn known_descriptors_are_read() {
        for (ctas, bits, shape) in [
            (1, 0x0810_0480, (128, 64)),
            (1, 0x0820_0480, (128, 128)),
            (1, 0x0830_0480, (128, 192)),
            (1, 0x0840_0480, (128, 256)),
            (2, 0x1010_0480, (256, 64)),
            (2, 0x1040_0480, (256, 256)),
        ] {
            let form = nvfp4(ctas, bits).expect("a descriptor");
            assert_eq!((form.m, form.n), shape);
            let scaling = form.scaling.expect("scales");
            assert_eq!((scaling.scale, scaling.ids), (Scale::Ue4m3, [0, 0]));
        }
        let f16 = Form::decode(
            Kind::F16,
            None,
            (1, false, false),
            4 << 24 | 16 << 17 | 1 << 4,
        );
        let f16 = f16.expect("a descriptor");
        assert_eq!((f16.m, f16.n, f16.d), (64, 128, Sum::F32));
        assert_eq!(f16.blocks(16)[1].lane, 48);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |ctas, bits| nvfp4(ctas, bits).expect_err("not a descriptor");
        assert!(of(1, 0x1020_0480).contains("no 256 × 128 with cta_group::1"));
        assert!(of(1, 0x0820_0480 | 2 << 29).contains("scale ids 2 (A) and 0 (B)"));
        assert!(of(1, 0x8820_0480).contains("K = 96"));
        assert!(of(1, 0x0920_0480).contains("0x1000000"));
        assert!(of(1, 0x0820_0484).contains("sparse"));
        assert!(of(1, 0x0820_0080).contains("types 1 and 0"));
    }

    #[test]
    fn a_pair_of_128_rows_lies_two_by_two() {
        let form = Form::decode(
            Kind::F16,
            None,
            (2, false, false),
            8 << 24 | 8 << 17 | 1 << 4,
        );
        let form = form.expect("a descriptor");
        let blocks = form.blocks(0);
        assert_eq!((form.rows(), form.columns(), blocks.len()), (64, 32, 8));
        let last = blocks[7];
        assert_eq!((last.row, last.n, last.lane, last.column), (48, 32, 112, 0));
    }
}
