//! Errors of a module that parses.

/// A module that cannot be lowered, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ptx line {ptx_line}{}: {problem}{}", at(.source_line), within(.instruction))]
pub struct LowerError {
    /// The error.
    pub problem: Problem,
    /// The instruction as written; empty for a declaration.
    pub instruction: String,
    /// Line in the PTX text, from 1.
    pub ptx_line: u32,
    /// `file:line` of the program's source, if the PTX contains it.
    pub source_line: Option<String>,
}

fn at(source: &Option<String>) -> String {
    source
        .as_ref()
        .map_or(String::new(), |line| format!(" ({line})"))
}

fn within(instruction: &str) -> String {
    match instruction {
        "" => String::new(),
        text => format!(
            " in `{}`",
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        ),
    }
}

/// An error, without its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No such opcode, or one the emulator does not execute.
    #[error("instruction `{0}` is not supported")]
    UnknownInstruction(String),
    /// A modifier that the instruction does not have.
    #[error("modifier `.{0}` is not supported here")]
    UnknownModifier(String),
    /// A required modifier.
    #[error("missing modifier: {0}")]
    MissingModifier(&'static str),
    /// An instruction that the module's `.target` lacks.
    #[error("{0}")]
    Target(Box<WrongTarget>),
    /// Modifiers or operands that exclude each other.
    #[error("{0}")]
    Illegal(String),
    /// Too few or too many operands.
    #[error("expected {expected} operands, found {found}")]
    OperandCount {
        /// How many, in words.
        expected: String,
        /// How many there are.
        found: usize,
    },
    /// An operand of the wrong kind.
    #[error("expected {expected}, found {found}")]
    Operand {
        /// What was expected there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A body with a syntax error.
    #[error("expected {expected}, found {found}")]
    Syntax {
        /// What was expected there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A name nothing declares.
    #[error("`{0}` is not declared")]
    UnknownName(String),
    /// Two declarations of one name in one scope.
    #[error("`{0}` is declared twice")]
    Duplicate(String),
    /// A function that reaches itself and keeps parameters in registers.
    #[error("function `{0}` can call itself, so its parameters must be .param, not .reg")]
    Recursion(String),
    /// A function without a body.
    #[error("function `{0}` has no body in this module and is not one the emulator provides")]
    NoBody(String),
    /// More than the emulator's address spaces can contain.
    #[error("{0} is too large")]
    TooLarge(String),
}

/// An instruction that belongs to other targets than the module's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{form}` is not supported on .target {target}: it needs {needs}")]
pub struct WrongTarget {
    /// The instruction, and the part of it that is missing.
    pub form: String,
    /// The module's target.
    pub target: String,
    /// The targets that have it.
    pub needs: String,
}

/// Result of a part of lowering that does not know its place.
pub(crate) type Lowered<T> = Result<T, Problem>;

/// Shorthand for [`Problem::Illegal`].
pub(crate) fn illegal<T>(why: impl Into<String>) -> Lowered<T> {
    Err(Problem::Illegal(why.into()))
}
