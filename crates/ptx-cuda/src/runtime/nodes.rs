//! Nodes of graphs.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use super::symbol::part;
use super::transfer::Copy3D;
use crate::c::{Dim3, array, put};
use crate::call::runtime;
use crate::context::in_runtime;
use crate::error::{Error, Result};
use crate::graph::Executable;
use crate::graph_memory::AllocateParams;
use crate::launch::{KernelCall, Shape, gather, gather_extra};
use crate::params::{FillParams, HostParams};
use crate::work::{Copy, Work};

/// `cudaKernelNodeParams`
#[repr(C)]
struct KernelParams {
    kernel: usize,
    grid: Dim3,
    block: Dim3,
    shared: c_uint,
    args: *const *const c_void,
    extra: *const *mut c_void,
}

impl KernelParams {
    /// # Safety
    /// The kernel's parameters must be valid.
    unsafe fn work(&self) -> Result<Work> {
        let function = in_runtime()?.function(self.kernel)?.clone();
        // SAFETY: by this function's contract.
        let params = unsafe {
            match self.args.is_null() && !self.extra.is_null() {
                true => gather_extra(&function, self.extra)?,
                false => gather(&function, self.args)?,
            }
        };
        let shape = Shape {
            grid: self.grid.into(),
            block: self.block.into(),
            shared: self.shared,
            ..Shape::default()
        };
        let call = KernelCall::new(self.kernel, function, shape, params);
        Ok(Work::Kernel(Arc::new(call)))
    }

    fn of(work: &Work) -> Result<Self> {
        match work {
            Work::Kernel(call) => Ok(Self {
                kernel: call.handle,
                grid: call.shape.grid.into(),
                block: call.shape.block.into(),
                shared: call.shape.shared,
                args: call.args(),
                extra: std::ptr::null(),
            }),
            _ => Err(Error::INVALID_VALUE),
        }
    }
}

fn flat(to: u64, from: u64, bytes: usize) -> Work {
    Work::Copy(Copy::flat(to, from, bytes as u64))
}

/// Adds a node.
///
/// # Safety
/// `after` must have `count` nodes.
unsafe fn add(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    work: Work,
) -> Result {
    // SAFETY: by this function's contract.
    let after = unsafe { array(after, count) }?.to_vec();
    let added = in_runtime()?.graphs.get_mut(graph)?.add(work, after)?;
    // SAFETY: as above.
    unsafe { put(node, added) }
}

/// Changes a node of a graph to other work of its kind.
fn change(node: usize, work: Work) -> Result {
    let mut device = in_runtime()?;
    let place = &mut device.node(node)?.work;
    if std::mem::discriminant(place) != std::mem::discriminant(&work) {
        return Err(Error::INVALID_VALUE);
    }
    *place = work;
    Ok(())
}

/// Changes a node of an instantiated graph.
fn change_ready(executable: usize, node: usize, work: Work) -> Result {
    in_runtime()?
        .executables
        .get_mut(executable)?
        .replace(node, work)
}

