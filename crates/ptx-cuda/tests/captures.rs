//! Streams, what they capture, and the graphs that come of it.

mod cuda;

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use cuda::{Attribute, Cuda, PTX, container, launch_with, managed, number};

/// Kinds of captures.
const GLOBAL: c_int = 0;
const THREAD_LOCAL: c_int = 1;
const RELAXED: c_int = 2;

#[test]
fn a_capture_is_ruined_by_what_it_does_not_see() {
    let cuda = Cuda::load();
    let kernel = cuda.register(&container(1, PTX.as_bytes()));
    let (mut stream, mut graph, mut other) = (0usize, 0usize, 0u64);
    // SAFETY: as the API asks for, or refused.
    unsafe {
        let ptr = managed(&cuda);
        assert_eq!(cuda.f1("cudaStreamCreate", &raw mut stream), 0);
        let begin = |mode: c_int| assert_eq!(cuda.f2("cudaStreamBeginCapture", stream, mode), 0);
        let mut end = || cuda.f2("cudaStreamEndCapture", stream, &raw mut graph);
        begin(GLOBAL);
        assert_eq!(cuda.launch(kernel, 1, 1, ptr, 1, 0), 906);
        assert_eq!(cuda.launch(kernel, 1, 1, ptr, 1, stream), 901);
        assert_eq!(end(), 901);
        assert_eq!(number(ptr), 0);
        begin(GLOBAL);
        assert_eq!(cuda.f2("cudaMalloc", &raw mut other, 16usize), 900);
        assert_eq!(end(), 901);
        begin(RELAXED);
        assert_eq!(cuda.f2("cudaMalloc", &raw mut other, 16usize), 0);
        assert_eq!(cuda.f1("cudaFree", other), 0);
        assert_eq!(cuda.launch(kernel, 1, 2048, ptr, 1, stream), 9, "checked");
        assert_eq!(end(), 0);
        begin(RELAXED);
        assert_eq!(cuda.f0("cudaDeviceSynchronize"), 900, "in every mode");
        assert_eq!(end(), 901);
        for (mode, code) in [(THREAD_LOCAL, 0), (GLOBAL, 900)] {
            begin(mode);
            let elsewhere = || {
                let mut own = 0u64;
                cuda.f2("cudaMalloc", &raw mut own, 16usize)
            };
            let made = std::thread::scope(|scope| scope.spawn(elsewhere).join());
            assert_eq!(made.expect("no panic"), code);
            assert_eq!(end(), if code == 0 { 0 } else { 901 });
        }
        assert_eq!(cuda.f1("cudaStreamDestroy", stream), 0);
        assert_eq!(cuda.f1("cudaFree", ptr), 0);
    }
}

#[test]
fn each_thread_has_a_stream_of_its_own() {
    const PER_THREAD: usize = 2;
    let cuda = Cuda::load();
    let kernel = cuda.register(&container(1, PTX.as_bytes()));
    let mut graph = 0usize;
    // SAFETY: as the API asks for.
    unsafe {
        let ptr = managed(&cuda);
        // Stream 0 of these names is the thread's.
        let begin = "cudaStreamBeginCapture_ptsz";
        assert_eq!(cuda.f2(begin, 0usize, THREAD_LOCAL), 0);
        assert_eq!(cuda.launch(kernel, 1, 1, ptr, 1, PER_THREAD), 0);
        let elsewhere = || cuda.launch(kernel, 1, 1, ptr, 1, PER_THREAD);
        let launched = std::thread::scope(|scope| scope.spawn(elsewhere).join());
        assert_eq!(launched.expect("no panic"), 0);
        assert_eq!(number(ptr), 1, "only the other thread's has run");
        let end = "cudaStreamEndCapture_ptsz";
        assert_eq!(cuda.f2(end, 0usize, &raw mut graph), 0);
        assert_eq!(cuda.f2("cudaStreamBeginCapture", 0usize, GLOBAL), 900);
        assert_eq!(cuda.f1("cudaFree", ptr), 0);
    }
}

