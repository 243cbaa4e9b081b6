//! Loads, stores and cache advice.

use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem, illegal};
use crate::lower::form::Form;
use crate::lower::lookup::{at_least, exactly, immediate_u32, wrong};
use crate::lower::modifiers::{Modifiers, ORDERS};
use crate::op::*;

/// That of parameters of a function is last: addresses of them are not converted.
pub(super) const SPACES: &[(&str, Space)] = &[
    ("global", Space::Global),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("shared::cluster", Space::SharedCluster),
    ("local", Space::Local),
    ("const", Space::Const),
    ("param", Space::Param),
    ("param::entry", Space::Param),
    ("param::func", Space::Param),
];

/// Cache operators, which have no effect without caches.
const CACHE: &[(&str, ())] = &[
    ("ca", ()),
    ("cg", ()),
    ("cs", ()),
    ("lu", ()),
    ("cv", ()),
    ("wb", ()),
    ("wt", ()),
    ("nc", ()),
];

const VECTORS: &[(&str, usize)] = &[("v2", 2), ("v4", 4), ("v8", 8)];

pub(super) fn lower<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    match form.opcode {
        "ld" | "ldu" => load(emitter, form),
        "st" if form.words.take_first("async") => store_async(emitter, form),
        "st" if form.words.take_first("bulk") => store_bulk(emitter, form),
        "st" => store(emitter, form),
        "createpolicy" => policy(emitter, form),
        _ => prefetch(emitter, form),
    }
}

/// The modifiers of a load or store.
pub(super) struct Access {
    pub space: Space,
    pub order: Order,
    pub vector: usize,
    pub ty: Num,
    /// A cache policy follows the operands.
    pub hint: bool,
    /// Whether it gives an L2 eviction priority, which only accesses of 32 bytes may.
    pub evicts: bool,
}

fn access(words: &mut Modifiers<'_>) -> Lowered<Access> {
    if words.contains("mmio") {
        words.exactly("relaxed")?;
    }
    let order = words.order(ORDERS, |_| Order::Weak, Scope::Gpu);
    let space = words.pick(SPACES).unwrap_or(Space::Generic);
    words.pick(CACHE);
    // `ld.global.ca.nc` has both.
    words.take("nc");
    words.take("unified");
    let evicts = words.contains("L2::evict_first")
        || words.contains("L2::evict_last")
        || words.contains("L2::evict_normal");
    let hint = words.hints();
    Ok(Access {
        space,
        order,
        vector: words.pick(VECTORS).unwrap_or(1),
        ty: words.ty()?,
        hint,
        evicts,
    })
}

fn check_type(access: &Access) -> Lowered<()> {
    let memory = access.ty.is_integer() || matches!(access.ty, Num::F16 | Num::F32 | Num::F64);
    let bytes = access.vector as u32 * access.ty.bits() / 8;
    if !memory {
        return illegal("not a type that lies in memory");
    }
    if access.evicts && bytes != 32 {
        return illegal(".L2::evict_* goes with .v8.b32 and .v4.b64 only");
    }
    if bytes <= 16 && access.vector <= 4 {
        return Ok(());
    }
    let wide = matches!((access.vector, access.ty.bits()), (8, 32) | (4, 64));
    match (wide, access.space) {
        (true, Space::Global | Space::Generic) => Ok(()),
        (true, _) => illegal("32 bytes at once are for global memory"),
        (false, _) => illegal("one access moves 16 bytes, or 32 as .v8 of 32 or .v4 of 64 bits"),
    }
}

/// The elements of a vector operand.
pub(super) fn elements<'x, 'a>(
    operand: &'x Operand<'a>,
    vector: usize,
) -> Lowered<&'x [Operand<'a>]> {
    match operand {
        Operand::Vector(items) if items.len() == vector => Ok(items),
        other if vector == 1 => Ok(std::slice::from_ref(other)),
        other => wrong(format!("a vector of {vector}"), other),
    }
}

