//! Turns a round and a catalog into a plan: which contenders run on which shapes, which images must
//! be compiled, and every number of every launch. Nothing here compiles or runs.

mod call;
mod deal;
mod evaluate;
mod pick;
mod resolve;
mod shards;
mod stamps;
mod triton;
mod unit;

use std::collections::BTreeMap;

pub use call::ScratchSize;
pub use call::TileLists;
pub use call::{LaunchGeometry, MapGeometry, OperatorCall};
#[cfg(test)]
pub(crate) use call::{MapLayout, ScratchLayout};
pub use evaluate::Known;
pub use pick::{Offer, offers};
pub use resolve::entrants;
pub use shards::{cost, imbalance, shards};
pub use stamps::Stamping;
pub(crate) use stamps::{HEAD_BYTES, RECORD_BYTES, STAMPS};
pub use triton::TritonRequest;
pub use unit::{CompilerKind, TranslationUnit};

use crate::catalog::{Catalog, Contender};
use dgx_core::config::{Round, target};
use dgx_core::diagnostic::InputError;
use dgx_core::domain::{Bytes, ContenderId, Device, Shape};
use dgx_core::expr::Steps;

/// The limits of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanTarget<'a> {
    pub device: &'a Device,
    /// Memory of the host for data and expected results, if it is limited.
    pub host: Option<Bytes>,
}

impl<'a> PlanTarget<'a> {
    /// For planning without running.
    pub fn of(device: &'a Device) -> Self {
        Self { device, host: None }
    }

    /// Why code for `arch` does not run here, and what can emulate it.
    fn refusal(&self, arch: &str) -> Option<String> {
        let reason = self.device.chip.refuses(arch)?;
        let other = target::built_in().find(|(_, device)| device.chip.refuses(arch).is_none());
        Some(match other {
            Some((name, _)) => format!("{reason}; --target {name} emulates it"),
            None => reason,
        })
    }
}

/// Everything that a sweep will do, decided before anything is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The device it is planned for.
    pub device: Device,
    pub round: Round,
    pub baseline: ContenderId,
    pub contenders: Vec<Contender>,
    pub shapes: Vec<Shape>,
    /// Every contender on every shape, contender by contender.
    pub cells: Vec<PlannedCell>,
    pub builds: Vec<BuildSpec>,
}

/// One contender on one shape, by their indices in the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    pub contender: usize,
    pub shape: usize,
    pub outcome: PlanOutcome,
}

impl PlannedCell {
    /// The index of its build, and its call, if it runs.
    pub fn run(&self) -> Option<(usize, &OperatorCall)> {
        match &self.outcome {
            PlanOutcome::Run { build, call } => Some((*build, call)),
            PlanOutcome::Unsupported { .. } | PlanOutcome::Broken(_) => None,
        }
    }

