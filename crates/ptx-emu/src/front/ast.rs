//! The syntax tree of a PTX module, borrowing its names from the text.

use super::parser::ParseError;
use std::fmt;

/// A position in the PTX text; both count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Position {
    /// Line of the PTX text.
    pub line: u32,
    /// Column (in bytes) within that line.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Index into [`Module::locations`].
pub(crate) type LocationId = u32;

/// A `.loc`: the source line of the following instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// Index given by the `.file` directive.
    pub file: u32,
    /// Line in that file, from 1.
    pub line: u32,
    /// Column in that line.
    pub column: u32,
    /// The function this code was inlined from, if the compiler recorded it.
    pub function: Option<String>,
    /// The call site it was inlined at.
    pub inlined_at: Option<LocationId>,
}

/// A `.file` directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceFile<'a> {
    /// Number by which `.loc` refers to it.
    pub index: u32,
    /// Path as the compiler wrote it.
    pub name: &'a str,
}

/// A whole PTX module.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Module<'a> {
    /// `.version` major and minor.
    pub version: (u32, u32),
    /// `.target` words, the architecture first.
    pub target: Vec<&'a str>,
    /// `.address_size` in bits.
    pub address_size: u32,
    /// `.file` directives.
    pub files: Vec<SourceFile<'a>>,
    /// Every distinct `.loc`.
    pub locations: Vec<Location>,
    /// Variables at module scope.
    pub variables: Vec<Variable<'a>>,
    /// Entries and functions, declarations included.
    pub functions: Vec<Function<'a>>,
    /// `.alias new, old;`
    pub aliases: Vec<Alias<'a>>,
}

/// A second name of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alias<'a> {
    /// The new name.
    pub name: &'a str,
    /// The function it stands for.
    pub target: &'a str,
}

/// The visibility of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Linkage {
    /// Only this module.
    #[default]
    Internal,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// Whether a function can be launched or only called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    /// `.entry`
    Entry,
    /// `.func`
    Func,
}

/// An `.entry` or `.func`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function<'a> {
    /// Entry or func.
    pub kind: FunctionKind,
    /// Linkage words before it.
    pub linkage: Linkage,
    /// Its name.
    pub name: &'a str,
    /// Return parameters.
    pub returns: Vec<Variable<'a>>,
    /// Input parameters.
    pub params: Vec<Variable<'a>>,
    /// Performance and cluster directives.
    pub limits: Limits,
    /// `.noreturn`
    pub noreturn: bool,
    /// The body; `None` for a declaration.
    pub body: Option<Vec<Statement<'a>>>,
    /// The syntax error in the body; then the body is empty, and the function cannot be used.
    pub broken: Option<ParseError>,
    /// The position of its name.
    pub position: Position,
}

/// The directives between a function's header and its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limits {
    /// `.maxntid`
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub min_ctas_per_sm: Option<u32>,
    /// `.maxnctapersm`
    pub max_ctas_per_sm: Option<u32>,
    /// `.maxnreg`
    pub max_registers: Option<u32>,
    /// `.reqnctapercluster`
    pub required_cluster: Option<[u32; 3]>,
    /// `.explicitcluster`
    pub explicit_cluster: bool,
    /// `.maxclusterrank`
    pub max_cluster_rank: Option<u32>,
    /// `.blocksareclusters`
    pub blocks_are_clusters: bool,
}

/// A state space in which variables can be declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    /// `.global`
    Global,
    /// `.const`
    Const,
    /// `.shared`
    Shared,
    /// `.local`
    Local,
    /// `.param`
    Param,
}

/// A fundamental type of registers and variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub(crate) enum ScalarType {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
    Pred,
}

impl ScalarType {
    /// Reads the word after the dot.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        use ScalarType::*;
        Some(match word {
            "b8" => B8,
            "b16" => B16,
            "b32" => B32,
            "b64" => B64,
            "b128" => B128,
            "u8" => U8,
            "u16" => U16,
            "u32" => U32,
            "u64" => U64,
            "s8" => S8,
            "s16" => S16,
            "s32" => S32,
            "s64" => S64,
            "f16" => F16,
            "f16x2" => F16x2,
            "bf16" => Bf16,
            "bf16x2" => Bf16x2,
            "f32" => F32,
            "f64" => F64,
            "pred" => Pred,
            _ => return None,
        })
    }

    /// Size in memory; a predicate counts as one byte.
    pub(crate) fn bytes(self) -> u32 {
        use ScalarType::*;
        match self {
            B8 | U8 | S8 | Pred => 1,
            B16 | U16 | S16 | F16 | Bf16 => 2,
            B32 | U32 | S32 | F32 | F16x2 | Bf16x2 => 4,
            B64 | U64 | S64 | F64 => 8,
            B128 => 16,
        }
    }
}

