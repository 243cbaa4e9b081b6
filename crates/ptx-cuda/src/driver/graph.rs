//! Graphs: the runtime API's, under the driver's names where the parameters differ.

use std::ffi::{c_int, c_uint, c_void};

use super::launch::{Arguments, kernel_work};
use super::transfer::Copy3D;
use crate::c::{array, offer, put, put_array};
use crate::call::driver;
use crate::context::{current, in_context};
use crate::error::{Error, Result};
use crate::graph::{Graph, InstantiateParams};
use crate::graph_memory::AllocateParams;
use crate::launch::Shape;
use crate::params::{FillParams, HostParams};
use crate::stream::submit;
use crate::work::{Work, kind};

/// `CUDA_KERNEL_NODE_PARAMS`
#[repr(C)]
struct KernelParams {
    function: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    each: *const *const c_void,
    extra: *const *mut c_void,
    kernel: usize,
    context: usize,
}

impl KernelParams {
    /// # Safety
    /// The kernel's parameters must be valid.
    unsafe fn work(&self) -> Result<Work> {
        let shape = Shape {
            grid: self.grid,
            block: self.block,
            shared: self.shared,
            ..Shape::default()
        };
        let function = if self.function == 0 {
            self.kernel
        } else {
            self.function
        };
        let (each, extra) = (self.each, self.extra);
        let mut device = in_context()?;
        // SAFETY: by this function's contract.
        unsafe { kernel_work(&mut device, function, shape, Arguments { each, extra }) }
    }
}

/// Adds a node.
///
/// # Safety
/// `after` must have `count` nodes.
unsafe fn add(node: *mut usize, graph: usize, after: (*const usize, usize), work: Work) -> Result {
    // SAFETY: by this function's contract.
    let after = unsafe { array(after.0, after.1) }?.to_vec();
    let added = in_context()?.graphs.get_mut(graph)?.add(work, after)?;
    // SAFETY: as above.
    unsafe { put(node, added) }
}

driver! {
    fn cuGraphCreate(graph: *mut usize, _flags: c_uint) {
        put(graph, in_context()?.graphs.add(Graph::default()))
    }

    fn cuGraphDestroy(graph: usize) {
        in_context()?.destroy_graph(graph)
    }

    fn cuGraphInstantiateWithFlags(executable: *mut usize, graph: usize, flags: u64) {
        put(executable, in_context()?.instantiate(graph, flags)?)
    }

    fn cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz(
        executable: *mut usize,
        graph: usize,
        params: *mut InstantiateParams,
    ) {
        let params = params.as_mut().ok_or(Error::INVALID_VALUE)?;
        put(executable, in_context()?.instantiate_with(graph, params)?)
    }

    fn cuGraphExecDestroy(executable: usize) {
        in_context()?.destroy_executable(executable)
    }

    fn cuGraphUpload | cuGraphUpload_ptsz(executable: usize, stream: usize) {
        let device = in_context()?;
        device.streams.get(stream)?;
        device.executables.get(executable).map(drop)
    }

    fn cuGraphLaunch | cuGraphLaunch_ptsz(executable: usize, stream: usize) {
        let mut device = in_context()?;
        let works = device.works_of(executable)?;
        submit(device, stream, Work::Graph(works))
    }

    fn cuGraphExecUpdate_v2(executable: usize, graph: usize, result: *mut [usize; 3]) {
        let mut device = in_context()?;
        let graph = device.graphs.get(graph)?.clone();
        let updated = device.executables.get_mut(executable)?.update(&graph);
        offer(result, [usize::from(updated.is_err()), 0, 0]);
        updated
    }

    fn cuGraphGetNodes(graph: usize, nodes: *mut usize, count: *mut usize) {
        let device = in_context()?;
        let all: Vec<usize> = device.graphs.get(graph)?.nodes.keys().copied().collect();
        put_array(nodes, count, &all)
    }

    fn cuGraphNodeGetType(node: usize, to: *mut c_int) {
        put(to, kind(&in_context()?.node(node)?.work))
    }

    fn cuGraphAddKernelNode_v2(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *const KernelParams,
    ) {
        let work = params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?;
        add(node, graph, (after, count), work)
    }

    fn cuGraphKernelNodeGetParams_v2(node: usize, params: *mut KernelParams) {
        let mut device = in_context()?;
        match &device.node(node)?.work {
            Work::Kernel(call) => put(params, KernelParams {
                function: call.handle,
                grid: call.shape.grid,
                block: call.shape.block,
                shared: call.shape.shared,
                each: call.args(),
                extra: std::ptr::null(),
                kernel: 0,
                context: current(),
            }),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    fn cuGraphMemsetNodeGetParams(node: usize, params: *mut FillParams) {
        put(params, FillParams::of(&in_context()?.node(node)?.work)?)
    }

    fn cuGraphHostNodeGetParams(node: usize, params: *mut HostParams) {
        put(params, HostParams::of(&in_context()?.node(node)?.work)?)
    }

    fn cuGraphExecKernelNodeSetParams_v2(
        executable: usize,
        node: usize,
        params: *const KernelParams,
    ) {
        let work = params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?;
        in_context()?.executables.get_mut(executable)?.replace(node, work)
    }

    fn cuGraphAddMemcpyNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *const Copy3D,
        _context: usize,
    ) {
        let copy = params.as_ref().ok_or(Error::INVALID_VALUE)?.copy()?;
        add(node, graph, (after, count), Work::Copy(copy))
    }

    fn cuGraphAddMemsetNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *const FillParams,
        _context: usize,
    ) {
        let work = params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?;
        add(node, graph, (after, count), work)
    }

    fn cuGraphAddHostNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *const HostParams,
    ) {
        let work = params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?;
        add(node, graph, (after, count), work)
    }

    fn cuGraphAddMemAllocNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *mut AllocateParams,
    ) {
        let params = params.as_mut().ok_or(Error::INVALID_VALUE)?;
        let work = in_context()?.graph_allocate_as(params)?;
        add(node, graph, (after, count), work)
    }

    fn cuGraphMemAllocNodeGetParams(node: usize, params: *mut AllocateParams) {
        put(params, in_context()?.allocated_by(node)?)
    }

    fn cuGraphAddMemFreeNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        ptr: u64,
    ) {
        let work = in_context()?.graph_free(ptr)?;
        add(node, graph, (after, count), work)
    }

    fn cuGraphMemFreeNodeGetParams(node: usize, ptr: *mut u64) {
        put(ptr, in_context()?.freed_by(node)?)
    }

    fn cuGraphAddEmptyNode(node: *mut usize, graph: usize, after: *const usize, count: usize) {
        add(node, graph, (after, count), Work::Nothing)
    }
}
