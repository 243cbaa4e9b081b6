//! Graphs of work, captured from streams or built node by node, and replayed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::c_int;
use std::sync::Arc;

use crate::call::refuse_part;
use crate::error::{Error, Result};
use crate::handles::fresh;
use crate::state::Device;
use crate::work::Work;

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) work: Work,
    pub(crate) after: Vec<usize>,
}

/// A graph: nodes by their handles, which grow as nodes are added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: BTreeMap<usize, Node>,
}

impl Graph {
    pub(crate) fn add(&mut self, work: Work, mut after: Vec<usize>) -> Result<usize> {
        if after.iter().any(|node| !self.nodes.contains_key(node)) {
            return Err(Error::INVALID_VALUE);
        }
        after.sort_unstable();
        after.dedup();
        let handle = fresh();
        self.nodes.insert(handle, Node { work, after });
        Ok(handle)
    }

    pub(crate) fn remove(&mut self, node: usize) -> Result {
        self.nodes.remove(&node).ok_or(Error::INVALID_VALUE)?;
        for other in self.nodes.values_mut() {
            other.after.retain(|&before| before != node);
        }
        Ok(())
    }

    /// Nodes, and all that they depend on.
    pub(crate) fn before(&self, nodes: &[usize]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut left = nodes.to_vec();
        while let Some(node) = left.pop() {
            if found.insert(node)
                && let Some(node) = self.nodes.get(&node)
            {
                left.extend(&node.after);
            }
        }
        found
    }

    /// `(from, to)` of every dependency.
    pub(crate) fn edges(&self) -> Vec<(usize, usize)> {
        let of = |(&to, node): (&usize, &Node)| {
            let edge = move |&from: &usize| (from, to);
            node.after.iter().map(edge).collect::<Vec<_>>()
        };
        self.nodes.iter().flat_map(of).collect()
    }

    /// The nodes in an order that respects their dependencies; fails for a cycle.
    fn in_order(&self) -> Result<Vec<usize>> {
        let mut missing: HashMap<usize, usize> = (self.nodes.iter())
            .map(|(&node, its)| (node, its.after.len()))
            .collect();
        let mut after: HashMap<usize, Vec<usize>> = HashMap::new();
        for (from, to) in self.edges() {
            after.entry(from).or_default().push(to);
        }
        let free = |(&node, &count): (&usize, &usize)| (count == 0).then_some(node);
        let mut ready: BTreeSet<usize> = missing.iter().filter_map(free).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for to in after.remove(&node).unwrap_or_default() {
                let count = missing.entry(to).or_insert(1);
                *count -= 1;
                if *count == 0 {
                    ready.insert(to);
                }
            }
        }
        match order.len() == self.nodes.len() {
            true => Ok(order),
            false => Err(Error::INVALID_VALUE),
        }
    }

    /// A copy with its own handles, and which node became which.
    pub(crate) fn cloned(&self) -> (Self, HashMap<usize, usize>) {
        let names: HashMap<usize, usize> = self.nodes.keys().map(|&node| (node, fresh())).collect();
        let rename = |node: &usize| names.get(node).copied().unwrap_or(*node);
        let copy = |(name, node): (&usize, &Node)| {
            let after = node.after.iter().map(rename).collect();
            let work = node.work.clone();
            (rename(name), Node { work, after })
        };
        let nodes = self.nodes.iter().map(copy).collect();
        (Self { nodes }, names)
    }
}

/// Flags of instantiation: uploads and priorities change nothing, and the device launches no
/// graphs.
const AUTO_FREE: u64 = 1;
const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;
const NODE_PRIORITY: u64 = 8;

/// `cudaGraphInstantiateParams`, `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[repr(C)]
pub(crate) struct InstantiateParams {
    flags: u64,
    stream: usize,
    /// Answers.
    failed_node: usize,
    result: c_int,
}

/// An instantiated graph: its work in order, with the original nodes.
pub(crate) struct Executable {
    pub(crate) flags: u64,
    pub(crate) nodes: Vec<usize>,
    pub(crate) works: Arc<Vec<Work>>,
}

impl Executable {
    pub(crate) fn of(graph: &Graph) -> Result<Self> {
        let nodes = graph.in_order()?;
        let works = nodes.iter().map(|node| graph.nodes[node].work.clone());
        Ok(Self {
            flags: 0,
            works: Arc::new(works.collect()),
            nodes,
        })
    }