fn load<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.opcode == "ldu" && !form.words.contains("global") {
        return Err(Problem::MissingModifier("global"));
    }
    let access = access(&mut form.words)?;
    form.words.finish()?;
    check_type(&access)?;
    if matches!(access.order, Order::Release(_) | Order::AcqRel(_)) {
        return illegal("a load does not release");
    }
    let ([d, address], rest) = at_least(form.operands, usize::from(access.hint))?;
    hint_operand(emitter, rest)?;
    load_from(emitter, &access, d, address)
}

pub(super) fn load_from<'a>(
    emitter: &mut Emitter<'_, 'a>,
    access: &Access,
    d: &Operand<'a>,
    address: &Operand<'a>,
) -> Lowered<()> {
    let (addr, space) = emitter.address(address, access.space)?;
    let mut slots = Vec::new();
    let mut widest = 0;
    for element in elements(d, access.vector)? {
        if access.ty == Num::B128 {
            let register = emitter.target(element, 128)?;
            slots.extend(emitter.halves(register).map(Slot::W64));
            continue;
        }
        let (slot, bits) = emitter.wide_target(element, access.ty.bits())?;
        widest = widest.max(bits);
        slots.push(slot);
    }
    let width = (access.ty.bits() / 8).min(8) as u8;
    let ext = match (access.ty.is_signed(), widest) {
        (true, bits) if bits > access.ty.bits() => match bits {
            16 => Extend::Sign16,
            32 => Extend::Sign32,
            _ => Extend::Sign64,
        },
        _ => Extend::Zero,
    };
    let d = emitter.list(&slots)?;
    emitter.emit(Op::Ld {
        space,
        order: access.order,
        width,
        ext,
        d,
        addr,
    });
    Ok(())
}

/// A cache policy is read and has no effect.
pub(super) fn hint_operand<'a>(emitter: &mut Emitter<'_, 'a>, rest: &[Operand<'a>]) -> Lowered<()> {
    for policy in rest {
        emitter.s64(policy, Num::B64)?;
    }
    Ok(())
}

fn sources<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
    vector: usize,
    ty: Num,
) -> Lowered<SlotList> {
    let mut slots = Vec::new();
    for element in elements(operand, vector)? {
        if ty == Num::B128 {
            slots.extend(emitter.source128(element)?.map(Slot::W64));
        } else {
            slots.push(emitter.wide_source(element, ty)?.0);
        }
    }
    emitter.list(&slots)
}

fn store<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let access = access(&mut form.words)?;
    form.words.finish()?;
    check_type(&access)?;
    if matches!(access.order, Order::Acquire(_) | Order::AcqRel(_)) {
        return illegal("a store does not acquire");
    }
    if access.space == Space::Const {
        return illegal("constant memory is not written");
    }
    let ([address, value], rest) = at_least(form.operands, usize::from(access.hint))?;
    hint_operand(emitter, rest)?;
    store_to(emitter, &access, address, value)
}

pub(super) fn store_to<'a>(
    emitter: &mut Emitter<'_, 'a>,
    access: &Access,
    address: &Operand<'a>,
    value: &Operand<'a>,
) -> Lowered<()> {
    let (addr, space) = emitter.address(address, access.space)?;
    if space == Space::Param {
        return illegal("the parameters of a kernel are not written");
    }
    let s = sources(emitter, value, access.vector, access.ty)?;
    let width = (access.ty.bits() / 8).min(8) as u8;
    emitter.emit(Op::St {
        space,
        order: access.order,
        width,
        s,
        addr,
    });
    Ok(())
}

/// `st.async.mmio.release.sys.global.u32 [a], b`: nothing waits for it, so it is executed at once.
fn store_mmio<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.exactly("release")?;
    let Some(scope) = form.words.scope() else {
        return Err(Problem::MissingModifier("a scope"));
    };
    let space = form.words.pick(&[("global", Space::Global)]);
    let access = Access {
        space: space.unwrap_or(Space::Generic),
        order: Order::Release(scope),
        vector: 1,
        ty: form.words.ty()?,
        hint: false,
        evicts: false,
    };
    form.words.finish()?;
    check_type(&access)?;
    let [address, value] = exactly(form.operands)?;
    store_to(emitter, &access, address, value)
}

