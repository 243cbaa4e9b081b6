//! The least time some work can take on a device: the one definition of it.

use super::{Micros, Model, Shape};

/// What work keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Tensor,
    Issue,
    Mufu,
    Shared,
    L2,
    Memory,
}

impl Resource {
    /// Its name in run files.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Issue => "issue",
            Self::Mufu => "mufu",
            Self::Shared => "shared",
            Self::L2 => "L2",
            Self::Memory => "memory",
        }
    }
}

/// What is asked of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    pub tensor_flops: f64,
    /// Warp instructions.
    pub instructions: f64,
    /// Lanes of special functions.
    pub mufu: f64,
    pub shared_bytes: f64,
    pub l2_bytes: f64,
    pub memory_bytes: f64,
}

impl Work {
    /// What no design can do without: each operation and each byte once.
    pub(crate) fn least(shape: &Shape) -> Self {
        Self {
            tensor_flops: shape.flops(),
            memory_bytes: shape.min_bytes().0 as f64,
            ..Self::default()
        }
    }
}

/// The most a device does of each; what is not known is no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ceiling {
    pub clock_mhz: f64,
    /// Per clock, all SMs together, down to `shared_bytes`.
    pub tensor_flops: f64,
    instructions: f64,
    mufu: f64,
    shared_bytes: f64,
    /// Bytes per second.
    l2_bandwidth: f64,
    pub bandwidth: f64,
}

impl Ceiling {
    /// Of a device whose SMs do so many operations a clock; `None` where one
    /// of the figures is not known.
    pub(crate) fn new(sms: u32, tensor_flops: f64, clock_mhz: f64, bandwidth: f64) -> Option<Self> {
        let tensor_flops = f64::from(sms) * tensor_flops;
        let known = tensor_flops * clock_mhz > 0.0 && bandwidth > 0.0;
        known.then_some(Self {
            clock_mhz,
            tensor_flops,
            instructions: f64::INFINITY,
            mufu: f64::INFINITY,
            shared_bytes: f64::INFINITY,
            l2_bandwidth: f64::INFINITY,
            bandwidth,
        })
    }

    pub(crate) fn modelled(sms: u32, model: &Model) -> Self {
        let sms = f64::from(sms);
        Self {
            clock_mhz: model.clock_mhz,
            tensor_flops: sms * model.tensor_flops,
            instructions: sms * model.issue,
            mufu: sms * model.mufu,
            shared_bytes: sms * model.shared_bytes,
            l2_bandwidth: model.l2_bandwidth,
            bandwidth: model.bandwidth,
        }
    }

    /// The same at another SM clock, where one is given.
    pub(crate) fn at(self, clock_mhz: Option<f64>) -> Self {
        Self {
            clock_mhz: clock_mhz.unwrap_or(self.clock_mhz),
            ..self
        }
    }

    /// How long the resource that is busy longest needs, and which it is.
    pub(crate) fn floor(&self, work: &Work) -> (Micros, Resource) {
        let clocked = |amount: f64, rate: f64| amount / (rate * self.clock_mhz);
        let moved = |bytes: f64, bandwidth: f64| bytes / bandwidth * 1e6;
        let needs = [
            (moved(work.memory_bytes, self.bandwidth), Resource::Memory),
            (moved(work.l2_bytes, self.l2_bandwidth), Resource::L2),
            (
                clocked(work.shared_bytes, self.shared_bytes),
                Resource::Shared,
            ),
            (clocked(work.mufu, self.mufu), Resource::Mufu),
            (
                clocked(work.instructions, self.instructions),
                Resource::Issue,
            ),
            (
                clocked(work.tensor_flops, self.tensor_flops),
                Resource::Tensor,
            ),
        ];
        let longer = |longest: (f64, Resource), next: (f64, Resource)| match next.0 >= longest.0 {
            true => next,
            false => longest,
        };
        let (micros, resource) = needs.into_iter().fold((0.0, Resource::Memory), longer);
        (Micros(micros), resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Group;

    fn dense(m: u32, n: u32, k: u32) -> Work {
        Work::least(&Shape {
            name: "dense".to_owned(),
            groups: vec![Group { m, n, k }],
        })
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
