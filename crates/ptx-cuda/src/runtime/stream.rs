//! Streams and their capture.

use std::ffi::{c_int, c_uint, c_void};

use crate::c::{array, offer, put};
use crate::call::runtime;
use crate::capture::{Answers, capture_info, exchange_mode};
use crate::context::in_runtime;
use crate::error::Error;

runtime! {
    fn cudaStreamCreate(stream: *mut usize) {
        put(stream, in_runtime()?.streams.make(0, 0)?)
    }

    fn cudaStreamCreateWithFlags(stream: *mut usize, flags: c_uint) {
        put(stream, in_runtime()?.streams.make(flags, 0)?)
    }

    fn cudaStreamCreateWithPriority(stream: *mut usize, flags: c_uint, priority: c_int) {
        put(stream, in_runtime()?.streams.make(flags, priority)?)
    }

    fn cudaStreamDestroy(stream: usize) {
        in_runtime()?.streams.destroy(stream)
    }

    fn cudaStreamSynchronize | cudaStreamSynchronize_ptsz(stream: usize) {
        in_runtime()?.wait_for_stream(stream)
    }

    fn cudaStreamQuery | cudaStreamQuery_ptsz(stream: usize) {
        in_runtime()?.wait_for_stream(stream)
    }

    fn cudaStreamWaitEvent | cudaStreamWaitEvent_ptsz(
        stream: usize,
        event: usize,
        flags: c_uint,
    ) {
        in_runtime()?.wait_in(stream, event, flags)
    }

    fn cudaStreamGetFlags | cudaStreamGetFlags_ptsz(stream: usize, flags: *mut c_uint) {
        put(flags, in_runtime()?.streams.get(stream)?.flags)
    }

    fn cudaStreamGetPriority | cudaStreamGetPriority_ptsz(stream: usize, priority: *mut c_int) {
        put(priority, in_runtime()?.streams.get(stream)?.priority)
    }

    fn cudaStreamGetId | cudaStreamGetId_ptsz(stream: usize, id: *mut u64) {
        in_runtime()?.streams.get(stream)?;
        put(id, stream as u64)
    }

    fn cudaStreamGetDevice | cudaStreamGetDevice_ptsz(stream: usize, device: *mut c_int) {
        in_runtime()?.streams.get(stream)?;
        put(device, 0)
    }

    fn cudaStreamAttachMemAsync | cudaStreamAttachMemAsync_ptsz(
        stream: usize,
        ptr: u64,
        _bytes: usize,
        _flags: c_uint,
    ) {
        let device = in_runtime()?;
        device.streams.get(stream)?;
        device.block(ptr).map(drop).ok_or(Error::INVALID_VALUE)
    }

    fn cudaStreamCopyAttributes | cudaStreamCopyAttributes_ptsz(to: usize, from: usize) {
        in_runtime()?.streams.copy_attributes(to, from)
    }

    fn cudaStreamSetAttribute | cudaStreamSetAttribute_ptsz(
        stream: usize,
        attribute: c_int,
        value: *const c_int,
    ) {
        let value = *value.as_ref().ok_or(Error::INVALID_VALUE)?;
        in_runtime()?.streams.set_attribute(stream, attribute, value)
    }

    fn cudaCtxResetPersistingL2Cache() {
        in_runtime().map(drop)
    }

    fn cudaStreamBeginCapture | cudaStreamBeginCapture_ptsz(stream: usize, mode: c_int) {
        in_runtime()?.begin_capture(stream, mode, None, Vec::new())
    }

    fn cudaStreamBeginCaptureToGraph | cudaStreamBeginCaptureToGraph_ptsz(
        stream: usize,
        graph: usize,
        after: *const usize,
        _edges: *const c_void,
        count: usize,
        mode: c_int,
    ) {
        in_runtime()?.begin_capture(stream, mode, Some(graph), array(after, count)?.to_vec())
    }

    fn cudaStreamEndCapture | cudaStreamEndCapture_ptsz(stream: usize, graph: *mut usize) {
        match in_runtime()?.end_capture(stream) {
            Ok(captured) => put(graph, captured),
            Err(error) => {
                offer(graph, 0);
                Err(error)
            }
        }
    }

    fn cudaStreamIsCapturing | cudaStreamIsCapturing_ptsz(stream: usize, status: *mut c_int) {
        put(status, in_runtime()?.capture_state(stream)?.0)
    }

    fn cudaStreamGetCaptureInfo
        | cudaStreamGetCaptureInfo_ptsz
        | cudaStreamGetCaptureInfo_v3
        | cudaStreamGetCaptureInfo_v3_ptsz(
        stream: usize,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut usize,
        after: *mut *const usize,
        edges: *mut *const c_void,
        count: *mut usize,
    ) {
        let asked = Answers { id, graph, after, count };
        if capture_info(in_runtime()?, stream, status, asked)? {
            offer(edges, std::ptr::null());
        }
        Ok(())
    }

    fn cudaStreamGetCaptureInfo_v2 | cudaStreamGetCaptureInfo_v2_ptsz(
        stream: usize,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut usize,
        after: *mut *const usize,
        count: *mut usize,
    ) {
        capture_info(in_runtime()?, stream, status, Answers { id, graph, after, count })?;
        Ok(())
    }

    fn cudaStreamUpdateCaptureDependencies_v2 | cudaStreamUpdateCaptureDependencies_v2_ptsz(
        stream: usize,
        nodes: *const usize,
        _edges: *const c_void,
        count: usize,
        flags: c_uint,
    ) {
        in_runtime()?.set_tail(stream, array(nodes, count)?, flags == 0)
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        let wanted = *mode.as_ref().ok_or(Error::INVALID_VALUE)?;
        put(mode, exchange_mode(wanted)?)
    }
}
