//! The least time a shape can take on a device: the one definition of it.

use crate::domain::{Micros, Shape};
use crate::record::Run;
use crate::record::schema::Device;

/// What a device can do at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    pub sms: u32,
    /// Tensor operations per clock, all SMs together.
    pub flops_per_clock: f64,
    /// The highest.
    pub clock_mhz: f64,
    pub bytes_per_micro: f64,
}

impl Ceiling {
    /// By the vendor's figures.
    pub const H200: Self = Self {
        sms: 132,
        flops_per_clock: 132.0 * 4096.0,
        clock_mhz: 1980.0,
        bytes_per_micro: 4.8e6,
    };

    /// `None` where the record does not say what the device can do.
    pub fn of(device: &Device) -> Option<Self> {
        let ceiling = Self {
            sms: device.sms,
            flops_per_clock: f64::from(device.sms) * device.tensor_flops_per_clock,
            clock_mhz: device.clock_mhz,
            bytes_per_micro: device.bandwidth / 1e6,
        };
        let known = ceiling.flops_per_clock * ceiling.clock_mhz > 0.0;
        (known && ceiling.bytes_per_micro > 0.0).then_some(ceiling)
    }

    /// What the tensor cores need for the operations at this clock, or what
    /// the memory needs for each byte once, whichever is longer; and which.
    pub fn floor(&self, shape: &Shape, clock_mhz: Option<f64>) -> (Micros, &'static str) {
        let clock = clock_mhz.unwrap_or(self.clock_mhz);
        let tensor = shape.flops() / (self.flops_per_clock * clock);
        let memory = shape.min_bytes().0 as f64 / self.bytes_per_micro;
        match tensor >= memory {
            true => (Micros(tensor), "tensor cores"),
            false => (Micros(memory), "memory"),
        }
    }
}

/// The floor of a shape on a device, at the clock of the samples where it was
/// read; `None` where the record does not say what the device can do.
pub fn floor(device: &Device, shape: &Shape, clock_mhz: Option<f64>) -> Option<Micros> {
    Some(Ceiling::of(device)?.floor(shape, clock_mhz).0)
}

/// The floor over the time taken: 1 is the best there can be.
pub fn share(run: &Run, shape: &str, time: Micros, clock_mhz: Option<f64>) -> Option<f64> {
    let floor = floor(&run.header.device, run.shape(shape)?, clock_mhz)?;
    Some(floor.0 / time.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::synthetic::dense;

    #[test]
    fn the_floor_of_the_largest_dense_shape() {
        let shape = dense(512, 4096, 7168);
        let (floor, bound) = Ceiling::H200.floor(&shape, None);
        assert_eq!(bound, "tensor cores");
        assert!((floor.0 - 56.2).abs() < 0.5, "{floor}");
        let (slower, _) = Ceiling::H200.floor(&shape, Some(990.0));
        assert!((slower.0 - 2.0 * floor.0).abs() < 1e-9, "{slower}");
    }
}
