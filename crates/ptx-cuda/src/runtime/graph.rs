//! Graphs as a whole: made, looked at, made ready and launched.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::c::{array, offer, put, put_array};
use crate::call::runtime;
use crate::context::in_runtime;
use crate::error::{Error, Result};
use crate::graph::{Graph, InstantiateParams};
use crate::loaded::is_twelve;
use crate::runtime::device::check;
use crate::stream::submit;
use crate::work::Work;

/// `cudaGraphNodeType…` of a piece of work.
pub(crate) fn kind(work: &Work) -> c_int {
    match work {
        Work::Kernel(_) => 0,
        Work::Copy(_) => 1,
        Work::Fill(_) => 2,
        Work::Host(_) => 3,
        Work::Graph(_) => 4,
        Work::Nothing => 5,
        Work::Record(_) => 7,
        Work::Allocate(_) => 10,
        Work::Free(_) | Work::FreeLast(_) => 11,
    }
}

/// In CUDA 12 these functions have no data of edges: what follows it comes one earlier.
fn after_edges<T: Copy>(edges: *const c_void, next: T, convert: fn(usize) -> T) -> T {
    match is_twelve() {
        true => convert(edges.expose_provenance()),
        false => next,
    }
}

fn count_at(address: usize) -> *mut usize {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Adds or removes dependencies.
fn depend(graph: usize, edges: impl Iterator<Item = (usize, usize)>, add: bool) -> Result {
    let mut device = in_runtime()?;
    let nodes = &mut device.graphs.get_mut(graph)?.nodes;
    for (from, to) in edges {
        if !nodes.contains_key(&from) {
            return Err(Error::INVALID_VALUE);
        }
        let after = &mut nodes.get_mut(&to).ok_or(Error::INVALID_VALUE)?.after;
        match (add, after.contains(&from)) {
            (true, false) => after.push(from),
            (false, true) => after.retain(|&node| node != from),
            _ => return Err(Error::INVALID_VALUE),
        }
    }
    Ok(())
}

runtime! {
    fn cudaGraphCreate(graph: *mut usize, _flags: c_uint) {
        put(graph, in_runtime()?.graphs.add(Graph::default()))
    }

    fn cudaGraphDestroy(graph: usize) {
        in_runtime()?.destroy_graph(graph)
    }

    fn cudaGraphClone(copy: *mut usize, graph: usize) {
        let mut device = in_runtime()?;
        let (clone, names) = device.graphs.get(graph)?.cloned();
        let handle = device.graphs.add(clone);
        device.clones.insert(handle, names);
        put(copy, handle)
    }

    fn cudaGraphNodeFindInClone(node: *mut usize, original: usize, clone: usize) {
        let device = in_runtime()?;
        let names = device.clones.get(&clone).ok_or(Error::INVALID_VALUE)?;
        put(node, *names.get(&original).ok_or(Error::INVALID_VALUE)?)
    }

    fn cudaGraphGetNodes(graph: usize, nodes: *mut usize, count: *mut usize) {
        let device = in_runtime()?;
        let all: Vec<usize> = device.graphs.get(graph)?.nodes.keys().copied().collect();
        put_array(nodes, count, &all)
    }

    fn cudaGraphGetRootNodes(graph: usize, nodes: *mut usize, count: *mut usize) {
        let device = in_runtime()?;
        let all = device.graphs.get(graph)?.nodes.iter();
        let roots: Vec<usize> = all.filter(|(_, n)| n.after.is_empty()).map(|(&h, _)| h).collect();
        put_array(nodes, count, &roots)
    }

    fn cudaGraphGetEdges | cudaGraphGetEdges_v2(
        graph: usize,
        from: *mut usize,
        to: *mut usize,
        edges: *const c_void,
        count: *mut usize,
    ) {
        let count = after_edges(edges, count, count_at);
        let device = in_runtime()?;
        let (sources, targets): (Vec<usize>, Vec<usize>) =
            device.graphs.get(graph)?.edges().into_iter().unzip();
        let room = *count.as_ref().ok_or(Error::INVALID_VALUE)?;
        put_array(from, count, &sources)?;
        if !to.is_null() {
            *count = room;
            put_array(to, count, &targets)?;
        }
        Ok(())
    }

    fn cudaGraphNodeGetDependencies | cudaGraphNodeGetDependencies_v2(
        node: usize,
        nodes: *mut usize,
        edges: *const c_void,
        count: *mut usize,
    ) {
        let count = after_edges(edges, count, count_at);
        put_array(nodes, count, &in_runtime()?.node(node)?.after)
    }

    fn cudaGraphNodeGetDependentNodes | cudaGraphNodeGetDependentNodes_v2(
        node: usize,
        nodes: *mut usize,
        edges: *const c_void,
        count: *mut usize,
    ) {
        let count = after_edges(edges, count, count_at);
        let mut device = in_runtime()?;
        let edges = device.graph_of(node)?.edges().into_iter();
        let after: Vec<usize> = edges.filter(|(from, _)| *from == node).map(|(_, to)| to).collect();
        put_array(nodes, count, &after)
    }

    fn cudaGraphAddDependencies | cudaGraphAddDependencies_v2(
        graph: usize,
        from: *const usize,
        to: *const usize,
        edges: *const c_void,
        count: usize,
    ) {
        let count = after_edges(edges, count, |count| count);
        let pairs = array(from, count)?.iter().copied().zip(array(to, count)?.iter().copied());
        depend(graph, pairs, true)
    }

    fn cudaGraphRemoveDependencies | cudaGraphRemoveDependencies_v2(
        graph: usize,
        from: *const usize,
        to: *const usize,
        edges: *const c_void,
        count: usize,
    ) {
        let count = after_edges(edges, count, |count| count);
        let pairs = array(from, count)?.iter().copied().zip(array(to, count)?.iter().copied());
        depend(graph, pairs, false)
    }

    fn cudaGraphNodeGetType(node: usize, to: *mut c_int) {
        put(to, kind(&in_runtime()?.node(node)?.work))
    }

    fn cudaGraphDestroyNode(node: usize) {
        in_runtime()?.graph_of(node)?.remove(node)
    }

    fn cudaGraphDebugDotPrint(graph: usize, path: *const c_char, _flags: c_uint) {
        let mut text = String::from("digraph {\n");
        for (from, to) in in_runtime()?.graphs.get(graph)?.edges() {
            text += &format!("  n{from} -> n{to};\n");
        }
        let written = std::fs::write(crate::c::text(path)?, text + "}\n");
        written.map_err(|_| Error::FILE_NOT_FOUND)
    }

    fn cudaGraphInstantiate | cudaGraphInstantiateWithFlags(
        executable: *mut usize,
        graph: usize,
        flags: u64,
    ) {
        put(executable, in_runtime()?.instantiate(graph, flags)?)
    }

    fn cudaGraphInstantiateWithParams | cudaGraphInstantiateWithParams_ptsz(
        executable: *mut usize,
        graph: usize,
        params: *mut InstantiateParams,
    ) {
        let params = params.as_mut().ok_or(Error::INVALID_VALUE)?;
        put(executable, in_runtime()?.instantiate_with(graph, params)?)
    }

    fn cudaGraphExecDestroy(executable: usize) {
        in_runtime()?.destroy_executable(executable)
    }

    fn cudaGraphExecGetFlags(executable: usize, flags: *mut u64) {
        put(flags, in_runtime()?.executables.get(executable)?.flags)
    }

    fn cudaGraphUpload | cudaGraphUpload_ptsz(executable: usize, stream: usize) {
        let device = in_runtime()?;
        device.streams.get(stream)?;
        device.executables.get(executable).map(drop)
    }

    fn cudaGraphLaunch | cudaGraphLaunch_ptsz(executable: usize, stream: usize) {
        let mut device = in_runtime()?;
        let works = device.works_of(executable)?;
        submit(device, stream, Work::Graph(works))
    }

    fn cudaGraphExecUpdate(executable: usize, graph: usize, result: *mut [usize; 3]) {
        let mut device = in_runtime()?;
        let graph = device.graphs.get(graph)?.clone();
        let updated = device.executables.get_mut(executable)?.update(&graph);
        // The struct begins with a result, 0 for success and 1 for failure.
        offer(result, [usize::from(updated.is_err()), 0, 0]);
        updated
    }

    fn cudaDeviceGraphMemTrim(_device: c_int) {
        in_runtime().map(drop)
    }

    fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_uint, value: *mut c_void) {
        check(device)?;
        in_runtime()?.graph_attribute(attribute, value)
    }

    fn cudaDeviceSetGraphMemAttribute(device: c_int, attribute: c_uint, _value: *mut c_void) {
        check(device)?;
        in_runtime()?.reset_graph_attribute(attribute)
    }
}