#[test]
fn graphs_record_events_and_launches_do() {
    let cuda = Cuda::load();
    let kernel = cuda.register(&container(1, PTX.as_bytes()));
    let (mut stream, mut graph, mut exec) = (0usize, 0usize, 0usize);
    let (mut events, mut count, mut millis) = ([0usize; 3], 0usize, 0f32);
    // SAFETY: as the API asks for, or refused.
    unsafe {
        assert_eq!(cuda.f1("cudaStreamCreate", &raw mut stream), 0);
        for event in &mut events {
            assert_eq!(cuda.f1("cudaEventCreate", &raw mut *event), 0);
        }
        let record =
            |event: usize, flags: u32| cuda.f3("cudaEventRecordWithFlags", event, stream, flags);
        assert_eq!(record(events[0], 1), 1, "no capture");
        assert_eq!(record(events[0], 0), 0);
        assert_eq!(cuda.f2("cudaStreamBeginCapture", stream, GLOBAL), 0);
        assert_eq!(record(events[1], 1), 0);
        assert_eq!(record(events[1], 8), 1, "no such flag");
        assert_eq!(cuda.f2("cudaStreamEndCapture", stream, &raw mut graph), 0);
        let nodes = null_mut::<usize>();
        assert_eq!(
            cuda.f3("cudaGraphGetNodes", graph, nodes, &raw mut count),
            0
        );
        assert_eq!(count, 1);
        // `cudaGraphInstantiateParams`: flags, stream, then two answers.
        let mut params = [1u64 << 40, 0, 7, 7];
        let name = "cudaGraphInstantiateWithParams";
        let mut make = |params: *mut u64| cuda.f3(name, &raw mut exec, graph, params);
        assert_eq!(make(params.as_mut_ptr()), 1, "no such flag");
        params[0] = 4;
        assert_eq!(make(params.as_mut_ptr()), 801, "launches from the device");
        params[0] = 0;
        assert_eq!(make(params.as_mut_ptr()), 0);
        assert_eq!((params[2], params[3] as u32), (0, 0));
        assert_eq!(cuda.f2("cudaGraphLaunch", exec, stream), 0);
        let ptr = managed(&cuda);
        // Attribute 12: the event of a launch's completion.
        let event = [events[2] as u32, (events[2] >> 32) as u32, 0];
        let completion = Attribute::new(12, event);
        let launched = launch_with(&cuda, kernel, 1, stream, ptr, &[completion]);
        assert_eq!(launched, 0);
        for event in &events[1..] {
            let elapsed = "cudaEventElapsedTime";
            assert_eq!(cuda.f3(elapsed, &raw mut millis, events[0], *event), 0);
        }
        assert_eq!(cuda.f1("cudaStreamDestroy", stream), 0);
        assert_eq!(cuda.f1("cudaFree", ptr), 0);
    }
}

#[test]
fn host_functions_may_not_call_cuda() {
    type Malloc = unsafe extern "C" fn(*mut u64, usize) -> c_int;

    /// Calls the function it is given, and leaves its code there.
    unsafe extern "C" fn allocate(data: *mut c_void) {
        let mut ptr = 0u64;
        // SAFETY: the test gives a function and room for its code.
        unsafe {
            let (malloc, code) = &mut *data.cast::<(Malloc, c_int)>();
            *code = malloc(&raw mut ptr, 16);
        }
    }

    let cuda = Cuda::load();
    let mut data: (Malloc, c_int) = (cuda.symbol("cudaMalloc"), 0);
    // SAFETY: as the API asks for.
    unsafe {
        let function: unsafe extern "C" fn(*mut c_void) = allocate;
        let called = cuda.f3("cudaLaunchHostFunc", 0usize, function, &raw mut data);
        assert_eq!((called, data.1), (0, 800));
        assert_eq!(cuda.f0("cudaDeviceSynchronize"), 0);
    }
}

#[test]
fn what_a_graph_frees_goes_with_it() {
    let cuda = Cuda::load();
    let (mut stream, mut graph, mut exec, mut ptr) = (0usize, 0usize, 0usize, 0u64);
    // SAFETY: as the API asks for.
    unsafe {
        let used = || {
            let (mut free, mut all) = (0usize, 0usize);
            let info = cuda.f2("cudaMemGetInfo", &raw mut free, &raw mut all);
            assert_eq!(info, 0);
            all - free
        };
        assert_eq!(cuda.f1("cudaStreamCreate", &raw mut stream), 0);
        let before = used();
        assert_eq!(cuda.f2("cudaStreamBeginCapture", stream, GLOBAL), 0);
        let allocated = cuda.f3("cudaMallocAsync", &raw mut ptr, 4096usize, stream);
        assert_eq!(allocated, 0);
        let filled = cuda.f4("cudaMemsetAsync", ptr, 1 as c_int, 4096usize, stream);
        assert_eq!(filled, 0);
        assert_eq!(cuda.f2("cudaFreeAsync", ptr, stream), 0);
        assert_eq!(cuda.f2("cudaStreamEndCapture", stream, &raw mut graph), 0);
        let made = cuda.f3("cudaGraphInstantiate", &raw mut exec, graph, 0u64);
        assert_eq!(made, 0);
        assert_eq!(cuda.f1("cudaGraphDestroy", graph), 0);
        for _ in 0..2 {
            assert_eq!(cuda.f2("cudaGraphLaunch", exec, stream), 0);
        }
        assert!(used() > before);
        assert_eq!(cuda.f1("cudaGraphExecDestroy", exec), 0);
        assert_eq!(used(), before);
        assert_eq!(cuda.f1("cudaStreamDestroy", stream), 0);
    }
}

