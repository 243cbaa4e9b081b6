//! Lowers the syntax tree to the predecoded program.
//!
//! `unit` collects a module's tables, `kernel` lowers one kernel in two passes, `body` walks
//! statements, `ops` has the instructions; `flow` finds where diverged lanes reconverge, `allocate`
//! gives registers their slots. Anything unknown is an error that names it.
//!
//! A module may use only those listed above it, by a path or by a method of
//! [`Emitter`](emit::Emitter); a test checks this.

pub(crate) mod error;

mod heap;

mod target;

mod version;

mod modifiers;

mod names;

mod unit;

mod survey;

mod emit;

mod lookup;

mod form;

mod special;

mod address;

mod operands;

mod frame;

mod ops;

mod body;

mod flow;

mod allocate;

mod registers;

mod kernel;

pub use error::{LowerError, Problem, WrongTarget};

use crate::front::{self, ParseError, ast};
use crate::module::Module;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// PTX text that cannot become a module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// It has a syntax error.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It uses something that does not exist or is not supported.
    #[error(transparent)]
    Lower(#[from] LowerError),
}

/// Reads PTX text and lowers all its kernels. A kernel that cannot be lowered does not affect the
/// others: it is in [`Module::refused`].
pub(crate) fn compile(text: &str) -> Result<Module, CompileError> {
    let mut module = front::parse(text)?;
    heap::provide(&mut module)?;
    Ok(lower(&module)?)
}

/// Lowers all kernels of a module, each on its own; an error in the module itself (its variables,
/// or two functions of one name) refuses it.
pub(crate) fn lower(module: &ast::Module<'_>) -> Result<Module, LowerError> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let unit = unit::Unit::new(module).map_err(|(problem, ptx_line)| LowerError {
        problem,
        instruction: String::new(),
        ptx_line,
        source_line: None,
    })?;
    let mut lowered = Module {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        target: module
            .target
            .first()
            .copied()
            .unwrap_or_default()
            .to_owned(),
        ..Module::default()
    };
    for (index, function) in module.functions.iter().enumerate() {
        if function.kind == ast::FunctionKind::Entry && function.body.is_some() {
            let name = function.name.to_owned();
            match kernel::lower(&unit, index) {
                Ok(program) => {
                    lowered.kernels.insert(name, Arc::new(program));
                }
                Err(error) => {
                    lowered.refused.insert(name, error);
                }
            }
        }
    }
    lowered.globals = unit.globals;
    Ok(lowered)
}
