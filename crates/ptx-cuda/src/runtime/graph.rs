//! Whole graphs: creation, inspection, instantiation and launch.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::c::{array, offer, put, put_array};
use crate::call::runtime;
use crate::context::in_runtime;
use crate::device::check;
use crate::error::{Error, Result};
use crate::graph::{Graph, InstantiateParams};
use crate::loaded::is_twelve;
use crate::stream::submit;
use crate::work::{Work, kind};

/// `cudaGraphEdgeData`: always zeros here, since every node waits for all its dependencies.
type Edge = [u8; 8];

/// The places for edge data and for their count. In CUDA 12 the names without `_v2` have no data:
/// the count is one parameter earlier.
fn answers(edges: *mut Edge, count: *mut usize) -> (*mut Edge, *mut usize) {
    match is_twelve() {
        true => (null_mut(), edges.cast()),
        false => (edges, count),
    }
}

/// The count of dependencies, likewise.
fn given(edges: *const Edge, count: usize) -> usize {
    match is_twelve() {
        true => edges.addr(),
        false => count,
    }
}

/// Returns nodes to the caller, with data of the edges to them.
///
/// # Safety
/// As for `put_array`; `edges` must be null or have room for as many.
unsafe fn put_nodes(
    to: *mut usize,
    (edges, count): (*mut Edge, *mut usize),
    nodes: &[usize],
) -> Result {
    // SAFETY: by this function's contract.
    unsafe {
        put_array(to, count, nodes)?;
        if !to.is_null() && !edges.is_null() {
            edges.write_bytes(0, *count);
        }
    }
    Ok(())
}

/// # Safety
/// As for `put_nodes`, of both sides.
unsafe fn put_edges(
    graph: usize,
    from: *mut usize,
    to: *mut usize,
    answers: (*mut Edge, *mut usize),
) -> Result {
    let device = in_runtime()?;
    let (sources, targets): (Vec<usize>, Vec<usize>) =
        device.graphs.get(graph)?.edges().into_iter().unzip();
    let count = answers.1;
    // SAFETY: by this function's contract.
    unsafe {
        let room = *count.as_ref().ok_or(Error::INVALID_VALUE)?;
        put_nodes(from, answers, &sources)?;
        if !to.is_null() {
            *count = room;
            put_array(to, count, &targets)?;
        }
    }
    Ok(())
}

fn before(node: usize) -> Result<Vec<usize>> {
    Ok(in_runtime()?.node(node)?.after.clone())
}

fn after(node: usize) -> Result<Vec<usize>> {
    let mut device = in_runtime()?;
    let edges = device.graph_of(node)?.edges().into_iter();
    Ok(edges
        .filter(|(from, _)| *from == node)
        .map(|(_, to)| to)
        .collect())
}

/// Adds or removes dependencies.
///
/// # Safety
/// `from` and `to` must have `count` nodes.
unsafe fn depend(
    graph: usize,
    from: *const usize,
    to: *const usize,
    count: usize,
    add: bool,
) -> Result {
    // SAFETY: by this function's contract.
    let (from, to) = unsafe { (array(from, count)?, array(to, count)?) };
    let mut device = in_runtime()?;
    let nodes = &mut device.graphs.get_mut(graph)?.nodes;
    for (&from, &to) in from.iter().zip(to) {
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

    fn cudaGraphGetEdges(
        graph: usize,
        from: *mut usize,
        to: *mut usize,
        edges: *mut Edge,
        count: *mut usize,
    ) {
        put_edges(graph, from, to, answers(edges, count))
    }

    fn cudaGraphGetEdges_v2(
        graph: usize,
        from: *mut usize,
        to: *mut usize,
        edges: *mut Edge,
        count: *mut usize,
    ) {
        put_edges(graph, from, to, (edges, count))
    }

    fn cudaGraphNodeGetDependencies(
        node: usize,
        nodes: *mut usize,
        edges: *mut Edge,
        count: *mut usize,
    ) {
        put_nodes(nodes, answers(edges, count), &before(node)?)
    }

    fn cudaGraphNodeGetDependencies_v2(
        node: usize,
        nodes: *mut usize,
        edges: *mut Edge,
        count: *mut usize,
    ) {
        put_nodes(nodes, (edges, count), &before(node)?)
    }

    fn cudaGraphNodeGetDependentNodes(
        node: usize,
        nodes: *mut usize,
        edges: *mut Edge,
        count: *mut usize,
    ) {
        put_nodes(nodes, answers(edges, count), &after(node)?)
    }

    fn cudaGraphNodeGetDependentNodes_v2(
        node: usize,
        nodes: *mut usize,
        edges: *mut Edge,
        count: *mut usize,
    ) {
        put_nodes(nodes, (edges, count), &after(node)?)
    }

    fn cudaGraphAddDependencies(
        graph: usize,
        from: *const usize,
        to: *const usize,
        edges: *const Edge,
        count: usize,
    ) {
        depend(graph, from, to, given(edges, count), true)
    }

    fn cudaGraphAddDependencies_v2(
        graph: usize,
        from: *const usize,
        to: *const usize,
        _edges: *const Edge,
        count: usize,
    ) {
        depend(graph, from, to, count, true)
    }

    fn cudaGraphRemoveDependencies(
        graph: usize,
        from: *const usize,
        to: *const usize,
        edges: *const Edge,
        count: usize,
    ) {
        depend(graph, from, to, given(edges, count), false)
    }

    fn cudaGraphRemoveDependencies_v2(
        graph: usize,
        from: *const usize,
        to: *const usize,
        _edges: *const Edge,
        count: usize,
    ) {
        depend(graph, from, to, count, false)
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
