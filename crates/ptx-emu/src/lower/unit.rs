//! Tables of a module: functions, variables and source files by name.

use super::error::{Lowered, Problem};
use super::names::Location;
use super::target::Target;
use crate::front::ast::{self, Initializer, Linkage, Space, Storage};
use crate::op::{CLUSTER_RANK_SHIFT, CODE_WINDOW, Frame, GlobalVar, Param, Reloc};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Maximum size of a variable: more than the memory of any device.
const MAX_BYTES: u64 = 1 << 38;

/// Maximum size of an initialised variable, whose bytes are kept in the module.
const MAX_INITIAL: u64 = 1 << 32;

/// Frames of inlining kept in a location; real chains are far shorter.
const MAX_FRAMES: usize = 32;

#[derive(Debug, Clone, Copy)]
pub(crate) enum ModuleVariable {
    /// In global or constant memory.
    Global { index: u32, constant: bool },
    /// Index in the syntax tree's variables.
    Shared(usize),
}

pub(crate) struct Unit<'a> {
    pub ast: &'a ast::Module<'a>,
    /// Some instruction is for a pair of CTAs, or clears bits of a CTA's rank: addresses of shared
    /// variables must contain the rank, as on the device.
    pub pairs: bool,
    /// The module's target, if it is known.
    pub target: Option<Target>,
    pub functions: HashMap<&'a str, usize>,
    pub variables: HashMap<&'a str, ModuleVariable>,
    pub globals: Vec<GlobalVar>,
    /// Variables in global and constant memory that functions declare, by position.
    pub statics: HashMap<ast::Position, Location>,
    /// Functions whose address some instruction or initial value takes.
    pub address_taken: BTreeSet<usize>,
    /// Functions each function can reach by calls.
    reaches: Vec<BTreeSet<usize>>,
    files: HashMap<u32, Arc<str>>,
}

/// Size and alignment of a variable.
pub(crate) struct Layout {
    /// Bytes; 0 for an unsized array.
    pub size: u64,
    pub align: u32,
}

pub(crate) fn layout(variable: &ast::Variable<'_>) -> Lowered<Layout> {
    let element = u64::from(variable.scalar.bytes()) * u64::from(variable.vector);
    let align = variable.align.unwrap_or(element as u32);
    let mut size = element;
    for (at, dim) in variable.dims.iter().enumerate() {
        let extent = match dim {
            Some(extent) => *extent,
            None if at == 0 => inferred_extent(variable),
            None => {
                return Err(Problem::Illegal(
                    "only the first dimension may be open".into(),
                ));
            }
        };
        size = size
            .checked_mul(extent)
            .filter(|&size| size <= MAX_BYTES)
            .ok_or_else(|| Problem::TooLarge(format!("variable `{}`", variable.name)))?;
    }
    Ok(Layout { size, align })
}

/// Elements of an open first dimension: those of the initial value.
fn inferred_extent(variable: &ast::Variable<'_>) -> u64 {
    match &variable.init {
        Some(Initializer::List(items)) => items.len() as u64,
        _ => 0,
    }
}

