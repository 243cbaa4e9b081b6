//! The least time some work can take on a device: the one definition of it.

use ptx_machine::Machine;

use super::Micros;

/// What work keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Tensor,
    Memory,
}

/// What is asked of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    pub tensor_flops: f64,
    pub memory_bytes: f64,
}

/// The most a device does of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    pub clock_mhz: f64,
    /// Per clock, all SMs together.
    pub tensor_flops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
}

impl Ceiling {
    /// Of a device whose SMs do so many operations a clock; `None` where one
    /// of the figures is not known.
    pub fn new(sms: u32, tensor_flops: f64, clock_mhz: f64, bandwidth: f64) -> Option<Self> {
        let tensor_flops = f64::from(sms) * tensor_flops;
        let known = tensor_flops * clock_mhz > 0.0 && bandwidth > 0.0;
        known.then_some(Self {
            clock_mhz,
            tensor_flops,
            bandwidth,
        })
    }

    /// What modelled times are held to: what they are made of, at the clock
    /// that is left when the tensor cores never rest.
    pub fn modelled(machine: &Machine) -> Self {
        Self {
            clock_mhz: machine.clock_mhz - machine.clock_drop_mhz,
            tensor_flops: machine.sms * tensor_flops(machine),
            bandwidth: machine.memory_bandwidth,
        }
    }

    /// The same with SMs that do so many operations a clock.
    pub(crate) fn with_tensor_flops(self, sms: u32, tensor_flops: f64) -> Self {
        Self {
            tensor_flops: f64::from(sms) * tensor_flops,
            ..self
        }
    }

    /// The same at another SM clock, where one is given.
    pub fn at(self, clock_mhz: Option<f64>) -> Self {
        Self {
            clock_mhz: clock_mhz.unwrap_or(self.clock_mhz),
            ..self
        }
    }

    /// How long the resource that is busy longest needs, and which it is.
    pub fn floor(&self, work: &Work) -> (Micros, Resource) {
        let memory = work.memory_bytes / self.bandwidth * 1e6;
        let tensor = work.tensor_flops / (self.tensor_flops * self.clock_mhz);
        match tensor >= memory {
            true => (Micros(tensor), Resource::Tensor),
            false => (Micros(memory), Resource::Memory),
        }
    }
}

/// Dense fp16 operations a clock of a machine's SM: those of a column of a
/// wgmma m64k16 over its cycles.
pub fn tensor_flops(machine: &Machine) -> f64 {
    f64::from(2 * 64 * 16) / machine.wgmma_column
}

/// Dense fp4 operations a clock of its SM: those of a column of tensor memory
/// over its cycles.
pub(crate) fn tmem_flops(machine: &Machine) -> Option<f64> {
    Some(f64::from(2 * 128 * 64) / machine.tmem?.tmem_product_column)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two products of 4-bit numbers with their scales.
    fn dense(m: u32, n: u32, k: u32) -> Work {
        let [m, n, k] = [m, n, k].map(f64::from);
        Work {
            tensor_flops: 4.0 * m * n * k,
            memory_bytes: (m + 2.0 * n) * k * 9.0 / 16.0 + 2.0 * m * n,
        }
    }

    #[test]
    fn the_floor_of_the_largest_dense_shape() {
        let h200 = Ceiling::new(132, 4096.0, 1980.0, 4.8e12).unwrap();
        let (floor, bound) = h200.floor(&dense(512, 4096, 7168));
        assert_eq!(bound, Resource::Tensor);
        assert!((floor.0 - 56.2).abs() < 0.5, "{floor}");
        let (slower, _) = h200.at(Some(990.0)).floor(&dense(512, 4096, 7168));
        assert!((slower.0 - 2.0 * floor.0).abs() < 1e-9, "{slower}");
        let (_, bound) = h200.floor(&dense(1, 4096, 7168));
        assert_eq!(bound, Resource::Memory);
    }

    #[test]
    fn a_device_nobody_knows_has_no_ceiling() {
        assert_eq!(Ceiling::new(132, 0.0, 1980.0, 4.8e12), None);
        assert_eq!(Ceiling::new(132, 4096.0, f64::NAN, 4.8e12), None);
        assert_eq!(Ceiling::new(132, 4096.0, 1980.0, 0.0), None);
    }
}