    /// Replaces the work of a node by other work of its kind.
    pub(crate) fn replace(&mut self, node: usize, work: Work) -> Result {
        let found = self.nodes.iter().position(|&known| known == node);
        let place = &mut Arc::make_mut(&mut self.works)[found.ok_or(Error::INVALID_VALUE)?];
        if std::mem::discriminant(place) != std::mem::discriminant(&work) {
            return Err(Error::INVALID_VALUE);
        }
        *place = work;
        Ok(())
    }

    /// Takes the work of a graph of the same shape.
    pub(crate) fn update(&mut self, graph: &Graph) -> Result {
        let new = Self::of(graph)?;
        let kind = |work: &Work| std::mem::discriminant(work);
        let alike = new.works.len() == self.works.len()
            && (new.works.iter().zip(self.works.iter())).all(|(a, b)| kind(a) == kind(b));
        if !alike {
            return Err(Error::UPDATE_FAILURE);
        }
        self.works = new.works;
        Ok(())
    }
}

impl Device {
    /// Instantiates a graph.
    pub(crate) fn instantiate(&mut self, graph: usize, flags: u64) -> Result<usize> {
        if flags & DEVICE_LAUNCH != 0 {
            return Err(refuse_part("a graph", "launches from the device"));
        }
        if flags & !(AUTO_FREE | UPLOAD | NODE_PRIORITY) != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let executable = Executable {
            flags,
            ..Executable::of(self.graphs.get(graph)?)?
        };
        Ok(self.executables.add(executable))
    }

    /// Instantiates a graph, and writes the result to the parameters.
    pub(crate) fn instantiate_with(
        &mut self,
        graph: usize,
        params: &mut InstantiateParams,
    ) -> Result<usize> {
        self.streams.get(params.stream)?;
        let made = self.instantiate(graph, params.flags);
        params.failed_node = 0;
        params.result = match made {
            Ok(_) => 0,
            Err(Error::INVALID_VALUE) => 2,
            Err(Error::NOT_SUPPORTED) => 3,
            Err(_) => 1,
        };
        made
    }

    /// The work of an instantiated graph.
    pub(crate) fn works_of(&mut self, executable: usize) -> Result<Arc<Vec<Work>>> {
        let Executable { flags, works, .. } = self.executables.get(executable)?;
        let (flags, works) = (*flags, Arc::clone(works));
        if flags & AUTO_FREE != 0 {
            self.disown_all(&works);
        }
        Ok(works)
    }

    pub(crate) fn destroy_graph(&mut self, graph: usize) -> Result {
        let gone = self.graphs.remove(graph);
        self.clones.remove(&graph);
        gone.map(drop).map_err(|_| Error::INVALID_VALUE)?;
        self.free_last()
    }

    pub(crate) fn destroy_executable(&mut self, executable: usize) -> Result {
        self.executables.remove(executable)?;
        self.free_last()
    }

    /// The graph of a node.
    pub(crate) fn graph_of(&mut self, node: usize) -> Result<&mut Graph> {
        let holds = |graph: &&mut Graph| graph.nodes.contains_key(&node);
        self.graphs
            .values_mut()
            .find(holds)
            .ok_or(Error::INVALID_VALUE)
    }

    /// The address that a node frees.
    pub(crate) fn freed_by(&mut self, node: usize) -> Result<u64> {
        match &self.node(node)?.work {
            Work::FreeLast(ptr) => Ok(**ptr),
            Work::Free(ptr) => Ok(*ptr),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// A node.
    pub(crate) fn node(&mut self, node: usize) -> Result<&mut Node> {
        let graph = self.graph_of(node)?;
        graph.nodes.get_mut(&node).ok_or(Error::INVALID_VALUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_run_after_what_they_depend_on() {
        let mut graph = Graph::default();
        let a = graph.add(Work::Nothing, vec![]).unwrap();
        let b = graph.add(Work::Nothing, vec![a]).unwrap();
        let c = graph.add(Work::Nothing, vec![]).unwrap();
        graph.nodes.get_mut(&a).unwrap().after.push(c);
        assert_eq!(graph.in_order().unwrap(), [c, a, b]);
        graph.nodes.get_mut(&c).unwrap().after.push(b);
        assert!(graph.in_order().is_err());
        assert!(graph.add(Work::Nothing, vec![7]).is_err());
    }
}
