use crate::domain::{Micros, Shape};
use crate::record::schema::Device;

/// The least time a shape can take on a device: its operations at the highest
/// clock, or its bytes once through memory, whichever is longer. A sample
/// below it did not do the work.
pub fn floor(shape: &Shape, device: &Device) -> Micros {
    let rate = f64::from(device.sms) * device.tensor_flops_per_clock * device.clock_mhz;
    let compute = shape.flops() / rate;
    let memory = shape.min_bytes().0 as f64 / device.bandwidth * 1e6;
    let longest = compute.max(memory);
    Micros(if longest.is_finite() { longest } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Bytes, Group};
    use crate::record::schema::Timing;

    #[test]
    fn h200_needs_28_micros_for_the_first_dense_shape() {
        let device = Device {
            backend: "cuda".to_owned(),
            timing: Timing::Measured,
            name: "NVIDIA H200".to_owned(),
            uuid: None,
            driver: None,
            sms: 132,
            l2: Bytes(60 << 20),
            memory: Bytes(139 << 30),
            clock_mhz: 1980.0,
            bandwidth: 4.8e12,
            tensor_flops_per_clock: 4096.0,
            smem_per_block: Bytes(232_448),
        };
        let shape = Shape {
            name: "256×4096×7168".to_owned(),
            groups: vec![Group {
                m: 256,
                n: 4096,
                k: 7168,
            }],
        };
        let Micros(least) = floor(&shape, &device);
        assert!((28.0..28.2).contains(&least), "{least}");
    }
}
