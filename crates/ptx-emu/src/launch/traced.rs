//! Launches of which a trace is kept.

use super::{Chosen, Launch, LaunchError};
use crate::exec::trace::plan::Plan;
use crate::exec::trace::recorder::Watched;
use crate::memory::Memory;
use crate::module::Module;
use crate::op::Program;
use crate::report::Report;
use crate::trace::{CtaTrace, Trace, Watch};

impl Launch {
    /// As [`Launch::run`], and keeps what the warps of the watched clusters did. Results, counters
    /// and report are those of `run`; with [`Watch::only`] they are of the watched clusters alone,
    /// and a kernel whose CTAs wait for each other through global memory may then wait in vain.
    pub fn run_traced(
        &self,
        module: &Module,
        memory: &mut Memory,
        watch: &Watch,
    ) -> Result<(Report, Trace), LaunchError> {
        let ran = self.start(module, memory, None, Some(Chosen::Traced(watch)))?;
        Ok((ran.report, ran.trace))
    }

    /// The clusters of the watched CTAs.
    pub(super) fn watched(
        &self,
        watch: &Watch,
        cluster: Option<[u32; 3]>,
        program: &Program,
    ) -> Result<Watched, LaunchError> {
        let [gx, gy, gz] = self.grid.map(u64::from);
        let [cx, cy, cz] = cluster.unwrap_or([1; 3]).map(u64::from);
        let ctas = gx * gy * gz;
        if let Some(cta) = watch.ctas.iter().find(|&&cta| cta >= ctas) {
            return Err(LaunchError::Shape {
                kernel: self.kernel.clone(),
                reason: format!("CTA {cta} is to be traced, but the grid has {ctas}, from 0"),
            });
        }
        let of = |&cta: &u64| {
            let (x, y, z) = (cta % gx, cta / gx % gy, cta / (gx * gy));
            x / cx + gx / cx * (y / cy + gy / cy * (z / cz))
        };
        let mut clusters: Vec<u64> = watch.ctas.iter().map(of).collect();
        clusters.sort_unstable();
        clusters.dedup();
        Ok(Watched {
            clusters,
            only: watch.only,
            plan: Some(Plan::of(program)),
        })
    }
}

/// A trace of what was watched.
pub(super) fn trace(
    program: &Program,
    memory: &Memory,
    watched: &Watched,
    ctas: Vec<CtaTrace>,
) -> Trace {
    let lines = program.insts.iter().map(|inst| {
        let loc = program.locs.get(inst.loc as usize);
        loc.map_or(0, |loc| loc.ptx_line)
    });
    Trace {
        lines: lines.collect(),
        leaders: (watched.plan.as_ref()).map_or(Vec::new(), |plan| plan.leaders.clone()),
        regions: memory.regions().iter().map(|region| region.len).collect(),
        ctas,
    }
}
