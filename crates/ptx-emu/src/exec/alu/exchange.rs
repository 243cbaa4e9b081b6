//! Votes, shuffles and addresses: what lanes of a warp tell each other, and where things are.

use crate::exec::lanes::{each, lanes};
#[cfg(target_arch = "x86_64")]
use crate::exec::lanes::{load, store};
use crate::exec::storage::window::{Window, window_of};
use crate::exec::warp::Warp;
use crate::op::{Op, P, R32, Redux, ShflMode, Slot, Space, Vote, misrouted, rank_of, ranked};

/// `shfl.sync`
#[inline(always)]
fn shuffle(w: &mut Warp, mask: u32, mode: ShflMode, (d, p): (R32, Option<P>), [a, b, c]: [R32; 3]) {
    let (a, b, c) = (w.get(a), w.get(b), w.get(c));
    let source: [u32; 32] = each(
        #[inline(always)]
        |i| mode.source_among_all(i as u32, b[i], c[i]).0,
    );
    let v = each(
        #[inline(always)]
        |i| a[source[i] as usize & 31],
    );
    let mut within = 0;
    if p.is_some() {
        for i in 0..32 {
            let (_, ok) = mode.source(i as u32, b[i], c[i]);
            within |= u32::from(ok) << i;
        }
    }
    w.put(mask, d, v);
    if let Some(p) = p {
        w.put_pred(mask, p, within);
    }
}

/// As [`shuffle`], with the lanes as vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
fn wide_shuffle(
    w: &mut Warp,
    mask: u32,
    mode: ShflMode,
    (d, p): (R32, Option<P>),
    [a, b, c]: [R32; 3],
) {
    use std::arch::x86_64::*;
    let ([low, high], b, c) = (load(w.get(a)), load(w.get(b)), load(w.get(c)));
    let five = _mm512_set1_epi32(31);
    let mut lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let (mut chosen, mut within) = ([low, high], 0);
    for (i, chosen) in chosen.iter_mut().enumerate() {
        let (b, c) = (_mm512_and_si512(b[i], five), c[i]);
        let segment = _mm512_and_si512(_mm512_srli_epi32::<8>(c), five);
        let clamp = _mm512_andnot_si512(segment, _mm512_and_si512(c, five));
        let min = _mm512_and_si512(lane, segment);
        let max = _mm512_or_si512(min, clamp);
        let source = match mode {
            ShflMode::Up => _mm512_sub_epi32(lane, b),
            ShflMode::Down => _mm512_add_epi32(lane, b),
            ShflMode::Bfly => _mm512_xor_si512(lane, b),
            ShflMode::Idx => _mm512_or_si512(min, _mm512_andnot_si512(segment, b)),
        };
        let ok = match mode {
            ShflMode::Up => _mm512_cmpge_epi32_mask(source, max),
            _ => _mm512_cmple_epi32_mask(source, max),
        };
        let source = _mm512_mask_blend_epi32(ok, lane, source);
        *chosen = _mm512_permutex2var_epi32(low, source, high);
        within |= u32::from(ok) << (16 * i);
        lane = _mm512_add_epi32(lane, _mm512_set1_epi32(16));
    }
    let mut v = [0; 32];
    store(&mut v, chosen);
    w.put(mask, d, v);
    if let Some(p) = p {
        w.put_pred(mask, p, within);
    }
}

/// The lanes of a shuffle, of `mask`, that read from one of `sources`.
pub(crate) fn readers_of(
    w: &Warp,
    mask: u32,
    sources: u32,
    mode: ShflMode,
    [b, c]: [R32; 2],
) -> u32 {
    let (b, c) = (w.get(b), w.get(c));
    let reads = |lane: &usize| {
        let (source, within) = mode.source(*lane as u32, b[*lane], c[*lane]);
        within && sources >> (source & 31) & 1 == 1
    };
    lanes(mask)
        .filter(reads)
        .fold(0, |all, lane| all | 1 << lane)
}

/// What a shuffle moves: its mode, results and operands.
type Shuffle = (ShflMode, (R32, Option<P>), [R32; 3]);

