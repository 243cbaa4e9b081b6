//! Events.

use std::ffi::c_uint;

use crate::c::put;
use crate::call::runtime;
use crate::context::in_runtime;

runtime! {
    fn cudaEventCreate(event: *mut usize) {
        put(event, in_runtime()?.make_event(0)?)
    }

    fn cudaEventCreateWithFlags(event: *mut usize, flags: c_uint) {
        put(event, in_runtime()?.make_event(flags)?)
    }

    fn cudaEventRecord | cudaEventRecord_ptsz(event: usize, stream: usize) {
        in_runtime()?.record_in(stream, event, 0)
    }

    fn cudaEventRecordWithFlags | cudaEventRecordWithFlags_ptsz(
        event: usize,
        stream: usize,
        flags: c_uint,
    ) {
        in_runtime()?.record_in(stream, event, flags)
    }

    fn cudaEventQuery(event: usize) {
        in_runtime()?.check_event(event)
    }

    fn cudaEventSynchronize(event: usize) {
        in_runtime()?.check_event(event)
    }

    fn cudaEventDestroy(event: usize) {
        in_runtime()?.events.remove(event).map(drop)
    }

    fn cudaEventElapsedTime | cudaEventElapsedTime_v2(millis: *mut f32, from: usize, to: usize) {
        put(millis, in_runtime()?.elapsed(from, to)?)
    }
}