/// `st.bulk.weak.shared::cta [a], size, 0`
fn store_bulk<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    form.words.take("weak");
    let space = match form.words.take("shared::cta") {
        true => Space::Shared,
        false => Space::Generic,
    };
    form.words.finish()?;
    let [address, size, value] = exactly(form.operands)?;
    if immediate_u32(value)? != 0 {
        return illegal("st.bulk stores zeros only");
    }
    let addr = emitter.addr(address, space)?;
    let bytes = emitter.s64(size, Num::U64)?;
    emitter.emit(Op::StBulk { bytes, addr });
    Ok(())
}

/// `st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [a], b, [mbar]`
fn store_async<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    if form.words.take("mmio") {
        return store_mmio(emitter, form);
    }
    form.words.take("weak");
    form.words.exactly("shared::cluster")?;
    form.words.exactly("mbarrier::complete_tx::bytes")?;
    let vector = form.words.pick(VECTORS).unwrap_or(1);
    let ty = form.words.last_ty()?;
    if !matches!(ty.bits(), 32 | 64) || vector > 4 {
        return illegal("st.async moves 32- and 64-bit elements");
    }
    let [address, value, barrier] = exactly(form.operands)?;
    let addr = emitter.addr(address, Space::SharedCluster)?;
    let s = sources(emitter, value, vector, ty)?;
    let mbar = emitter.addr(barrier, Space::SharedCluster)?;
    emitter.emit(Op::StAsync {
        width: (ty.bits() / 8) as u8,
        s,
        addr,
        mbar,
    });
    Ok(())
}

fn prefetch<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let space = form.words.pick(SPACES).unwrap_or(Space::Generic);
    if form.words.take("tensormap") {
        form.words.finish()?;
        let [address] = exactly(form.operands)?;
        let generic = match space {
            // A parameter's symbol is converted to its generic address.
            Space::Param | Space::Const | Space::Generic => Space::Generic,
            _ => return illegal("a tensor map lies in parameter or constant memory"),
        };
        let addr = emitter.addr(address, generic)?;
        emitter.emit(Op::PrefetchTensormap { addr });
        return Ok(());
    }
    let levels = &[("L1", ()), ("L2", ())];
    let sized = matches!(form.opcode, "discard" | "applypriority");
    let priorities = &[("L2::evict_normal", ()), ("L2::evict_last", ())];
    if form.words.pick(priorities).is_none() {
        form.words.need(levels, "a cache level")?;
    }
    form.words.finish()?;
    let ([address], rest) = at_least(form.operands, usize::from(sized))?;
    if let [size] = rest
        && immediate_u32(size)? != 128
    {
        return illegal("the size must be 128");
    }
    let addr = emitter.addr(address, space)?;
    emitter.emit(Op::Prefetch { space, addr });
    Ok(())
}

fn policy<'a>(emitter: &mut Emitter<'_, 'a>, mut form: Form<'_, 'a>) -> Lowered<()> {
    let kinds = &[("fractional", 1), ("range", 3), ("cvt", 1)];
    let most = form.words.need(kinds, "fractional, range or cvt")?;
    form.words.take("L2");
    form.words.take("global");
    let evictions = &[
        ("L2::evict_last", ()),
        ("L2::evict_normal", ()),
        ("L2::evict_first", ()),
        ("L2::evict_unchanged", ()),
    ];
    form.words.pick(evictions);
    form.words.pick(evictions);
    form.words.end(&["b64"])?;
    let ([d], rest) = at_least(form.operands, most)?;
    for operand in rest {
        match operand {
            Operand::Address(_) => {
                emitter.addr(operand, Space::Generic)?;
            }
            Operand::Constant(_) => {}
            other => {
                let ty = match emitter.register(other)? {
                    Some(register) if register.bits == 64 => Num::B64,
                    _ => Num::B32,
                };
                emitter.source(other, ty)?;
            }
        }
    }
    let d = emitter.d64(d)?;
    emitter.emit(Op::CreatePolicy { d });
    Ok(())
}
