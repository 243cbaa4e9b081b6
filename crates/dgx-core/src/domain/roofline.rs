//! The least time some work can take on a device: the one definition of it.

use std::collections::BTreeMap;

use ptx_machine::Machine;

use super::Micros;

/// A resource that work occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Tensor,
    Memory,
}

/// Types with their own tensor-core rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rate {
    E2m1,
    E4m3,
    I8,
    F16,
    Tf32,
    F64,
}

impl Rate {
    /// The minimum time of an operation, in operations of fp16. NVIDIA's data sheets: twice the
    /// rate at half the width, on Hopper and Blackwell. Types without a unit on a chip count as
    /// fp16. f64 has at most 1/16 of fp16's rate, but can be emulated with products of i8: 1/8.
    fn in_fp16(self, fp4: bool) -> f64 {
        match self {
            Self::E2m1 if fp4 => 0.25,
            Self::E4m3 | Self::I8 => 0.5,
            Self::E2m1 | Self::F16 => 1.0,
            Self::Tf32 => 2.0,
            Self::F64 => 8.0,
        }
    }
}

/// The demand on each resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceDemand {
    /// Operations of matrix products, a multiply-add counted as two.
    pub products: BTreeMap<Rate, f64>,
    pub memory_bytes: f64,
}

impl ResourceDemand {
    pub fn tensor_flops(&self) -> f64 {
        self.products.values().sum()
    }
}

/// The peak rate of each resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    pub clock_mhz: f64,
    /// Per clock, all SMs together, in the narrowest float of the tensor cores that `fp4` allows:
    /// fp4, or fp16.
    pub tensor_flops: f64,
    /// Whether the chip multiplies fp4.
    pub fp4: bool,
    /// Bytes per second.
    pub bandwidth: f64,
}

impl Ceiling {
    /// `None` if one of the figures is not known.
    pub fn known(self) -> Option<Self> {
        let known = self.tensor_flops * self.clock_mhz > 0.0 && self.bandwidth > 0.0;
        known.then_some(self)
    }

    /// The bound of modelled times: the numbers they are computed from, at the clock that remains
    /// while the tensor cores are always busy.
    pub fn modelled(machine: &Machine) -> Self {
        Self {
            clock_mhz: machine.clock_mhz - machine.clock_drop_mhz,
            tensor_flops: machine.sms * tensor_flops(machine),
            fp4: false,
            bandwidth: machine.memory_bandwidth,
        }
    }

    /// The same with SMs that execute this many fp4 operations a clock.
    pub(crate) fn with_fp4(self, sms: u32, tensor_flops: f64) -> Self {
        Self {
            tensor_flops: f64::from(sms) * tensor_flops,
            fp4: true,
            ..self
        }
    }

    /// The same at another SM clock, if one is given.
    pub fn at(self, clock_mhz: Option<f64>) -> Self {
        Self {
            clock_mhz: clock_mhz.unwrap_or(self.clock_mhz),
            ..self
        }
    }

    /// Operations per clock of the tensor cores on this work.
    pub fn tensor_rate(&self, work: &ResourceDemand) -> f64 {
        let peak = match self.fp4 {
            true => Rate::E2m1,
            false => Rate::F16,
        };
        let in_peak =
            |(rate, flops): (&Rate, &f64)| flops * rate.in_fp16(self.fp4) / peak.in_fp16(self.fp4);
        let slowed: f64 = work.products.iter().map(in_peak).sum();
        match slowed > 0.0 {
            true => self.tensor_flops * work.tensor_flops() / slowed,
            false => self.tensor_flops,
        }
    }

    /// The time of the resource that is busy longest, and which it is.
    pub fn floor(&self, work: &ResourceDemand) -> (Micros, Resource) {
        let memory = work.memory_bytes / self.bandwidth * 1e6;
        let tensor = work.tensor_flops() / (self.tensor_rate(work) * self.clock_mhz);
        match tensor >= memory {
            true => (Micros(tensor), Resource::Tensor),
            false => (Micros(memory), Resource::Memory),
        }
    }
}

/// Dense fp16 operations per clock of a machine's SM: those of a column of a wgmma m64k16 over its
/// cycles.
pub fn tensor_flops(machine: &Machine) -> f64 {
    f64::from(2 * 64 * 16) / machine.wgmma_column
}

/// Dense fp4 operations per clock of its SM: those of a column of tensor memory over its cycles.
pub(crate) fn tmem_flops(machine: &Machine) -> Option<f64> {
    Some(f64::from(2 * 128 * 64) / machine.tmem?.tmem_product_column)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Ceiling = Ceiling {
        clock_mhz: 1980.0,
        tensor_flops: 132.0 * 4096.0,
        fp4: false,
        bandwidth: 4.8e12,
    };

    /// The work of two products of 4-bit numbers with their scales.
    fn dense(m: u32, n: u32, k: u32) -> ResourceDemand {
        let [m, n, k] = [m, n, k].map(f64::from);
        ResourceDemand {
            products: BTreeMap::from([(Rate::E2m1, 4.0 * m * n * k)]),
            memory_bytes: (m + 2.0 * n) * k * 9.0 / 16.0 + 2.0 * m * n,
        }
    }

    #[test]
    fn the_floor_of_the_largest_dense_shape() {
        let (floor, bound) = H200.floor(&dense(512, 4096, 7168));
        assert_eq!(bound, Resource::Tensor);
        assert!((floor.0 - 56.2).abs() < 0.5, "{floor}");
        let (slower, _) = H200.at(Some(990.0)).floor(&dense(512, 4096, 7168));
        assert!((slower.0 - 2.0 * floor.0).abs() < 1e-9, "{slower}");
        let (_, bound) = H200.floor(&dense(1, 4096, 7168));
        assert_eq!(bound, Resource::Memory);
    }

    #[test]
    fn the_floor_is_that_of_the_type() {
        let of = |ceiling: Ceiling, rate: Rate| {
            let products = BTreeMap::from([(rate, 1e12)]);
            let memory_bytes = 0.0;
            let (floor, _) = ceiling.floor(&ResourceDemand {
                products,
                memory_bytes,
            });
            floor.0
        };
        let fp16 = of(H200, Rate::F16);
        assert_eq!(of(H200, Rate::E4m3), fp16 / 2.0);
        assert_eq!(of(H200, Rate::I8), fp16 / 2.0);
        assert_eq!(of(H200, Rate::E2m1), fp16);
        assert_eq!(of(H200, Rate::Tf32), fp16 * 2.0);
        let b200 = H200.with_fp4(132, 4.0 * 4096.0);
        assert_eq!(of(b200, Rate::E2m1), fp16 / 4.0);
        assert_eq!(of(b200, Rate::F16), fp16);
    }

    #[test]
    fn a_device_nobody_knows_has_no_ceiling() {
        assert_eq!(H200.known(), Some(H200));
        let tensor_flops = 0.0;
        assert_eq!(
            Ceiling {
                tensor_flops,
                ..H200
            }
            .known(),
            None
        );
        assert_eq!(H200.at(Some(f64::NAN)).known(), None);
        let bandwidth = 0.0;
        assert_eq!(Ceiling { bandwidth, ..H200 }.known(), None);
    }
}
