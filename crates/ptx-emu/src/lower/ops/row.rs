//! Instructions whose operands follow from their row in the table of `op`.

/// Emits an instruction that has as many operands as its row names: the one it writes, then those
/// it reads. `row!(emitter, form, Bin64 { op } [d: ty] = [a: ty, b: ty])` is a row of the table with
/// a type at each operand, where the table has the register that holds it.
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