impl<'a> Unit<'a> {
    /// Collects the tables; an error includes the line of the PTX.
    pub(super) fn new(ast: &'a ast::Module<'a>) -> Result<Self, (Problem, u32)> {
        let mut unit = Self {
            ast,
            pairs: ast.functions.iter().any(|function| {
                let body = function.body.as_deref().unwrap_or_default();
                names_pair(body)
            }),
            target: ast.target.first().and_then(|name| Target::parse(name)),
            functions: HashMap::new(),
            variables: HashMap::new(),
            globals: Vec::new(),
            statics: HashMap::new(),
            address_taken: BTreeSet::new(),
            reaches: Vec::new(),
            files: HashMap::new(),
        };
        for file in &ast.files {
            unit.files.insert(file.index, file.name.into());
        }
        for (index, function) in ast.functions.iter().enumerate() {
            unit.add_function(index, function)
                .map_err(|problem| (problem, function.position.line))?;
        }
        for alias in &ast.aliases {
            let target = unit.functions.get(alias.target).copied();
            let target = target.ok_or((Problem::UnknownName(alias.target.to_owned()), 0))?;
            unit.functions.insert(alias.name, target);
        }
        for function in &ast.functions {
            unit.find_addresses(function.body.as_deref().unwrap_or_default());
        }
        for init in ast.variables.iter().filter_map(|v| v.init.as_ref()) {
            unit.find_entries(init);
        }
        unit.find_calls();
        for (index, variable) in ast.variables.iter().enumerate() {
            unit.add_variable(index, variable)
                .map_err(|problem| (problem, variable.position.line))?;
        }
        for variable in &ast.variables {
            unit.initialise(variable)
                .map_err(|problem| (problem, variable.position.line))?;
        }
        for function in &ast.functions {
            let body = function.body.as_deref().unwrap_or_default();
            unit.add_statics(function.name, body, &mut Vec::new())?;
        }
        Ok(unit)
    }

    fn add_function(&mut self, index: usize, function: &ast::Function<'a>) -> Lowered<()> {
        if let Some(&known) = self.functions.get(function.name) {
            let earlier = &self.ast.functions[known];
            if earlier.body.is_some() && function.body.is_some() {
                return Err(Problem::Duplicate(function.name.to_owned()));
            }
            if earlier.body.is_some() {
                return Ok(());
            }
        }
        self.functions.insert(function.name, index);
        Ok(())
    }