/// `cudaMemAllocNodeParams`
#[repr(C)]
struct AllocateParams {
    kind: c_int,
    shared_as: c_int,
    location: [c_int; 2],
    rest: [u64; 9],
    access: [usize; 2],
    bytes: usize,
    ptr: u64,
}

#[test]
fn a_graphs_memory_is_where_it_was_at_every_launch() {
    let cuda = Cuda::load();
    let mut params = AllocateParams {
        kind: 1,
        shared_as: 0,
        location: [1, 0],
        rest: [0; 9],
        access: [0; 2],
        bytes: 4096,
        ptr: 0,
    };
    assert_eq!(size_of::<AllocateParams>(), 120);
    let (mut graph, mut node, mut exec) = (0usize, 0usize, 0usize);
    // SAFETY: as the API asks for, or refused.
    unsafe {
        let attribute = |which: c_int| {
            let mut bytes = 0u64;
            let asked = cuda.f3(
                "cudaDeviceGetGraphMemAttribute",
                0 as c_int,
                which,
                &raw mut bytes,
            );
            assert_eq!(asked, 0);
            bytes
        };
        assert_eq!(cuda.f2("cudaGraphCreate", &raw mut graph, 0u32), 0);
        let none = null_mut::<usize>();
        let added = cuda.f5(
            "cudaGraphAddMemAllocNode",
            &raw mut node,
            graph,
            none,
            0usize,
            &raw mut params,
        );
        assert_eq!(added, 0);
        let mut kind = 0 as c_int;
        assert_eq!(cuda.f2("cudaGraphNodeGetType", node, &raw mut kind), 0);
        assert_eq!(kind, 10);
        let made = cuda.f3("cudaGraphInstantiate", &raw mut exec, graph, 0u64);
        assert_eq!(made, 0);
        assert_eq!(cuda.f1("cudaFree", params.ptr), 1, "nobody owns it yet");
        for _ in 0..2 {
            assert_eq!(cuda.f2("cudaGraphLaunch", exec, 0usize), 0);
            assert_eq!((attribute(0), attribute(2)), (4096, 4096));
            assert_eq!(cuda.f3("cudaMemset", params.ptr, 7 as c_int, 4096usize), 0);
            assert_eq!(
                cuda.f2("cudaGraphLaunch", exec, 0usize),
                1,
                "it is not freed"
            );
            assert_eq!(cuda.f1("cudaFree", params.ptr), 0);
        }
        assert_eq!(cuda.f2("cudaGraphLaunch", exec, 0usize), 0);
        // Another graph may free it.
        let (mut other, mut freeing) = (0usize, 0usize);
        assert_eq!(cuda.f2("cudaGraphCreate", &raw mut other, 0u32), 0);
        let added = cuda.f5(
            "cudaGraphAddMemFreeNode",
            &raw mut node,
            other,
            none,
            0usize,
            params.ptr,
        );
        assert_eq!(added, 0);
        let made = cuda.f3("cudaGraphInstantiate", &raw mut freeing, other, 0u64);
        assert_eq!(made, 0);
        assert_eq!(cuda.f2("cudaGraphLaunch", freeing, 0usize), 0);
        assert_eq!((attribute(0), attribute(1)), (0, 4096));
        for graph in [graph, other] {
            assert_eq!(cuda.f1("cudaGraphDestroy", graph), 0);
        }
        for exec in [exec, freeing] {
            assert_eq!(cuda.f1("cudaGraphExecDestroy", exec), 0);
        }
        assert_eq!(attribute(2), 0);
        assert_eq!(cuda.f3("cudaMemset", params.ptr, 7 as c_int, 4096usize), 1);
    }
}

