//! Each design over the one it is a change to: which idea bought what.

use crate::claims::resolve;
use crate::domain::ContenderId;
use crate::rank::{Comparison, Ranking};
use crate::record::Run;

/// A contender in the tree of changes.
#[derive(Clone, Debug)]
pub struct Node {
    pub contender: ContenderId,
    pub depth: usize,
    /// The contender it is compared with.
    pub parent: Option<ContenderId>,
    /// The parent its variant names, where that is not in the run.
    pub absent_parent: Option<String>,
    /// Over the parent, per shape and in the mean.
    pub over_parent: Option<Comparison>,
    /// The last of its siblings, for drawing.
    pub last: bool,
}

/// The run's contenders in tree order, roots first as entered.
pub fn lineage(run: &Run, ranking: &Ranking) -> Vec<Node> {
    let parents: Vec<(ContenderId, Option<ContenderId>)> = run
        .header
        .contenders
        .iter()
        .map(|c| {
            let parent = c.parent.as_deref().and_then(|p| resolve(run, p, &c.id));
            (c.id.clone(), parent.filter(|p| *p != c.id))
        })
        .collect();
    let mut nodes = Vec::new();
    let roots: Vec<&ContenderId> = parents
        .iter()
        .filter(|(id, parent)| parent.is_none() || in_cycle(id, &parents))
        .map(|(id, _)| id)
        .collect();
    for (index, root) in roots.iter().enumerate() {
        let last = index + 1 == roots.len();
        grow(run, ranking, &parents, root, 0, last, &mut nodes);
    }
    nodes
}

/// Parents that lead back to the child would never end; such a contender is a root.
fn in_cycle(id: &ContenderId, parents: &[(ContenderId, Option<ContenderId>)]) -> bool {
    let parent_of = |id: &ContenderId| {
        let found = parents.iter().find(|(child, _)| child == id);
        found.and_then(|(_, parent)| parent.as_ref())
    };
    let mut at = parent_of(id);
    for _ in 0..parents.len() {
        match at {
            Some(next) if next == id => return true,
            Some(next) => at = parent_of(next),
            None => return false,
        }
    }
    false
}

fn grow(
    run: &Run,
    ranking: &Ranking,
    parents: &[(ContenderId, Option<ContenderId>)],
    id: &ContenderId,
    depth: usize,
    last: bool,
    nodes: &mut Vec<Node>,
) {
    let found = parents.iter().find(|(child, _)| child == id);
    let parent = found.and_then(|(_, p)| p.clone()).filter(|_| depth > 0);
    let named = run.contender(id).and_then(|c| c.parent.clone());
    nodes.push(Node {
        contender: id.clone(),
        depth,
        over_parent: parent.as_ref().and_then(|p| ranking.compare(run, p, id)),
        absent_parent: if parent.is_none() { named } else { None },
        parent,
        last,
    });
    let children: Vec<&ContenderId> = parents
        .iter()
        .filter(|(child, p)| p.as_ref() == Some(id) && !in_cycle(child, parents))
        .map(|(child, _)| child)
        .collect();
    for (index, child) in children.iter().enumerate() {
        let last = index + 1 == children.len();
        grow(run, ranking, parents, child, depth + 1, last, nodes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::synthetic::{Entry, Synthetic};

    fn tree(entries: Vec<Entry>) -> Vec<(String, usize)> {
        let run = Synthetic {
            entries,
            ..Synthetic::round4()
        }
        .run();
        let nodes = lineage(&run, &Ranking::of(&run));
        nodes
            .iter()
            .map(|n| (n.contender.to_string(), n.depth))
            .collect()
    }

    #[test]
    fn children_follow_their_parent() {
        let run = Synthetic::round4().run();
        let nodes = lineage(&run, &Ranking::of(&run));
        let names: Vec<_> = nodes
            .iter()
            .map(|n| (n.contender.as_str(), n.depth))
            .collect();
        let expected = [
            ("two-pass", 0),
            ("sequential", 1),
            ("interleaved", 2),
            ("single-gemm", 0),
        ];
        assert_eq!(names, expected);
        let gain = nodes[2].over_parent.as_ref().unwrap().geomean.mean.exp();
        assert!((gain - 0.76 / 0.52).abs() < 0.01, "{gain}");
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let circle = tree(vec![
            Entry::ok("a", 1.0).child_of("b"),
            Entry::ok("b", 1.0).child_of("a"),
            Entry::ok("c", 1.0).child_of("b"),
        ]);
        assert_eq!(circle.len(), 3);
    }

    #[test]
    fn parameters_pair_child_with_parent() {
        let run = Synthetic {
            entries: vec![
                Entry::ok("base[S=1]", 1.0),
                Entry::ok("base[S=2]", 0.9),
                Entry::ok("next[S=2]", 0.8).child_of("base"),
            ],
            ..Synthetic::round4()
        }
        .run();
        let nodes = lineage(&run, &Ranking::of(&run));
        let next = nodes
            .iter()
            .find(|n| n.contender.as_str() == "next[S=2]")
            .unwrap();
        assert_eq!(next.parent.as_ref().unwrap().as_str(), "base[S=2]");
    }
}
