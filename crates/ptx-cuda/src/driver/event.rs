//! Events.

use std::ffi::c_uint;

use crate::c::put;
use crate::call::driver;
use crate::context::in_context;

driver! {
    fn cuEventCreate(event: *mut usize, flags: c_uint) {
        put(event, in_context()?.make_event(flags)?)
    }

    fn cuEventRecord | cuEventRecord_ptsz(event: usize, stream: usize) {
        in_context()?.record_in(stream, event, 0)
    }

    fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz(
        event: usize,
        stream: usize,
        flags: c_uint,
    ) {
        in_context()?.record_in(stream, event, flags)
    }

    fn cuEventQuery(event: usize) {
        in_context()?.check_event(event)
    }

    fn cuEventSynchronize(event: usize) {
        in_context()?.check_event(event)
    }

    fn cuEventDestroy_v2(event: usize) {
        in_context()?.events.remove(event).map(drop)
    }

    fn cuEventElapsedTime | cuEventElapsedTime_v2(millis: *mut f32, from: usize, to: usize) {
        put(millis, in_context()?.elapsed(from, to)?)
    }
}