runtime! {
    fn cudaGraphAddKernelNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *const KernelParams,
    ) {
        let work = params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?;
        add(node, graph, after, count, work)
    }

    fn cudaGraphKernelNodeGetParams(node: usize, params: *mut KernelParams) {
        put(params, KernelParams::of(&in_runtime()?.node(node)?.work)?)
    }

    fn cudaGraphKernelNodeSetParams(node: usize, params: *const KernelParams) {
        change(node, params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?)
    }

    fn cudaGraphExecKernelNodeSetParams(
        executable: usize,
        node: usize,
        params: *const KernelParams,
    ) {
        change_ready(executable, node, params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?)
    }

    fn cudaGraphAddMemcpyNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *const Copy3D,
    ) {
        let copy = params.as_ref().ok_or(Error::INVALID_VALUE)?.copy()?;
        add(node, graph, after, count, Work::Copy(copy))
    }

    fn cudaGraphMemcpyNodeSetParams(node: usize, params: *const Copy3D) {
        change(node, Work::Copy(params.as_ref().ok_or(Error::INVALID_VALUE)?.copy()?))
    }

    fn cudaGraphExecMemcpyNodeSetParams(executable: usize, node: usize, params: *const Copy3D) {
        let copy = params.as_ref().ok_or(Error::INVALID_VALUE)?.copy()?;
        change_ready(executable, node, Work::Copy(copy))
    }

    fn cudaGraphAddMemcpyNode1D(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        to: u64,
        from: u64,
        bytes: usize,
        _kind: c_int,
    ) {
        add(node, graph, after, count, flat(to, from, bytes))
    }

    fn cudaGraphMemcpyNodeSetParams1D(
        node: usize,
        to: u64,
        from: u64,
        bytes: usize,
        _kind: c_int,
    ) {
        change(node, flat(to, from, bytes))
    }

    fn cudaGraphExecMemcpyNodeSetParams1D(
        executable: usize,
        node: usize,
        to: u64,
        from: u64,
        bytes: usize,
        _kind: c_int,
    ) {
        change_ready(executable, node, flat(to, from, bytes))
    }

    fn cudaGraphAddMemcpyNodeToSymbol(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        symbol: usize,
        from: u64,
        bytes: usize,
        offset: usize,
        _kind: c_int,
    ) {
        let work = flat(part(symbol, bytes, offset)?, from, bytes);
        add(node, graph, after, count, work)
    }

    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        to: u64,
        symbol: usize,
        bytes: usize,
        offset: usize,
        _kind: c_int,
    ) {
        let work = flat(to, part(symbol, bytes, offset)?, bytes);
        add(node, graph, after, count, work)
    }

    fn cudaGraphAddMemsetNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *const FillParams,
    ) {
        let work = params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?;
        add(node, graph, after, count, work)
    }

    fn cudaGraphMemsetNodeGetParams(node: usize, params: *mut FillParams) {
        put(params, FillParams::of(&in_runtime()?.node(node)?.work)?)
    }

    fn cudaGraphMemsetNodeSetParams(node: usize, params: *const FillParams) {
        change(node, params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?)
    }

    fn cudaGraphExecMemsetNodeSetParams(
        executable: usize,
        node: usize,
        params: *const FillParams,
    ) {
        change_ready(executable, node, params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?)
    }

    fn cudaGraphAddHostNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *const HostParams,
    ) {
        let work = params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?;
        add(node, graph, after, count, work)
    }

    fn cudaGraphHostNodeGetParams(node: usize, params: *mut HostParams) {
        put(params, HostParams::of(&in_runtime()?.node(node)?.work)?)
    }

    fn cudaGraphHostNodeSetParams(node: usize, params: *const HostParams) {
        change(node, params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?)
    }

    fn cudaGraphExecHostNodeSetParams(
        executable: usize,
        node: usize,
        params: *const HostParams,
    ) {
        change_ready(executable, node, params.as_ref().ok_or(Error::INVALID_VALUE)?.work()?)
    }

    fn cudaGraphAddMemAllocNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        params: *mut AllocateParams,
    ) {
        let params = params.as_mut().ok_or(Error::INVALID_VALUE)?;
        let work = in_runtime()?.graph_allocate_as(params)?;
        add(node, graph, after, count, work)
    }

    fn cudaGraphMemAllocNodeGetParams(node: usize, params: *mut AllocateParams) {
        put(params, in_runtime()?.allocated_by(node)?)
    }

    fn cudaGraphAddMemFreeNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        ptr: u64,
    ) {
        let work = in_runtime()?.graph_free(ptr)?;
        add(node, graph, after, count, work)
    }

    fn cudaGraphMemFreeNodeGetParams(node: usize, ptr: *mut u64) {
        put(ptr, in_runtime()?.freed_by(node)?)
    }

    fn cudaGraphAddChildGraphNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        child: usize,
    ) {
        let works = Executable::of(in_runtime()?.graphs.get(child)?)?.works;
        add(node, graph, after, count, Work::Graph(works))
    }

    fn cudaGraphExecChildGraphNodeSetParams(executable: usize, node: usize, child: usize) {
        let works = Executable::of(in_runtime()?.graphs.get(child)?)?.works;
        change_ready(executable, node, Work::Graph(works))
    }

    fn cudaGraphAddEmptyNode(node: *mut usize, graph: usize, after: *const usize, count: usize) {
        add(node, graph, after, count, Work::Nothing)
    }

    fn cudaGraphAddEventRecordNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        event: usize,
    ) {
        in_runtime()?.events.get(event)?;
        add(node, graph, after, count, Work::Record(event))
    }

    fn cudaGraphAddEventWaitNode(
        node: *mut usize,
        graph: usize,
        after: *const usize,
        count: usize,
        event: usize,
    ) {
        in_runtime()?.events.get(event)?;
        add(node, graph, after, count, Work::Wait)
    }
}
