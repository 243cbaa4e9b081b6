//! The request to Triton for one contender on one shape. Its compiler specialises a kernel by the
//! types of its arguments and their divisibility.

use std::collections::BTreeMap;

use super::call::OperatorCall;
use crate::catalog::{Argument, Contender, Number, NumberType, OperandRef};
use dgx_core::fields::PointedPart;
use dgx_core::operator::{ElementType, Operator};

/// What Triton needs to know about a kernel besides its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TritonRequest {
    /// Of each runtime argument, in order: `*fp16:16`, `i32`.
    pub types: Vec<String>,
    /// For `tl.constexpr` parameters, by name.
    pub constants: BTreeMap<String, i64>,
    pub options: BTreeMap<String, i64>,
}

impl TritonRequest {
    /// `None` for a contender in another language.
    pub(super) fn of(
        contender: &Contender,
        call: &OperatorCall,
        constants: &BTreeMap<String, i64>,
    ) -> Option<Self> {
        let launch = call.launches.first()?;
        let options = launch.options.clone()?;
        let args = launch.args.as_ref()?.list.iter();
        let operator = &contender.variant.operator;
        Some(Self {
            types: args.map(|arg| type_of(arg, operator)).collect(),
            constants: constants.clone(),
            options,
        })
    }
}

fn type_of(arg: &Argument, operator: &Operator) -> String {
    match arg {
        Argument::Operand(OperandRef::Field(place)) => {
            let field = &operator.fields()[*place];
            let element = operator.tensor(field).element;
            let is_scale = matches!(field.form, PointedPart::Scales | PointedPart::Atoms);
            let element = match is_scale {
                true => "u8",
                false => element_name(element),
            };
            format!("*{element}:16")
        }
        Argument::Operand(OperandRef::Scratch(_))
        | Argument::CallScratch(_)
        | Argument::Map(_)
        | Argument::Struct(_)
        | Argument::At(_) => "*u8:16".to_owned(),
        Argument::PerGroup(_) => "*u32:16".to_owned(),
        Argument::Number(Number::Integer(value)) => {
            let width = match i32::try_from(*value) {
                Ok(_) => "i32",
                Err(_) => "i64",
            };
            let divides = if value % 16 == 0 { ":16" } else { "" };
            format!("{width}{divides}")
        }
        Argument::Number(Number::Real(_)) => "fp32".to_owned(),
        Argument::Typed(number, _) => match number.is_float() && *number != NumberType::Bf16 {
            true => number.name().replace('f', "fp"),
            false => number.name().to_owned(),
        },
    }
}

/// Two e2m1 share a byte, for which Triton has no name.
fn element_name(element: ElementType) -> &'static str {
    match element.element() {
        ElementType::F64 => "fp64",
        ElementType::F32 => "fp32",
        ElementType::F16 => "fp16",
        ElementType::Bf16 => "bf16",
        ElementType::E4m3 => "fp8e4nv",
        ElementType::E5m2 => "fp8e5",
        ElementType::I8 => "i8",
        ElementType::I32 => "i32",
        _ => "u8",
    }
}
