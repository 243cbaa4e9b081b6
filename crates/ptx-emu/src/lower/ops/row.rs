//! Instructions whose operands follow from their row in the table of `op`.

use crate::lower::emit::Emitter;
use crate::lower::error::Lowered;
use crate::lower::form::Form;
use crate::lower::lookup::exactly;
use crate::op::Op;

/// Emits an instruction without operands.
pub(super) fn bare(emitter: &mut Emitter<'_, '_>, form: &Form<'_, '_>, op: Op) -> Lowered<()> {
    form.words.finish()?;
    let [] = exactly(form.operands)?;
    emitter.emit(op);
    Ok(())
}

/// Emits an instruction with the operands of its row: the one it writes, then those it reads.
/// `row!(emitter, form, Bin64 { op } [d: ty] = [a: ty, b: ty])` is a row of the table with a type
/// for each operand, where the table has its register.
macro_rules! row {
    (
        $emitter:expr, $form:expr,
        $name:ident { $($modifier:ident),* } [$d:ident: $to:expr] = [$($a:ident: $from:expr),*]
    ) => {{
        let [$d, $($a),*] = $crate::lower::lookup::exactly($form.operands)?;
        $(let $a = $crate::lower::operands::Source::read($emitter, $a, $from)?;)*
        let $d = $crate::lower::operands::Target::write($emitter, $d, $to)?;
        $emitter.emit(Op::$name { $($modifier,)* $d, $($a),* });
        Ok(())
    }};
}

pub(super) use row;