    /// Records functions that are used as values.
    fn find_addresses(&mut self, statements: &[ast::Statement<'a>]) {
        for statement in statements {
            match statement {
                ast::Statement::Block(inner) => self.find_addresses(inner),
                ast::Statement::Variable(ast::Variable {
                    init: Some(init), ..
                }) => self.find_entries(init),
                ast::Statement::Instruction(instruction) => {
                    // The function that a call names is not a value; its arguments are.
                    let call = instruction.opcode == "call";
                    for operand in &instruction.operands {
                        match operand {
                            ast::Operand::List(arguments) => self.find_names(arguments),
                            value if !call => self.find_names(std::slice::from_ref(value)),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn find_names(&mut self, operands: &[ast::Operand<'a>]) {
        for operand in operands {
            if let ast::Operand::Name(name) = operand {
                self.address_taken.extend(self.functions.get(name));
            }
        }
    }

    /// Records functions in a table of addresses.
    fn find_entries(&mut self, init: &Initializer<'a>) {
        match init {
            Initializer::List(items) => items.iter().for_each(|item| self.find_entries(item)),
            Initializer::Address { symbol, .. } => {
                self.address_taken.extend(self.functions.get(symbol));
            }
            Initializer::Constant(_) => {}
        }
    }

    /// The address of a function, the same in every kernel.
    pub(super) fn code_address(&self, function: usize) -> u64 {
        CODE_WINDOW + 16 * function as u64
    }

    /// Closes the call graph; a call through a register can reach every function whose address is
    /// taken.
    fn find_calls(&mut self) {
        let mut reaches: Vec<BTreeSet<usize>> = Vec::new();
        for function in &self.ast.functions {
            let mut callees = BTreeSet::new();
            self.callees(function.body.as_deref().unwrap_or_default(), &mut callees);
            reaches.push(callees);
        }
        let mut grown = true;
        while grown {
            grown = false;
            for function in 0..reaches.len() {
                let further: Vec<usize> = reaches[function]
                    .iter()
                    .flat_map(|&callee| reaches[callee].iter().copied())
                    .collect();
                let before = reaches[function].len();
                reaches[function].extend(further);
                grown |= reaches[function].len() > before;
            }
        }
        self.reaches = reaches;
    }

    fn callees(&self, statements: &[ast::Statement<'a>], into: &mut BTreeSet<usize>) {
        for statement in statements {
            match statement {
                ast::Statement::Block(inner) => self.callees(inner, into),
                ast::Statement::Instruction(instruction) if instruction.opcode == "call" => {
                    let operands = instruction.operands.iter();
                    let named = operands.filter_map(|operand| match operand {
                        ast::Operand::Name(name) => Some(*name),
                        _ => None,
                    });
                    match named.clone().find_map(|name| self.functions.get(name)) {
                        Some(&function) => {
                            into.insert(function);
                        }
                        None => into.extend(&self.address_taken),
                    }
                }
                _ => {}
            }
        }
    }

    /// The function can call itself, directly or through others.
    pub(super) fn recursive(&self, function: usize) -> bool {
        self.reaches[function].contains(&function)
    }

    /// A call of `callee` from `caller` may lead back into `caller`.
    pub(super) fn reenters(&self, caller: usize, callee: usize) -> bool {
        caller == callee || self.reaches[callee].contains(&caller)
    }

    fn add_variable(&mut self, index: usize, variable: &ast::Variable<'a>) -> Lowered<()> {
        let constant = match variable.storage {
            Storage::Memory(Space::Global) => false,
            Storage::Memory(Space::Const) => true,
            Storage::Memory(Space::Shared) => {
                let earlier = self
                    .variables
                    .insert(variable.name, ModuleVariable::Shared(index));
                return redeclared(variable, earlier.is_some());
            }
            _ => {
                return Err(Problem::Illegal(
                    "only .global, .const and .shared variables stand outside functions".into(),
                ));
            }
        };
        let index = self.add_global(variable.name.to_owned(), variable, constant)?;
        let global = ModuleVariable::Global { index, constant };
        let earlier = self.variables.insert(variable.name, global);
        redeclared(variable, earlier.is_some())
    }

    /// Lays a variable out and returns its number.
    fn add_global(
        &mut self,
        name: String,
        variable: &ast::Variable<'a>,
        constant: bool,
    ) -> Lowered<u32> {
        let layout = layout(variable)?;
        if variable.init.is_some() && layout.size > MAX_INITIAL {
            return Err(Problem::TooLarge(format!(
                "the initial value of `{}`",
                variable.name
            )));
        }
        let size = usize::try_from(layout.size)
            .ok()
            .filter(|&size| size as u64 <= MAX_INITIAL)
            .ok_or_else(|| Problem::TooLarge(format!("variable `{}`", variable.name)))?;
        self.globals.push(GlobalVar {
            name,
            constant,
            init: vec![0; size],
            relocs: Vec::new(),
        });
        Ok(self.globals.len() as u32 - 1)
    }

    /// Adds the variables that the statements of a function declare in global and constant memory.
    /// `scopes` are the names of the enclosing blocks, which initial values may refer to.
    fn add_statics(
        &mut self,
        function: &str,
        statements: &[ast::Statement<'a>],
        scopes: &mut Vec<(&'a str, u32)>,
    ) -> Result<(), (Problem, u32)> {
        let outer = scopes.len();
        for statement in statements {
            let variable = match statement {
                ast::Statement::Block(inner) => {
                    self.add_statics(function, inner, scopes)?;
                    continue;
                }
                ast::Statement::Variable(variable) => variable,
                _ => continue,
            };
            let constant = match variable.storage {
                Storage::Memory(Space::Global) => false,
                Storage::Memory(Space::Const) => true,
                _ => continue,
            };
            let at = |problem: Problem| (problem, variable.position.line);
            let name = format!("{function}.{}", variable.name);
            let index = self.add_global(name, variable, constant).map_err(at)?;
            scopes.push((variable.name, index));
            if let Some(init) = &variable.init {
                self.fill(variable, init, index, scopes).map_err(at)?;
            }
            let place = Location::Global { index, constant };
            self.statics.insert(variable.position, place);
        }
        scopes.truncate(outer);
        Ok(())
    }

    fn initialise(&mut self, variable: &ast::Variable<'a>) -> Lowered<()> {
        let Some(init) = &variable.init else {
            return Ok(());
        };
        let Some(&ModuleVariable::Global { index, .. }) = self.variables.get(variable.name) else {
            return Err(Problem::Illegal(
                "a shared variable has no initial value".into(),
            ));
        };
        self.fill(variable, init, index, &[])
    }

    /// Writes a variable's initial value.
    fn fill(
        &mut self,
        variable: &ast::Variable<'a>,
        init: &Initializer<'a>,
        index: u32,
        scopes: &[(&'a str, u32)],
    ) -> Lowered<()> {
        let mut bytes = std::mem::take(&mut self.globals[index as usize].init);
        let mut writer = InitialBytes {
            unit: self,
            scopes,
            bytes: &mut bytes,
            relocs: Vec::new(),
            scalar: variable.scalar,
        };
        let mut extents: Vec<u64> = variable
            .dims
            .iter()
            .map(|dim| dim.unwrap_or_else(|| inferred_extent(variable)))
            .collect();
        if variable.vector > 1 {
            extents.push(u64::from(variable.vector));
        }
        writer.fill(init, &extents, 0)?;
        let relocs = writer.relocs;
        let global = &mut self.globals[index as usize];
        global.init = bytes;
        global.relocs = relocs;
        Ok(())
    }

    /// Source frames of a location, innermost first.
    pub(super) fn frames(&self, location: Option<ast::LocationId>) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut next = location;
        while let Some(id) = next
            && let Some(location) = self.ast.locations.get(id as usize)
            && frames.len() < MAX_FRAMES
        {
            frames.push(Frame {
                file: self
                    .files
                    .get(&location.file)
                    .cloned()
                    .unwrap_or_else(|| format!("file {}", location.file).into()),
                line: location.line,
                column: location.column,
                function: location.function.as_deref().map(Arc::from),
            });
            next = location.inlined_at;
        }
        frames
    }
}

fn names_pair(statements: &[ast::Statement<'_>]) -> bool {
    statements.iter().any(|statement| match statement {
        ast::Statement::Block(inner) => names_pair(inner),
        ast::Statement::Instruction(instruction) => {
            instruction.modifiers.contains(&"cta_group::2") || clears_rank(instruction)
        }
        _ => false,
    })
}

/// `and.b32 d, a, 0xfeffffff`: Triton and CUTLASS compute the even CTA's address so. A compiler
/// that knows its alignment may clear low bits too.
fn clears_rank(instruction: &ast::Instruction<'_>) -> bool {
    let (rank, low) = (0xf << CLUSTER_RANK_SHIFT, 0xfff);
    instruction.opcode == "and"
        && instruction.operands.iter().any(|operand| match operand {
            ast::Operand::Constant(ast::Constant::Int(bits)) => {
                let cleared = !(*bits as u32);
                cleared & rank != 0 && cleared & !(rank | low) == 0
            }
            _ => false,
        })
}

fn redeclared(variable: &ast::Variable<'_>, known: bool) -> Lowered<()> {
    // An `.extern` declaration may repeat.
    if known && variable.linkage != Linkage::Extern {
        return Err(Problem::Duplicate(variable.name.to_owned()));
    }
    Ok(())
}

struct InitialBytes<'u, 'a> {
    unit: &'u Unit<'a>,
    scopes: &'u [(&'a str, u32)],
    bytes: &'u mut [u8],
    relocs: Vec<Reloc>,
    scalar: ast::ScalarType,
}

impl InitialBytes<'_, '_> {
    /// Writes a value of the given extents at a byte offset; missing elements stay zero.
    fn fill(&mut self, init: &Initializer<'_>, extents: &[u64], offset: u64) -> Lowered<()> {
        let width = u64::from(self.scalar.bytes());
        match (init, extents) {
            (Initializer::List(items), [extent, inner @ ..]) => {
                if items.len() as u64 > *extent {
                    return Err(Problem::Illegal(format!(
                        "{} initial values for {extent} elements",
                        items.len()
                    )));
                }
                let stride = width * inner.iter().product::<u64>();
                let flat = items
                    .iter()
                    .all(|item| !matches!(item, Initializer::List(_)));
                for (at, item) in items.iter().enumerate() {
                    let inner = if flat && inner.is_empty() { &[] } else { inner };
                    self.fill(item, inner, offset + at as u64 * stride)?;
                }
                Ok(())
            }
            (Initializer::List(_), []) => Err(Problem::Illegal(
                "initial value nested deeper than the variable".into(),
            )),
            (Initializer::Constant(constant), _) => {
                let bits = scalar_bits(*constant, self.scalar);
                self.write(offset, &bits.to_le_bytes(), width)
            }
            (
                Initializer::Address {
                    symbol,
                    offset: addend,
                    byte,
                    ..
                },
                _,
            ) => self.address(symbol, *addend, *byte, offset),
        }
    }

    fn write(&mut self, offset: u64, value: &[u8], width: u64) -> Lowered<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let width = (width as usize).min(value.len());
        let target = self
            .bytes
            .get_mut(start..start.saturating_add(width))
            .ok_or_else(|| Problem::Illegal("initial value past the variable's end".into()))?;
        target.copy_from_slice(&value[..width]);
        Ok(())
    }

    fn address(&mut self, symbol: &str, addend: i64, byte: Option<u8>, offset: u64) -> Lowered<()> {
        let width = u64::from(self.scalar.bytes());
        if width != byte.map_or(8, |_| 1) {
            return Err(Problem::Illegal(format!(
                "the address of `{symbol}` needs 64 bits, and one byte of it 8"
            )));
        }
        let inner = self.scopes.iter().rfind(|(name, _)| *name == symbol);
        let inner = inner.map(|&(_, index)| ModuleVariable::Global {
            index,
            constant: false,
        });
        match inner.or(self.unit.variables.get(symbol).copied()) {
            Some(ModuleVariable::Global { index, .. }) => {
                self.relocs.push(Reloc {
                    offset,
                    global: index as usize,
                    addend,
                    byte,
                });
                Ok(())
            }
            Some(ModuleVariable::Shared(_)) => Err(Problem::Illegal(format!(
                "the address of shared variable `{symbol}` is not constant across kernels"
            ))),
            None => {
                let function = self.unit.functions.get(symbol);
                let &function = function.ok_or_else(|| Problem::UnknownName(symbol.to_owned()))?;
                let address = self.unit.code_address(function).wrapping_add_signed(addend);
                let bytes = address.to_le_bytes();
                self.write(offset, &bytes[usize::from(byte.unwrap_or(0))..], width)
            }
        }
    }
}

/// The bits of a literal as a variable's element.
fn scalar_bits(constant: ast::Constant, scalar: ast::ScalarType) -> u64 {
    use ast::{Constant, ScalarType};
    match (constant, scalar) {
        (Constant::Int(bits), _) => bits,
        (Constant::Single(bits), ScalarType::F64) => f64::from(f32::from_bits(bits)).to_bits(),
        (Constant::Single(bits), _) => u64::from(bits),
        (Constant::Double(bits), ScalarType::F32) => {
            u64::from((f64::from_bits(bits) as f32).to_bits())
        }
        (Constant::Double(bits), ScalarType::F16) => {
            u64::from(half::f16::from_f64(f64::from_bits(bits)).to_bits())
        }
        (Constant::Double(bits), _) => bits,
    }
}

/// Maximum bytes of a kernel's parameters.
const MAX_PARAM_BYTES: u32 = 32764;

/// Parameters of a kernel in their memory.
pub(crate) fn kernel_params(unit: &Unit<'_>, index: usize) -> Result<(Vec<Param>, u32), Problem> {
    let mut params = Vec::new();
    let mut end = 0u32;
    for param in &unit.ast.functions[index].params {
        let layout = layout(param)?;
        let offset = end.next_multiple_of(layout.align.max(1));
        let size = u32::try_from(layout.size).unwrap_or(u32::MAX);
        end = offset.saturating_add(size);
        if end > MAX_PARAM_BYTES {
            return Err(Problem::TooLarge("the list of kernel parameters".into()));
        }
        params.push(Param {
            name: param.name.to_owned(),
            offset,
            size,
            align: layout.align,
        });
    }
    Ok((params, end))
}
