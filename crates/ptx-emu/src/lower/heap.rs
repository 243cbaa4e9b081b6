//! `malloc` and `free` of kernels, which the device provides: PTX functions, added to modules that
//! declare them.

use crate::front::{ParseError, ast, parse};

const HEAP: &str = include_str!("heap.ptx");

/// Adds the functions, and their memory, to a module that calls them.
pub(super) fn provide<'a>(module: &mut ast::Module<'a>) -> Result<(), ParseError> {
    let named = |function: &&ast::Function<'_>| matches!(function.name, "malloc" | "free");
    let (mut declared, mut own) = (false, false);
    for function in module.functions.iter().filter(named) {
        declared = true;
        own |= function.body.is_some();
    }
    if declared && !own {
        let heap: ast::Module<'a> = parse(HEAP)?;
        module.functions.extend(heap.functions);
        module.variables.extend(heap.variables);
    }
    Ok(())
}