/// A shuffle among all lanes of a warp, which all say so: nobody has to be waited for.
#[inline(always)]
fn among_all(w: &Warp, mask: u32, op: &Op) -> Option<Shuffle> {
    let Op::Shfl {
        mode,
        d,
        p,
        a,
        b,
        c,
        mask: members,
    } = *op
    else {
        return None;
    };
    let mut all = mask;
    for lanes in w.get(members) {
        all &= lanes;
    }
    (all == u32::MAX).then_some((mode, (d, p), [a, b, c]))
}

/// Shuffles among all lanes of a warp. False if others are meant, and then nothing is done.
#[inline(always)]
pub(crate) fn quick_shuffle(w: &mut Warp, mask: u32, op: &Op) -> bool {
    let Some((mode, to, from)) = among_all(w, mask, op) else {
        return false;
    };
    match mode {
        ShflMode::Up => shuffle(w, mask, ShflMode::Up, to, from),
        ShflMode::Down => shuffle(w, mask, ShflMode::Down, to, from),
        ShflMode::Bfly => shuffle(w, mask, ShflMode::Bfly, to, from),
        ShflMode::Idx => shuffle(w, mask, ShflMode::Idx, to, from),
    }
    true
}

/// As [`quick_shuffle`] on a machine with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn quickest_shuffle(w: &mut Warp, mask: u32, op: &Op) -> bool {
    let Some((mode, to, from)) = among_all(w, mask, op) else {
        return false;
    };
    wide_shuffle(w, mask, mode, to, from);
    true
}

fn reduce(op: Redux, values: impl Iterator<Item = u32>) -> u32 {
    use crate::numeric::arith::Extremum;
    let signed = |f: fn(i32, i32) -> i32| move |x: u32, y: u32| f(x as i32, y as i32) as u32;
    let float = |max: bool, nan: bool| {
        move |x: u32, y: u32| {
            let pick = Extremum {
                max,
                nan,
                ..Extremum::default()
            };
            pick.f32(x, y)
        }
    };
    let abs = |on: bool| move |x: u32| if on { x & 0x7fff_ffff } else { x };
    let out = match op {
        Redux::Add => values.reduce(u32::wrapping_add),
        Redux::MinS => values.reduce(signed(i32::min)),
        Redux::MaxS => values.reduce(signed(i32::max)),
        Redux::MinU => values.min(),
        Redux::MaxU => values.max(),
        Redux::And => values.reduce(|x, y| x & y),
        Redux::Or => values.reduce(|x, y| x | y),
        Redux::Xor => values.reduce(|x, y| x ^ y),
        Redux::MinF { abs: a, nan } => values.map(abs(a)).reduce(float(false, nan)),
        Redux::MaxF { abs: a, nan } => values.map(abs(a)).reduce(float(true, nan)),
    };
    out.unwrap_or(0)
}

/// The register that names the lanes an instruction synchronises.
pub(crate) fn members(op: &Op) -> Option<R32> {
    match *op {
        Op::Shfl { mask, .. }
        | Op::VotePred { mask, .. }
        | Op::Ballot { mask, .. }
        | Op::Match { mask, .. }
        | Op::Redux { mask, .. }
        | Op::Elect { mask, .. }
        | Op::WarpSync { mask } => Some(mask),
        _ => None,
    }
}

/// Warp-wide exchanges. Lanes that name other members than their
/// neighbours exchange among themselves.
pub(crate) fn exchange(w: &mut Warp, mask: u32, op: &Op) {
    let Some(members) = members(op) else {
        misrouted(op)
    };
    let named = *w.get(members);
    if named.iter().all(|&lanes| lanes == named[0]) {
        return exchange_within(w, mask, op);
    }
    for party in parties(named, mask) {
        exchange_within(w, party, op);
    }
}

/// The lanes of a mask that name the same members, party by party.
pub(crate) fn parties(named: [u32; 32], mask: u32) -> impl Iterator<Item = u32> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let first = named[lanes(left).next()?];
        let party = lanes(left)
            .filter(|&lane| named[lane] == first)
            .fold(0, |set, lane| set | 1 << lane);
        left &= !party;
        Some(party)
    })
}

