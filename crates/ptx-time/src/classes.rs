//! Which CTAs are alike, so that one of them is replayed for all.

use ptx_emu::mixed::MixedMap;
use ptx_emu::trace::{CtaTrace, Deed, Event, Trace};

use crate::sm::LINE;

/// Clusters that did the same.
#[derive(Debug)]
pub(crate) struct Class {
    /// The CTAs of the first of them, by their places in the trace.
    pub(crate) members: Vec<usize>,
    /// The numbers of all of them in the grid.
    pub(crate) clusters: Vec<u64>,
}

pub(crate) fn classes(trace: &Trace) -> Vec<Class> {
    let mut clusters: Vec<(u64, Vec<usize>)> = Vec::new();
    for (index, cta) in trace.ctas.iter().enumerate() {
        match clusters.iter_mut().find(|c| c.0 == cta.cluster) {
            Some(cluster) => cluster.1.push(index),
            None => clusters.push((cta.cluster, vec![index])),
        }
    }
    let mut found: Vec<Class> = Vec::new();
    for (number, members) in clusters {
        let same = |class: &&mut Class| {
            let mut both = class.members.iter().zip(&members);
            class.members.len() == members.len()
                && both.all(|(&a, &b)| alike(&trace.ctas[a], &trace.ctas[b]))
        };
        match found.iter_mut().find(same) {
            Some(class) => class.clusters.push(number),
            None => found.push(Class {
                members,
                clusters: vec![number],
            }),
        }
    }
    found
}

/// Whether a replay cannot tell two CTAs apart: the same deeds one by one, and what each
/// instruction asks of global memory farther on by as many whole lines every time.
fn alike(a: &CtaTrace, b: &CtaTrace) -> bool {
    let mut shifts: MixedMap<u32, u64> = MixedMap::default();
    let mut same = |(a, b): (&Event, &Event)| match (a, b) {
        (
            Event::Did { at, deed },
            Event::Did {
                at: other,
                deed: did,
            },
        ) => {
            let (mut moved, from, to) = (*did, place(deed), place(did));
            use_map_of(&mut moved, deed);
            if let (Some(from), Some(to)) = (from, to) {
                let shift = to.wrapping_sub(from);
                if shift % LINE != 0 || *shifts.entry(*at).or_insert(shift) != shift {
                    return false;
                }
                move_to(&mut moved, from);
            }
            at == other && *deed == moved
        }
        _ => a == b,
    };
    a.warps.len() == b.warps.len()
        && a.warps
            .iter()
            .zip(&b.warps)
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(&mut same))
}

/// Where in global memory a deed is done.
fn place(deed: &Deed) -> Option<u64> {
    match deed {
        Deed::Global { at, .. }
        | Deed::Update { at, .. }
        | Deed::LaneCopy { at }
        | Deed::Bulk { at: Some(at), .. } => Some(at.first),
        _ => None,
    }
}

/// Groups have maps of their own, which are read alike.
fn use_map_of(deed: &mut Deed, other: &Deed) {
    match (deed, other) {
        (Deed::Bulk { map, .. }, Deed::Bulk { map: used, .. }) => *map = *used,
        (Deed::MapFetch { map }, Deed::MapFetch { map: used }) => *map = *used,
        _ => {}
    }
}

fn move_to(deed: &mut Deed, first: u64) {
    if let Deed::Global { at, .. }
    | Deed::Update { at, .. }
    | Deed::LaneCopy { at }
    | Deed::Bulk { at: Some(at), .. } = deed
    {
        at.first = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_emu::trace::GlobalBytes;

    fn load(first: u64, sectors: u32) -> Deed {
        Deed::Global {
            at: GlobalBytes {
                region: 0,
                first,
                bytes: 128,
                sectors,
                lines: 1,
                blocks: 1,
            },
            writes: false,
            atomic: false,
        }
    }

    fn cta(number: u64, deeds: &[(u32, Deed)]) -> CtaTrace {
        let did = deeds.iter().map(|&(at, deed)| Event::Did { at, deed });
        CtaTrace {
            cta: number,
            cluster: number,
            rank: 0,
            warps: vec![did.collect()],
        }
    }

    fn counts(ctas: Vec<CtaTrace>) -> Vec<usize> {
        let trace = Trace {
            ctas,
            ..Trace::default()
        };
        let classes = classes(&trace);
        classes.iter().map(|class| class.clusters.len()).collect()
    }

    #[test]
    fn ctas_are_alike_that_do_the_same_some_lines_on() {
        let of = |number, shift| cta(number, &[(3, load(shift, 4)), (3, load(shift + 64, 4))]);
        assert_eq!(counts(vec![of(0, 0), of(1, 1280), of(2, 512)]), [3]);
    }

    #[test]
    fn ctas_that_differ_in_anything_are_classes_of_their_own() {
        let base = [(3, load(0, 4)), (4, Deed::WgmmaWait(1))];
        let others = [
            vec![(3, load(0, 5)), base[1]],
            vec![(3, load(32, 4)), base[1]],
            vec![base[0], (4, Deed::WgmmaWait(0))],
            vec![base[0], (5, Deed::WgmmaWait(1))],
            vec![base[0]],
            vec![base[0], base[1], base[1]],
        ];
        for other in others {
            assert_eq!(
                counts(vec![cta(0, &base), cta(1, &other)]),
                [1, 1],
                "{other:?}"
            );
        }
        // The second load once of the same line, once of another.
        let twice = cta(0, &[(3, load(0, 4)), (3, load(0, 4))]);
        let apart = cta(1, &[(3, load(0, 4)), (3, load(256, 4))]);
        assert_eq!(counts(vec![twice, apart]), [1, 1]);
    }
}
