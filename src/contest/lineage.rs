//! Each design against its parent: the gain of each idea.

use dgx_core::claims::resolve;
use dgx_core::domain::ContenderId;
use dgx_core::rank::{Comparison, Ranking};
use dgx_core::record::Run;

/// A contender in the tree of changes.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub contender: ContenderId,
    pub depth: usize,
    /// The contender it is compared with.
    pub parent: Option<ContenderId>,
    /// The parent its variant names, if that is not in the run.
    pub absent_parent: Option<String>,
    /// Over the parent, per shape and in the mean.
    pub over_parent: Option<Comparison>,
    /// The last of its siblings, for drawing.
    pub last: bool,
}

/// The run's contenders in tree order, roots first as entered.
pub(crate) fn lineage(run: &Run, ranking: &Ranking) -> Vec<Node> {
    let tree = Tree::of(run);
    let mut nodes = Vec::new();
    // The nodes still to visit, last first: depth, contender, last sibling.
    let mut ahead: Vec<(usize, usize, bool)> = Vec::new();
    push_siblings(&mut ahead, 0, &tree.roots);
    while let Some((depth, id, last)) = ahead.pop() {
        let record = &run.header.contenders[id];
        let parent = tree.parents[id].filter(|_| depth > 0);
        let parent = parent.map(|p| run.header.contenders[p].id.clone());
        nodes.push(Node {
            contender: record.id.clone(),
            depth,
            over_parent: parent
                .as_ref()
                .and_then(|p| ranking.compare(run, p, &record.id)),
            absent_parent: record.parent.clone().filter(|_| parent.is_none()),
            parent,
            last,
        });
        push_siblings(&mut ahead, depth + 1, &tree.children[id]);
    }
    nodes
}

fn push_siblings(ahead: &mut Vec<(usize, usize, bool)>, depth: usize, siblings: &[usize]) {
    let last = siblings.last();
    let each = siblings.iter().rev();
    ahead.extend(each.map(|id| (depth, *id, Some(id) == last)));
}

/// Contenders by number, each under the one it changes.
struct Tree {
    parents: Vec<Option<usize>>,
    roots: Vec<usize>,
    children: Vec<Vec<usize>>,
}

impl Tree {
    fn of(run: &Run) -> Self {
        let records = &run.header.contenders;
        let parents: Vec<Option<usize>> = records
            .iter()
            .map(|c| {
                let parent = resolve(run, c.parent.as_deref()?, &c.id)?;
                let parent = run.arm(&parent).filter(|p| *p < records.len())?;
                (records[parent].id != c.id).then_some(parent)
            })
            .collect();
        let circles = circles(&parents);
        let mut tree = Self {
            roots: Vec::new(),
            children: vec![Vec::new(); parents.len()],
            parents,
        };
        for (id, circle) in circles.into_iter().enumerate() {
            match tree.parents[id].filter(|_| !circle) {
                Some(parent) => tree.children[parent].push(id),
                None => tree.roots.push(id),
            }
        }
        tree
    }
}

/// Marks contenders that are their own ancestors: a walk through their parents would never end, so
/// they count as roots.
fn circles(parents: &[Option<usize>]) -> Vec<bool> {
    let mut circle = vec![false; parents.len()];
    // The walk that first met each contender; each is visited once.
    let mut met = vec![None; parents.len()];
    for start in 0..parents.len() {
        let mut at = Some(start);
        while let Some(id) = at.filter(|id| met[*id].is_none()) {
            met[id] = Some(start);
            at = parents[id];
        }
        let closed = at.filter(|id| met[*id] == Some(start));
        let mut on = closed;
        while let Some(id) = on.filter(|id| !circle[*id]) {
            circle[id] = true;
            on = parents[id];
        }
    }
    circle
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::synthetic::{Synthetic, SyntheticContender};

    fn tree(entries: Vec<SyntheticContender>) -> Vec<(String, usize)> {
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
            SyntheticContender::ok("a", 1.0).child_of("b"),
            SyntheticContender::ok("b", 1.0).child_of("a"),
            SyntheticContender::ok("c", 1.0).child_of("b"),
        ]);
        assert_eq!(circle.len(), 3);
    }

    #[test]
    fn parameters_pair_child_with_parent() {
        let run = Synthetic {
            entries: vec![
                SyntheticContender::ok("base[S=1]", 1.0),
                SyntheticContender::ok("base[S=2]", 0.9),
                SyntheticContender::ok("next[S=2]", 0.8).child_of("base"),
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