#[test]
fn memory_of_pools_is_freed_by_the_rules_of_all_memory() {
    let cuda = Cuda::load();
    let (mut stream, mut graph, mut ptr) = (0usize, 0usize, 0u64);
    // SAFETY: as the API asks for, or refused.
    unsafe {
        let allocated = cuda.f3("cudaMallocAsync", &raw mut ptr, 64usize, 0usize);
        assert_eq!(allocated, 0);
        assert_eq!(cuda.f1("cuMemFreeHost", ptr), 1, "not pinned");
        assert_eq!(cuda.f1("cudaStreamCreate", &raw mut stream), 0);
        assert_eq!(cuda.f2("cudaStreamBeginCapture", stream, GLOBAL), 0);
        assert_eq!(cuda.f1("cudaFree", ptr), 900, "no capture sees it");
        assert_eq!(cuda.f2("cudaStreamEndCapture", stream, &raw mut graph), 901);
        assert_eq!(cuda.f1("cudaStreamDestroy", stream), 0);
        assert_eq!(cuda.f1("cuMemFree_v2", ptr), 0);
        assert_eq!(cuda.f1("cudaFree", ptr), 1, "twice");
    }
}

#[test]
fn a_node_that_waits_says_so() {
    const WAITS: c_int = 6;
    let cuda = Cuda::load();
    let (mut stream, mut graph, mut event, mut count) = (0usize, 0usize, 0usize, 2usize);
    let (mut nodes, mut kind) = ([0usize; 2], 0 as c_int);
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuda.f1("cudaStreamCreate", &raw mut stream), 0);
        assert_eq!(cuda.f1("cudaEventCreate", &raw mut event), 0);
        assert_eq!(cuda.f2("cudaStreamBeginCapture", stream, GLOBAL), 0);
        // An event that is external to the capture.
        assert_eq!(cuda.f3("cudaStreamWaitEvent", stream, event, 1u32), 0);
        assert_eq!(cuda.f2("cudaStreamEndCapture", stream, &raw mut graph), 0);
        let name = "cudaGraphAddEventWaitNode";
        let (node, none) = (&raw mut nodes[1], null_mut::<usize>());
        assert_eq!(cuda.f5(name, node, graph, none, 0usize, event), 0);
        let listed = cuda.f3(
            "cudaGraphGetNodes",
            graph,
            nodes.as_mut_ptr(),
            &raw mut count,
        );
        assert_eq!((listed, count), (0, 2));
        for node in nodes {
            assert_eq!(cuda.f2("cudaGraphNodeGetType", node, &raw mut kind), 0);
            assert_eq!(kind, WAITS);
        }
        assert_eq!(cuda.f1("cudaGraphDestroy", graph), 0);
        assert_eq!(cuda.f1("cudaStreamDestroy", stream), 0);
    }
}

#[test]
fn a_stream_gets_the_attributes_of_another() {
    let cuda = Cuda::load();
    let (mut to, mut from, mut priority) = (0usize, 0usize, 0 as c_int);
    // SAFETY: as the API asks for, or refused.
    unsafe {
        assert_eq!(cuda.f1("cudaStreamCreate", &raw mut to), 0);
        let make = "cudaStreamCreateWithPriority";
        assert_eq!(cuda.f3(make, &raw mut from, 0u32, -3 as c_int), 0);
        assert_eq!(cuda.f2("cudaStreamCopyAttributes", to, from), 0);
        let get = "cudaStreamGetPriority";
        assert_eq!(cuda.f2(get, to, &raw mut priority), 0);
        assert_eq!(priority, -3);
        assert_eq!(cuda.f1("cudaStreamDestroy", from), 0);
        assert_eq!(cuda.f2("cudaStreamCopyAttributes", to, from), 400);
        assert_eq!(cuda.f1("cudaStreamDestroy", to), 0);
    }
}

#[test]
fn a_capture_waits_for_nothing_outside_of_it() {
    let cuda = Cuda::load();
    let (mut stream, mut graph, mut event) = (0usize, 0usize, 0usize);
    // SAFETY: as the API asks for, or refused.
    unsafe {
        assert_eq!(cuda.f1("cudaStreamCreate", &raw mut stream), 0);
        let end = "cudaStreamEndCapture";
        assert_eq!(cuda.f2(end, stream, &raw mut graph), 401, "none begun");
        assert_eq!(cuda.f1("cudaEventCreate", &raw mut event), 0);
        let wait = |code| {
            assert_eq!(cuda.f2("cudaStreamBeginCapture", stream, GLOBAL), 0);
            assert_eq!(cuda.f3("cudaStreamWaitEvent", stream, event, 0u32), code);
        };
        wait(0);
        assert_eq!(cuda.f2(end, stream, &raw mut graph), 0, "never recorded");
        assert_eq!(cuda.f2("cudaEventRecord", event, 0usize), 0);
        wait(905);
        assert_eq!(cuda.f2(end, stream, &raw mut graph), 901);
        assert_eq!(cuda.f1("cudaStreamDestroy", stream), 0);
    }
}