/// A variable or parameter declaration outside the register space.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variable<'a> {
    /// State space; a formal parameter of a `.func` may also live in registers.
    pub storage: Storage,
    /// Linkage words before it.
    pub linkage: Linkage,
    /// Element type.
    pub scalar: ScalarType,
    /// Elements of a `.v2`/`.v4` type, 1 otherwise.
    pub vector: u32,
    /// Explicit `.align`, in bytes.
    pub align: Option<u32>,
    /// Name; `_` in prototypes.
    pub name: &'a str,
    /// Array dimensions; `None` for an unsized one.
    pub dims: Vec<Option<u64>>,
    /// Initial value.
    pub init: Option<Initializer<'a>>,
    /// The position of its name.
    pub position: Position,
}

/// Where a [`Variable`] lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In memory.
    Memory(Space),
    /// `.reg` parameter of a function.
    Register,
}

/// An initial value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Initializer<'a> {
    /// A number.
    Constant(Constant),
    /// The address of a symbol plus an offset; `generic` if it is to be a generic address.
    Address {
        /// The symbol.
        symbol: &'a str,
        /// Bytes after it.
        offset: i64,
        /// Written as `generic(symbol)`.
        generic: bool,
        /// Only this byte of it, written as a mask: `0xff00(symbol)` is byte 1.
        byte: Option<u8>,
    },
    /// `{ ... }`
    List(Vec<Initializer<'a>>),
}

/// A literal number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Constant {
    /// An integer expression's 64 bits.
    Int(u64),
    /// `0f…`
    Single(u32),
    /// `0d…` or decimal notation, as the bits of a double.
    Double(u64),
}

/// One statement of a function's body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement<'a> {
    /// An instruction.
    Instruction(Instruction<'a>),
    /// `name:`
    Label {
        /// Its name.
        name: &'a str,
        /// Its position.
        position: Position,
    },
    /// `{ ... }`, a scope of its own.
    Block(Vec<Statement<'a>>),
    /// `.reg`
    Registers(Vec<RegisterDecl<'a>>),
    /// A variable in `.shared`, `.local`, `.param`, …
    Variable(Variable<'a>),
    /// `name: .branchtargets a, b;` or `.calltargets`
    Targets {
        /// Name of the table.
        name: &'a str,
        /// Its entries.
        targets: Vec<&'a str>,
        /// Its position.
        position: Position,
    },
    /// `name: .callprototype …;`
    Prototype(Prototype<'a>),
    /// `.pragma "text";`
    Pragma(&'a str),
}

/// The signature of an indirect call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prototype<'a> {
    /// Its label.
    pub name: &'a str,
    /// Return parameters.
    pub returns: Vec<Variable<'a>>,
    /// Input parameters.
    pub params: Vec<Variable<'a>>,
    /// Its position.
    pub position: Position,
}

/// One declarator of a `.reg` statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisterDecl<'a> {
    /// Type of each register.
    pub scalar: ScalarType,
    /// Elements of a vector register, 1 otherwise.
    pub vector: u32,
    /// The name, or the stem of a range.
    pub name: &'a str,
    /// `Some(n)` declares `name0 … name(n-1)`.
    pub count: Option<u32>,
    /// The position of the name.
    pub position: Position,
}

/// `@p` or `@!p`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guard<'a> {
    /// The predicate register.
    pub register: &'a str,
    /// `@!p`
    pub negated: bool,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Instruction<'a> {
    /// Predicate guard.
    pub guard: Option<Guard<'a>>,
    /// First word: `wgmma`, `ld`, …
    pub opcode: &'a str,
    /// The words after dots, in order and without the dots.
    pub modifiers: Vec<&'a str>,
    /// Operands in order.
    pub operands: Vec<Operand<'a>>,
    /// The text from opcode to just before the semicolon.
    pub text: &'a str,
    /// Its position.
    pub position: Position,
    /// The `.loc` in force.
    pub location: Option<LocationId>,
}

/// One operand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand<'a> {
    /// A register, special register, symbol, function, label or table.
    Name(&'a str),
    /// `symbol+4`
    NameOffset(&'a str, i64),
    /// `array[2]`, `array[%r1+3]`: an element, by its number.
    Element(&'a str, Vec<Index<'a>>),
    /// `%tid.x`, `%v.y`
    Member(&'a str, &'a str),
    /// A literal.
    Constant(Constant),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `[base+offset]`
    Address(Address<'a>),
    /// `[base, {c0, c1}]`
    TensorAddress(Address<'a>, Vec<Operand<'a>>),
    /// `_`
    Sink,
    /// `d|p`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `!p`
    Not(&'a str),
    /// `-a` of a register, as in `vmad`.
    Negated(Box<Operand<'a>>),
    /// `(a, b)` in a call.
    List(Vec<Operand<'a>>),
}

/// One subscript of an array element: register, number, or both added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Index<'a> {
    /// The register, if there is one.
    pub register: Option<&'a str>,
    /// What is added to it.
    pub offset: i64,
}

/// `base + offset` inside brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    /// Register or symbol; `None` for an absolute address.
    pub base: Option<&'a str>,
    /// Bytes after the base.
    pub offset: i64,
}
