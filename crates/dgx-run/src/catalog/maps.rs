//! Tensor maps of the front matter: their operand, dimensions and boxes.

use std::collections::BTreeSet;

use super::front_matter::{Reader, position, put};
use super::variant::{Scratch, TensorMap};
use super::{Fill, MapType, OperandRef, wire};
use dgx_core::diagnostic::{InputError, nearest};
use dgx_core::document::{Formula, Spanned};
use dgx_core::fields::{ATOM_ROWS, ATOM_SCALES, Field, PointedPart};
use dgx_core::operator::{Extent, Operator};

impl Reader<'_> {
    pub(super) fn maps(
        &self,
        list: &[wire::Map],
        scratch: &[Scratch],
    ) -> Result<Vec<TensorMap>, InputError> {
        let mut maps = self.inherited_maps()?;
        let mut seen = BTreeSet::new();
        for map in list {
            self.new_label(&map.name, &mut seen, "map")?;
            let replaced = position(maps.iter().map(|m| &*m.name), map.name.get_ref());
            let map = self.map(map, scratch)?;
            put(&mut maps, replaced, map);
        }
        Ok(maps)
    }

    fn map(&self, map: &wire::Map, scratch: &[Scratch]) -> Result<TensorMap, InputError> {
        let operand = self.operand(&map.tensor, scratch)?;
        let dims = match &map.dims {
            Some(dims) => self.formulas(dims.get_ref())?,
            None => self.default_dims(operand, map.dtype, &map.tensor)?,
        };
        let box_dims = self.formulas(map.box_dims.get_ref())?;
        if box_dims.len() != dims.len() || !(1..=wire::RANK).contains(&dims.len()) {
            return Err(self.document.error(
                map.box_dims.span(),
                format!(
                    "a box of {} dimensions on a tensor of {}",
                    box_dims.len(),
                    dims.len()
                ),
                "give one extent per dimension, innermost first, five at most",
            ));
        }
        let strides = match &map.strides {
            Some(strides) if strides.get_ref().len() + 1 != dims.len() => {
                return Err(self.document.error(
                    strides.span(),
                    format!(
                        "{} strides for a tensor of {} dimensions",
                        strides.get_ref().len(),
                        dims.len()
                    ),
                    "give bytes for all dimensions but the innermost",
                ));
            }
            Some(strides) => self.formulas(strides.get_ref())?,
            None => Vec::new(),
        };
        let default_type = match self.field(operand) {
            // A box has at most 256 elements a side: an atom of 512 bytes.
            Some(field) if field.form == PointedPart::Atoms => MapType::U16,
            Some(field) if field.form == PointedPart::Scales => MapType::U8,
            Some(field) => MapType::of(self.operator.tensor(&field).element),
            None => MapType::F16,
        };
        Ok(TensorMap {
            name: map.name.get_ref().clone(),
            operand,
            dtype: map.dtype.unwrap_or(default_type),
            dims,
            strides,
            box_dims,
            swizzle: map.swizzle,
            fill: map.fill.unwrap_or(Fill::Zero),
        })
    }

    fn operand(
        &self,
        tensor: &Spanned<String>,
        scratch: &[Scratch],
    ) -> Result<OperandRef, InputError> {
        let name = tensor.get_ref().as_str();
        let own = scratch.iter().find(|s| s.per_group && s.name == name);
        let fields = self.operator.fields();
        let place = position(fields.iter().map(|f| &*f.name), name).map(OperandRef::Field);
        if let Some(operand) = place.or(own.map(|s| OperandRef::Scratch(s.slot))) {
            return Ok(operand);
        }
        let names = || fields.iter().map(|field| &*field.name);
        let known = names().chain(scratch.iter().filter(|s| s.per_group).map(|s| &*s.name));
        let remedy = match nearest(name, known) {
            Some(close) => format!("did you mean `{close}`?"),
            None => {
                let operands = names().collect::<Vec<&str>>().join(" ");
                format!("name an operand ({operands}) or a per-group scratch")
            }
        };
        let message = format!("there is no tensor `{name}`");
        Err(self.document.error(tensor.span(), message, remedy))
    }

    fn field(&self, operand: OperandRef) -> Option<Field> {
        match operand {
            OperandRef::Field(place) => self.operator.fields().into_iter().nth(place),
            OperandRef::Scratch(_) => None,
        }
    }

    fn default_dims(
        &self,
        operand: OperandRef,
        dtype: Option<MapType>,
        tensor: &Spanned<String>,
    ) -> Result<Vec<Formula>, InputError> {
        let Some(field) = self.field(operand) else {
            return Err(self.document.error(
                tensor.span(),
                "a map on scratch has no default `dims`",
                "add dims = [innermost, …]",
            ));
        };
        let texts = default_dims(&self.operator, &field, dtype);
        texts
            .iter()
            .map(|text| self.document.formula(text, tensor.span()))
            .collect()
    }
}

/// Extents of a field as formulas, innermost first, for maps of this type.
fn default_dims(operator: &Operator, field: &Field, dtype: Option<MapType>) -> Vec<String> {
    let tensor = operator.tensor(field);
    let over = |extent: &Extent, by: u64| match (by, extent) {
        (1, _) => operator.formula(extent),
        (_, Extent::Of(..)) => format!("({}) / {by}", operator.formula(extent)),
        _ => format!("{} / {by}", operator.formula(extent)),
    };
    let Some((columns, leading)) = tensor.extents.split_last() else {
        return Vec::new();
    };
    let block = tensor.element.scale().map_or(1, |scale| scale.block);
    let outer = leading.iter().rev().map(|extent| operator.formula(extent));
    let innermost = match field.form {
        PointedPart::Scales => over(columns, block),
        PointedPart::Atoms => {
            let atom = if dtype == Some(MapType::U8) {
                "512"
            } else {
                "256"
            };
            let rows: Vec<String> = leading.iter().map(|e| operator.formula(e)).collect();
            return vec![
                atom.to_owned(),
                over(columns, ATOM_SCALES * block),
                format!("cdiv({}, {ATOM_ROWS})", rows.join(" * ")),
            ];
        }
        PointedPart::Elements | PointedPart::Output => match (tensor.element.bits(), dtype) {
            (4, Some(MapType::U4 | MapType::U4Align16)) => operator.formula(columns),
            (4, _) => over(columns, 2),
            _ => operator.formula(columns),
        },
    };
    std::iter::once(innermost).chain(outer).collect()
}
