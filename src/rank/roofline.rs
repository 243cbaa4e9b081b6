//! The least time a shape can take on a device.

use crate::domain::{Micros, Shape};
use crate::record::Run;
use crate::record::schema::Device;

/// The floor: what the tensor cores need for the operations, or what the
/// memory needs for each byte once, whichever is longer. `None` where the
/// record does not say what the device can do.
pub fn floor(device: &Device, shape: &Shape, clock_mhz: Option<f64>) -> Option<Micros> {
    let clock = clock_mhz.unwrap_or(device.clock_mhz);
    let per_micro = f64::from(device.sms) * device.tensor_flops_per_clock * clock;
    let bytes_per_micro = device.bandwidth / 1e6;
    if !(per_micro > 0.0 && bytes_per_micro > 0.0) {
        return None;
    }
    let tensor = shape.flops() / per_micro;
    let memory = shape.min_bytes().0 as f64 / bytes_per_micro;
    Some(Micros(tensor.max(memory)))
}

/// The floor over the time taken: 1 is the best there can be.
pub fn share(run: &Run, shape: &str, time: Micros, clock_mhz: Option<f64>) -> Option<f64> {
    let floor = floor(&run.header.device, run.shape(shape)?, clock_mhz)?;
    Some(floor.0 / time.0)
}
