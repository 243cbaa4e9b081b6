//! What the driver checks before the first instruction.

use super::{Launch, LaunchError};
use crate::exec::cluster::residency;
use crate::exec::cluster::residency::{Demand, Residency};
use crate::exec::storage::bytes::AlignedBytes;
use crate::module::Module;
use crate::op::{Program, SHARED_BASE};

impl Launch {
    pub(super) fn program<'m>(&self, module: &'m Module) -> Result<&'m Program, LaunchError> {
        if let Some(program) = module.kernels.get(&self.kernel) {
            return Ok(program);
        }
        let name = self.kernel.clone();
        if let Some(reason) = module.refused.get(&name) {
            let reason = Box::new(reason.clone());
            return Err(LaunchError::Refused { name, reason });
        }
        let names = module.kernels.keys().chain(module.refused.keys());
        let known = names.map(String::as_str).collect::<Vec<_>>().join(", ");
        Err(LaunchError::NoKernel { name, known })
    }

    pub(super) fn pack_params(&self, program: &Program) -> Result<AlignedBytes, LaunchError> {
        let values = &self.params.values;
        if values.len() != program.params.len() {
            return Err(LaunchError::ParamCount {
                kernel: self.kernel.clone(),
                expected: program.params.len(),
                given: values.len(),
            });
        }
        let mut bytes =
            AlignedBytes::filled((program.param_bytes as usize).next_multiple_of(16), 0);
        for (index, (value, param)) in values.iter().zip(&program.params).enumerate() {
            let at = param.offset as usize;
            match bytes.get_mut(at..at + param.size as usize) {
                Some(place) if place.len() == value.len() => place.copy_from_slice(value),
                _ => {
                    return Err(LaunchError::ParamSize {
                        kernel: self.kernel.clone(),
                        index,
                        name: param.name.clone(),
                        expected: param.size,
                        given: value.len(),
                    });
                }
            }
        }
        Ok(bytes)
    }

    /// Checks grid, block and cluster; the cluster size to use.
    pub(super) fn check_shape(&self, program: &Program) -> Result<Option<[u32; 3]>, LaunchError> {
        let wrong = |reason: String| {
            Err(LaunchError::Shape {
                kernel: self.kernel.clone(),
                reason,
            })
        };
        let [gx, gy, gz] = self.grid;
        let [bx, by, bz] = self.block;
        if self.grid.contains(&0) || self.block.contains(&0) {
            return wrong(format!(
                "grid {:?} and block {:?} must not contain 0",
                self.grid, self.block
            ));
        }
        if gx > 0x7fff_ffff || gy > 65_535 || gz > 65_535 {
            return wrong(format!(
                "grid {:?} exceeds 2147483647 × 65535 × 65535",
                self.grid
            ));
        }
        let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
        if bx > 1024 || by > 1024 || bz > 64 || threads > 1024 {
            return wrong(format!(
                "block {:?} exceeds 1024 × 1024 × 64 or 1024 threads in all",
                self.block
            ));
        }
        if let Some(required) = program.required_block.filter(|r| *r != self.block) {
            return wrong(format!(
                "block {:?} differs from its .reqntid {required:?}",
                self.block
            ));
        }
        let product = |d: [u32; 3]| d.iter().map(|&x| u64::from(x)).product::<u64>();
        if let Some(most) = program.max_block.filter(|m| product(*m) < threads) {
            return wrong(format!(
                "block {:?} exceeds its .maxntid {most:?}",
                self.block
            ));
        }
        let cluster = match (self.cluster, program.cluster) {
            (Some(given), Some(fixed)) if given != fixed => {
                return wrong(format!(
                    "cluster {given:?} differs from its .reqnctapercluster {fixed:?}"
                ));
            }
            (given, fixed) => given.or(fixed),
        };
        if let Some(cluster) = cluster {
            let most = self.config.limits.max_cluster;
            if cluster.contains(&0) || product(cluster) > u64::from(most) {
                return wrong(format!(
                    "cluster {cluster:?}: a cluster has 1 to {most} CTAs"
                ));
            }
            if (0..3).any(|i| !self.grid[i].is_multiple_of(cluster[i])) {
                return wrong(format!(
                    "grid {:?} is not a multiple of its cluster {cluster:?}",
                    self.grid
                ));
            }
        }
        Ok(cluster)
    }

    pub(super) fn check_target(&self, module: &Module) -> Result<(), LaunchError> {
        let limits = &self.config.limits;
        match limits.runs(&module.target) {
            true => Ok(()),
            false => Err(LaunchError::Target {
                target: module.target.clone(),
                capability: format!("{}.{}", limits.capability / 10, limits.capability % 10),
            }),
        }
    }

    /// How many CTAs a multiprocessor holds at once, and how many clusters the device.
    pub fn resident(&self, module: &Module) -> Result<(u32, u64), LaunchError> {
        let program = self.program(module)?;
        let cluster = self.check_shape(program)?;
        let residency = Residency::of(&self.config.limits, &self.demand(program, cluster));
        Ok((residency.per_sm, residency.clusters))
    }

    fn demand(&self, program: &Program, cluster: Option<[u32; 3]>) -> Demand {
        let end = program.shared_dynamic_start.max(program.shared_static_end);
        Demand {
            threads: self.block.iter().product(),
            shared: end.saturating_add(self.shared_bytes),
            registers: self.registers,
            cluster: cluster.map_or(1, |sizes| sizes.iter().product()),
        }
    }

    /// Checks that a CTA fits on a multiprocessor, and a cooperative grid on the device.
    pub(super) fn check_residency(
        &self,
        program: &Program,
        cluster: Option<[u32; 3]>,
    ) -> Result<(), LaunchError> {
        let limits = &self.config.limits;
        let threads: u32 = self.block.iter().product();
        let residency = Residency::of(limits, &self.demand(program, cluster));
        if let (0, Some(each)) = (residency.per_sm, self.registers) {
            let of_cta = residency::registers_of_warp(each) * threads.div_ceil(32);
            return Err(LaunchError::Registers {
                kernel: self.kernel.clone(),
                needed: of_cta.into(),
                threads,
                each,
                limit: limits.registers_per_sm,
            });
        }
        let ctas = self.grid.iter().map(|&n| u64::from(n)).product();
        if self.cooperative && ctas > residency.ctas {
            return Err(LaunchError::TooLargeToCooperate {
                kernel: self.kernel.clone(),
                ctas,
                resident: residency.ctas,
                per_sm: residency.per_sm,
                sms: limits.sms,
                limit: residency.limit.to_owned(),
            });
        }
        Ok(())
    }

    pub(super) fn check_shared(&self, program: &Program) -> Result<(), LaunchError> {
        let end = program.shared_dynamic_start.max(program.shared_static_end);
        let fixed = end.saturating_sub(SHARED_BASE);
        let needed = u64::from(fixed) + u64::from(self.shared_bytes);
        let limit = self.config.limits.shared_per_cta;
        match needed > u64::from(limit) {
            true => Err(LaunchError::SharedMemory {
                kernel: self.kernel.clone(),
                needed,
                fixed,
                dynamic: self.shared_bytes,
                limit,
            }),
            false => Ok(()),
        }
    }
}