    /// Why the variant does not support the shape, if so.
    pub fn unsupported(&self) -> Option<&str> {
        match &self.outcome {
            PlanOutcome::Unsupported { reason } => Some(reason),
            PlanOutcome::Run { .. } | PlanOutcome::Broken(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum PlanOutcome {
    Run {
        /// Index in [`Plan::builds`].
        build: usize,
        call: OperatorCall,
    },
    /// The variant rules this shape out.
    Unsupported { reason: String },
    /// The variant's front matter is invalid, in general or on this shape.
    Broken(InputError),
}

/// One image to compile; contenders whose constants depend on the shape have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildSpec {
    pub contender: ContenderId,
    /// Parameters, tuned choices and constants alone, for the record.
    pub constants: BTreeMap<String, i64>,
    pub unit: TranslationUnit,
    /// Names of the shapes this image serves.
    pub shapes: Vec<String>,
}

impl Plan {
    /// Resolves the round's names against the catalog and evaluates every cell. A mistake in a
    /// variant fails its own cells, unless it is the baseline.
    pub fn new(round: Round, catalog: &Catalog, target: &PlanTarget) -> Result<Self, InputError> {
        Self::within(round, catalog, target, Steps::MOST_IN_ALL)
    }

    /// Limits the evaluation steps of every contender over all shapes.
    fn within(
        mut round: Round,
        catalog: &Catalog,
        target: &PlanTarget,
        steps: u64,
    ) -> Result<Self, InputError> {
        let catalog = &catalog.of(&round.operator);
        let (contenders, baseline) = resolve::contenders(&round, catalog, target.device.chip)?;
        resolve::check_memory(&round, target)?;
        resolve::check_size(&round, contenders.len())?;
        resolve::exact_data(&mut round)?;
        // Blackwell's tensor cores read scales as ue4m3.
        let unsigned = target.device.chip.multiplies_fp4();
        let measured = &mut round.measurement.distribution;
        for distribution in round.validation.distributions.iter_mut().chain([measured]) {
            *distribution = distribution.with_scales(unsigned);
        }
        let mut plan = Self {
            device: target.device.clone(),
            baseline,
            contenders,
            shapes: round.shapes.clone(),
            cells: Vec::new(),
            builds: Vec::new(),
            round,
        };
        let known = Known::default();
        for contender in 0..plan.contenders.len() {
            let mut left = steps;
            for shape in 0..plan.shapes.len() {
                let granted = left.min(Steps::MOST);
                let steps = Steps::new(granted);
                let found = plan.outcome(contender, shape, target, &known, &steps);
                left -= granted - steps.left();
                let outcome = match found {
                    Ok(outcome) => outcome,
                    Err(why) if plan.contenders[contender].id == plan.baseline => return Err(why),
                    Err(why) => PlanOutcome::Broken(why),
                };
                plan.cells.push(PlannedCell {
                    contender,
                    shape,
                    outcome,
                });
            }
        }
        Ok(plan)
    }

    /// Whether any contender runs on the shape at this index.
    pub fn runs(&self, shape: usize) -> bool {
        let mut cells = self.cells.iter().filter(|cell| cell.shape == shape);
        cells.any(|cell| cell.run().is_some())
    }

    /// The first mistake of each variant that has one.
    pub fn mistakes(&self) -> Vec<&InputError> {
        let mut mistaken: Vec<&str> = Vec::new();
        let found = self.cells.iter().filter_map(|cell| match &cell.outcome {
            PlanOutcome::Broken(why) => Some((&*self.contenders[cell.contender].variant.name, why)),
            _ => None,
        });
        found
            .filter(|(name, _)| {
                let new = !mistaken.contains(name);
                mistaken.push(name);
                new
            })
            .map(|(_, why)| why)
            .collect()
    }

    fn outcome(
        &mut self,
        contender: usize,
        shape: usize,
        target: &PlanTarget,
        known: &Known,
        steps: &Steps,
    ) -> Result<PlanOutcome, InputError> {
        let (entrant, shape) = (&self.contenders[contender], &self.shapes[shape]);
        if let Some(why) = &entrant.variant.broken {
            return Err(why.clone());
        }
        let (contender, found) = match pick::picked(entrant, shape, target, known, steps)? {
            Ok(picked) => picked,
            Err(reason) => return Ok(PlanOutcome::Unsupported { reason }),
        };
        if let Some(reason) = target.refusal(&contender.variant.arch) {
            return Ok(PlanOutcome::Unsupported { reason });
        }
        let values = match found {
            Some(values) => values,
            None => known.values(contender, shape, target, steps)?,
        };
        let call = match evaluate::call(&contender.variant, shape, target, &values, steps)? {
            Ok(call) => call,
            Err(reason) if entrant.id != contender.id => {
                let reason = format!("it picks {}: {reason}", contender.id);
                return Ok(PlanOutcome::Unsupported { reason });
            }
            Err(reason) => return Ok(PlanOutcome::Unsupported { reason }),
        };
        let scratch: u64 = call
            .scratch
            .iter()
            .fold(0, |sum, s| sum.saturating_add(s.size.total()));
        let host = resolve::host_bytes(&self.round.operator, shape) + u128::from(scratch);
        if let Some(there) = target.host.filter(|there| host > u128::from(there.0)) {
            let needed = Bytes(u64::try_from(host).unwrap_or(u64::MAX));
            let reason = format!("needs {needed} of host memory, {there} is free");
            return Ok(PlanOutcome::Unsupported { reason });
        }
        let needed = resolve::operand_bytes(&self.round.operator, shape) + u128::from(scratch);
        if needed > u128::from(target.device.limits.memory.0) {
            let needed = Bytes(u64::try_from(needed).unwrap_or(u64::MAX));
            let reason = format!(
                "needs {needed} of device memory, {} is there",
                target.device.limits.memory
            );
            return Ok(PlanOutcome::Unsupported { reason });
        }
        let spec = BuildSpec {
            contender: entrant.id.clone(),
            unit: TranslationUnit::of(contender, &values.constants, &call),
            constants: values.constants,
            shapes: Vec::new(),
        };
        let build = self.share_build(spec, shape.name.clone());
        Ok(PlanOutcome::Run { build, call })
    }

    /// The index of `spec` among the builds; shapes with the same constants share one image.
    fn share_build(&mut self, spec: BuildSpec, shape: String) -> usize {
        let same = |build: &BuildSpec| {
            build.unit.name == spec.unit.name
                && build.constants == spec.constants
                && build.unit.compiler == spec.unit.compiler
        };
        // A contender's builds are adjacent, the newest last.
        let own = self.builds.iter().rev();
        let own = own.take_while(|build| build.contender == spec.contender);
        let place = match own.clone().position(same) {
            Some(back) => self.builds.len() - 1 - back,
            None => {
                self.builds.push(spec);
                self.builds.len() - 1
            }
        };
        self.builds[place].shapes.push(shape);
        place
    }
}

#[cfg(test)]
mod tests;