fn exchange_within(w: &mut Warp, mask: u32, op: &Op) {
    let member = |w: &Warp, m: R32| w.get(m)[mask.trailing_zeros() as usize & 31] & mask;
    match *op {
        Op::Shfl {
            mode,
            d,
            p,
            a,
            b,
            c,
            ..
        } => {
            // An H200 reads zero from lanes that take no part.
            let lost = readers_of(w, mask, !mask, mode, [b, c]);
            shuffle(w, mask, mode, (d, p), [a, b, c]);
            w.put(lost, d, [0; 32]);
        }
        Op::VotePred {
            vote,
            d,
            p,
            negate,
            mask: m,
        } => {
            let members = member(w, m);
            let p = (if negate { !w.pred(p) } else { w.pred(p) }) & members;
            let result = match vote {
                Vote::All => p == members,
                Vote::Any | Vote::Ballot => p != 0,
                Vote::Uni => p == members || p == 0,
            };
            w.put_pred(mask, d, if result { u32::MAX } else { 0 });
        }
        Op::Ballot {
            d,
            p,
            negate,
            mask: m,
        } => {
            let members = member(w, m);
            let p = (if negate { !w.pred(p) } else { w.pred(p) }) & members;
            w.put(mask, d, [p; 32]);
        }
        Op::Match {
            all,
            d,
            p,
            a,
            mask: m,
        } => {
            let members = member(w, m);
            let values: [u64; 32] = each(|i| w.lane(a, i));
            let equal = |i: usize| {
                lanes(members).fold(0, |set, j| set | u32::from(values[j] == values[i]) << j)
            };
            let v = each(|i| match (all, equal(i)) {
                (true, set) if set != members => 0,
                (_, set) => set,
            });
            let uniform = lanes(members).all(|i| equal(i) == members);
            w.put(mask, d, v);
            if let Some(p) = p {
                w.put_pred(mask, p, if uniform { u32::MAX } else { 0 });
            }
        }
        Op::Redux { op, d, a, mask: m } => {
            let members = member(w, m);
            let values = *w.get(a);
            let v = reduce(op, lanes(members).map(|i| values[i]));
            w.put(mask, d, [v; 32]);
        }
        Op::Elect { d, p, mask: m } => {
            let members = member(w, m);
            let leader = members.trailing_zeros();
            if let Slot::W32(d) = d {
                w.put(mask, d, [leader; 32]);
            }
            w.put_pred(mask, p, members & members.wrapping_neg());
        }
        // Warps run in lockstep: who has come is in step.
        Op::WarpSync { .. } => {}
        ref other => misrouted(other),
    }
}

/// Addresses as values: of the generic space, and of other CTAs.
pub(crate) fn address(w: &mut Warp, mask: u32, op: &Op) {
    use crate::memory::is_constant;
    use crate::op::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
    match *op {
        Op::Mapa32 { d, a, b } => w.map2(mask, d, a, b, ranked),
        Op::Mapa64 { d, a, b, .. } => {
            let (a, b) = (w.get64(a), w.get(b));
            let v = each(|i| (a[i] & !0xffff_ffff) | u64::from(ranked(a[i] as u32, b[i])));
            w.put64(mask, d, v);
        }
        Op::GetCtaRank { d, a, .. } => {
            let own = w.cta;
            let v = each(|i| rank_of(w.lane(a, i) as u32, own));
            w.put(mask, d, v);
        }
        Op::Cvta {
            space,
            to_generic,
            d,
            a,
        } => {
            let window = match space {
                Space::Shared | Space::SharedCluster => SHARED_WINDOW,
                Space::Local => LOCAL_WINDOW,
                Space::Param => PARAM_WINDOW,
                Space::Generic | Space::Global | Space::Const => 0,
            };
            w.map1_64(mask, d, a, |x| match (window, to_generic) {
                (0, _) => x,
                (_, true) => window | (x & 0xffff_ffff),
                (_, false) => x & 0xffff_ffff,
            });
        }
        Op::Isspacep { space, d, a } => {
            let own = w.cta;
            w.test2_64(mask, d, a, a, |x, _| match space {
                Space::Shared => window_of(x) == Window::Shared && rank_of(x as u32, own) == own,
                Space::SharedCluster => window_of(x) == Window::Shared,
                Space::Local => window_of(x) == Window::Local,
                Space::Param => window_of(x) == Window::Param,
                Space::Global | Space::Generic => window_of(x) == Window::Global && !is_constant(x),
                Space::Const => is_constant(x),
            })
        }
        ref other => misrouted(other),
    }
}
