//! Tensor maps of the front matter: on which operand, in which dimensions and boxes.

use std::collections::BTreeSet;

use super::front_matter::{Reader, position, put};
use super::variant::{Scratch, TensorMap};
use super::{Fill, MapType, OperandRef, wire};
use dgx_core::diagnostic::{InputError, nearest};
use dgx_core::document::{Formula, Spanned};

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
        let default_type = match operand {
            OperandRef::C | OperandRef::Scratch(_) => MapType::F16,
            // A box has 256 elements a side at most: an atom of 512 bytes.
            OperandRef::SfaAtoms | OperandRef::Sfb1Atoms | OperandRef::Sfb2Atoms => MapType::U16,
            _ => MapType::U8,
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
        if let Some(operand) = tensor_named(name).or(own.map(|s| OperandRef::Scratch(s.slot))) {
            return Ok(operand);
        }
        let known = TENSORS
            .iter()
            .map(|(name, _)| *name)
            .chain(scratch.iter().filter(|s| s.per_group).map(|s| &*s.name));
        let remedy = match nearest(name, known) {
            Some(close) => format!("did you mean `{close}`?"),
            None => {
                let operands: Vec<&str> = TENSORS.iter().map(|(name, _)| *name).collect();
                let operands = operands.join(" ");
                format!("name an operand ({operands}) or a per-group scratch")
            }
        };
        let message = format!("there is no tensor `{name}`");
        Err(self.document.error(tensor.span(), message, remedy))
    }

    fn default_dims(
        &self,
        operand: OperandRef,
        dtype: Option<MapType>,
        tensor: &Spanned<String>,
    ) -> Result<Vec<Formula>, InputError> {
        let elements = match dtype {
            Some(MapType::U4 | MapType::U4Align16) => "k",
            _ => "k / 2",
        };
        let atom = match dtype {
            Some(MapType::U8) => "512",
            _ => "256",
        };
        let texts: &[&str] = match operand {
            OperandRef::A => &[elements, "m"],
            OperandRef::B1 | OperandRef::B2 => &[elements, "n"],
            OperandRef::Sfa => &["k / 16", "m"],
            OperandRef::Sfb1 | OperandRef::Sfb2 => &["k / 16", "n"],
            OperandRef::SfaAtoms => &[atom, "k / 64", "cdiv(m, 128)"],
            OperandRef::Sfb1Atoms | OperandRef::Sfb2Atoms => &[atom, "k / 64", "cdiv(n, 128)"],
            OperandRef::C => &["n", "m"],
            OperandRef::Scratch(_) => {
                return Err(self.document.error(
                    tensor.span(),
                    "a map on scratch has no default `dims`",
                    "add dims = [innermost, …]",
                ));
            }
        };
        texts
            .iter()
            .map(|text| self.document.formula(text, tensor.span()))
            .collect()
    }
}

const TENSORS: [(&str, OperandRef); 10] = [
    ("a", OperandRef::A),
    ("b1", OperandRef::B1),
    ("b2", OperandRef::B2),
    ("sfa", OperandRef::Sfa),
    ("sfb1", OperandRef::Sfb1),
    ("sfb2", OperandRef::Sfb2),
    ("sfa_atoms", OperandRef::SfaAtoms),
    ("sfb1_atoms", OperandRef::Sfb1Atoms),
    ("sfb2_atoms", OperandRef::Sfb2Atoms),
    ("c", OperandRef::C),
];

pub(super) fn tensor_named(name: &str) -> Option<OperandRef> {
    TENSORS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, operand)| *operand)
}
