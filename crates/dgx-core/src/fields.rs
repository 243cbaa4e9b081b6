//! The pointers that a kernel gets for each group: elements of all inputs, their scales, the scales
//! as atoms, then the outputs.

use crate::domain::Group;
use crate::operator::{BinaryOp, ElementType, Extent, Operator, Tensor};

/// Rows and scales of one atom, and its bytes.
pub const ATOM_ROWS: u64 = 128;
pub const ATOM_SCALES: u64 = 4;
pub const ATOM_BYTES: u64 = 512;

/// A pointer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// `x`, `sfx`, `sfx_atoms`.
    pub name: String,
    pub form: PointedPart,
    /// The tensor's index among inputs, or among outputs.
    pub tensor: usize,
}

/// The part of a tensor that a pointer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointedPart {
    Elements,
    /// Row by row.
    Scales,
    /// In atoms of 128 rows by four scales.
    Atoms,
    Output,
}

/// The layout of a field in memory: rows of bytes, and the type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub rows: u64,
    pub row_bytes: u64,
    /// Elements of the tensor along its last axis.
    pub columns: u64,
}

impl Operator {
    /// In the order of `dgx::Group`.
    pub fn fields(&self) -> Vec<Field> {
        let field = |form, name: String, tensor| Field { name, form, tensor };
        let inputs = || self.inputs.iter().enumerate();
        let scaled = || inputs().filter(|(_, t)| t.element.scale().is_some());
        let outputs = self.outputs.iter().enumerate();
        inputs()
            .map(|(i, t)| field(PointedPart::Elements, t.name.clone(), i))
            .chain(scaled().map(|(i, t)| field(PointedPart::Scales, format!("sf{}", t.name), i)))
            .chain(
                scaled().map(|(i, t)| field(PointedPart::Atoms, format!("sf{}_atoms", t.name), i)),
            )
            .chain(outputs.map(|(i, o)| field(PointedPart::Output, o.tensor.name.clone(), i)))
            .collect()
    }

    /// The tensor of a field.
    pub fn tensor(&self, field: &Field) -> &Tensor {
        match field.form {
            PointedPart::Output => &self.outputs[field.tensor].tensor,
            _ => &self.inputs[field.tensor],
        }
    }

    /// The layout of a field of `group`. `None` for atoms, whose rows are interleaved.
    pub fn rows(&self, field: &Field, group: &Group) -> Option<Rows> {
        let tensor = self.tensor(field);
        let extents = tensor.extents(&self.sizes_in(group)?)?;
        let (columns, leading) = extents.split_last()?;
        let row_bytes = match field.form {
            PointedPart::Elements | PointedPart::Output => {
                (columns * tensor.element.bits()).div_ceil(8)
            }
            PointedPart::Scales => columns.div_ceil(tensor.element.scale()?.block),
            PointedPart::Atoms => return None,
        };
        Some(Rows {
            rows: leading.iter().product(),
            row_bytes,
            columns: *columns,
        })
    }

    /// Bytes of a field of `group`.
    pub fn field_bytes(&self, field: &Field, group: &Group) -> Option<u64> {
        if let Some(rows) = self.rows(field, group) {
            return rows.rows.checked_mul(rows.row_bytes);
        }
        let tensor = self.tensor(field);
        let extents = tensor.extents(&self.sizes_in(group)?)?;
        let (columns, leading) = extents.split_last()?;
        let scales = columns.div_ceil(tensor.element.scale()?.block);
        let down = leading.iter().product::<u64>().div_ceil(ATOM_ROWS);
        down.checked_mul(scales.div_ceil(ATOM_SCALES) * ATOM_BYTES)
    }

    /// Rows and columns of an output of `group`: all axes but the last make rows.
    pub fn output_extents(&self, output: usize, group: &Group) -> Option<(usize, usize)> {
        let extents = self.outputs[output]
            .tensor
            .extents(&self.sizes_in(group)?)?;
        let (columns, leading) = extents.split_last()?;
        Some((leading.iter().product::<u64>() as usize, *columns as usize))
    }

    /// The name of the last axis of a field's tensor: its size in capitals, or `column`.
    pub fn last_axis(&self, field: &Field) -> String {
        match self.tensor(field).extents.last() {
            Some(Extent::Size(size)) => self.sizes[*size].to_uppercase(),
            _ => "column".to_owned(),
        }
    }

    /// The length of the sums: the extent of the first input's last axis.
    pub fn depth(&self, group: &Group) -> u64 {
        let extents = self
            .sizes_in(group)
            .and_then(|sizes| self.inputs.first()?.extents(&sizes));
        extents.and_then(|e| e.last().copied()).unwrap_or(1)
    }

    /// An extent as an expression of front matter.
    pub fn formula(&self, extent: &Extent) -> String {
        let (op, of) = match extent {
            Extent::Number(value) => return value.to_string(),
            Extent::Size(size) => return self.sizes[*size].clone(),
            Extent::Of(op, of) => (op, of),
        };
        let part = |extent: &Extent| match extent {
            Extent::Of(..) => format!("({})", self.formula(extent)),
            plain => self.formula(plain),
        };
        let sign = match op {
            BinaryOp::Maximum | BinaryOp::Minimum => {
                let name = if *op == BinaryOp::Maximum {
                    "max"
                } else {
                    "min"
                };
                return format!("{name}({}, {})", self.formula(&of.0), self.formula(&of.1));
            }
            BinaryOp::FloorDivide => "/",
            BinaryOp::And => "&&",
            BinaryOp::Or => "||",
            BinaryOp::Power => "**",
            other => other.symbol(),
        };
        format!("{} {sign} {}", part(&of.0), part(&of.1))
    }
}

/// The C++ type behind a pointer to this type if the toolkit's headers are not included.
pub fn storage_type(element: ElementType) -> &'static str {
    match element.element() {
        ElementType::F64 => "double",
        ElementType::F32 => "float",
        ElementType::F16 | ElementType::Bf16 => "u16",
        ElementType::I32 => "int",
        ElementType::I8 => "signed char",
        ElementType::Bool => "bool",
        _ => "u8",
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::Group;
    use crate::operator::default_operator;

    #[test]
    fn fields_of_the_dual_gemm_are_what_kernels_were_written_for() {
        let operator = default_operator();
        let fields = operator.fields();
        let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
        let all = "a b1 b2 sfa sfb1 sfb2 sfa_atoms sfb1_atoms sfb2_atoms c";
        assert_eq!(names.join(" "), all);
        let group = Group::new([("m", 130), ("n", 256), ("k", 1024)]);
        let bytes: Vec<u64> = fields
            .iter()
            .map(|field| operator.field_bytes(field, &group).unwrap())
            .collect();
        let expected = [
            130 * 512,
            256 * 512,
            256 * 512,
            130 * 64,
            256 * 64,
            256 * 64,
            256 * 64,
            256 * 64,
            256 * 64,
            130 * 256 * 2,
        ];
        assert_eq!(bytes, expected);
    }
}
