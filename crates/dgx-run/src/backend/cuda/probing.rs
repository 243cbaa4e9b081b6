//! Launches kernels that read clocks, and reads their results.

use std::rc::Rc;

use super::device::Context;
use super::driver::{CudaError, DeviceMemory, Graph, LaunchConfig, Module, Stream};
use super::scrub::Scrub;
use super::tensor_map;
use super::timer::Timer;
use super::tools::{Tools, launch, uploaded};
use crate::backend::RunFailure;
use crate::compile::Image;
use crate::plan::MapGeometry;
use dgx_core::domain::Device;

/// Words of a kernel's report: two for each warp of CTA 0, then two for each
/// CTA. Keep in step with probe.cuh.
pub const WARP_STAMPS: usize = 64;
const MOST_CTAS: usize = 4096;
/// Bytes of a report.
pub(crate) const REPORT_BYTES: usize = 8 * (WARP_STAMPS + 2 * MOST_CTAS);

/// The kernels' `seed`. Its highest bit is clear: they rely on it.
pub const SEED: u32 = 0x1234_5671;

/// The memory that all probes share, and the two timers: those of sweeps, with and without a flush
/// of L2.
pub struct ProbeBench {
    device: Device,
    warm: Timer,
    cold: Timer,
    out: DeviceMemory,
    data: DeviceMemory,
    scratch: DeviceMemory,
    stream: Rc<Stream>,
    // Dropped last: everything above lives in it.
    _context: Context,
}

/// A kernel `probe` and its arguments.
pub struct ProbeTrial<'a> {
    pub image: &'a Image,
    pub grid: u32,
    pub block: u32,
    pub cluster: u32,
    pub smem: u32,
    pub launches: u32,
    pub overlap: bool,
    pub cold: bool,
    /// Whether the map describes scratch, the offset there, and the map.
    pub map: Option<(bool, u64, &'a MapGeometry)>,
}

/// The result of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProbeReading {
    pub cycles: Option<f64>,
    pub nanos: Option<f64>,
    pub micros: f64,
    pub mhz: Option<f64>,
}

impl ProbeBench {
    /// Takes the first GPU, with `data` there and this many bytes of scratch; `tools` is the image
    /// of the harness's own kernels.
    pub fn open(tools: &Image, data: &[u8], scratch: u64) -> Result<Self, CudaError> {
        let context = Context::open(0)?;
        let device = context.gpu.describe()?;
        let tools = Rc::new(Tools::load(&tools.cubin)?);
        let stream = Rc::clone(&tools.stream);
        let scrub = Rc::new(Scrub::new(&device, &tools)?);
        let timer = |cold| Timer::new(&device, &scrub, cold);
        let scratch = DeviceMemory::new(scratch)?;
        stream.fill(scratch.address, 0, scratch.bytes)?;
        Ok(Self {
            warm: timer(false)?,
            cold: timer(true)?,
            out: DeviceMemory::new(REPORT_BYTES as u64)?,
            data: uploaded(data, &stream)?,
            scratch,
            device,
            stream,
            _context: context,
        })
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Calls a kernel `times` times, after one call that is not recorded.
    pub fn run(
        &mut self,
        trial: &ProbeTrial<'_>,
        times: u32,
    ) -> Result<Vec<ProbeReading>, RunFailure> {
        if let Some((into_scratch, offset, map)) = trial.map {
            let base = match into_scratch {
                true => self.scratch.address,
                false => self.data.address,
            };
            let encoded = tensor_map::encode("map", map, base + offset)?;
            self.stream.upload(self.scratch.address, &encoded)?;
            self.stream.synchronize()?;
        }
        let module = Module::load(&trial.image.cubin)?;
        let graph = self.capture(&module, trial)?;
        graph.launch(&self.stream)?;
        self.stream.synchronize().map_err(CudaError::crashed)?;
        (0..times).map(|_| self.call(&graph, trial.cold)).collect()
    }

    fn capture(&self, module: &Module, trial: &ProbeTrial<'_>) -> Result<Graph, RunFailure> {
        let function = module.function("probe")?;
        if trial.smem > 0 {
            function.allow_smem(trial.smem)?;
        }
        let (out, data, scratch) = (self.out.address, self.data.address, self.scratch.address);
        self.stream.capture(|| {
            for index in 0..trial.launches {
                let launch = LaunchConfig {
                    smem: trial.smem,
                    cluster: [trial.cluster, 1, 1],
                    // The first launch has no predecessor to overlap with.
                    overlap: trial.overlap && index > 0,
                    ..LaunchConfig::flat(trial.grid, trial.block)
                };
                launch!(function, &self.stream, &launch, [out, data, scratch, SEED])?;
            }
            Ok(())
        })
    }

    fn call(&mut self, graph: &Graph, cold: bool) -> Result<ProbeReading, RunFailure> {
        self.stream.fill(self.out.address, 0, self.out.bytes)?;
        if !cold {
            // Brings its data into L2.
            graph.launch(&self.stream)?;
            self.stream.fill(self.out.address, 0, self.out.bytes)?;
        }
        let timer = match cold {
            true => &mut self.cold,
            false => &mut self.warm,
        };
        let (micros, around) = timer.clocked_trial(graph)?;
        let mut bytes = vec![0; self.out.bytes as usize];
        self.stream.download(&mut bytes, self.out.address)?;
        Ok(ProbeReading::of(&bytes, micros, around))
    }
}

impl ProbeReading {
    /// From a kernel's report, and the times measured from outside.
    fn of(report: &[u8], micros: f64, around: Option<f64>) -> Self {
        let words = report.chunks_exact(8);
        let report: Vec<u64> = words
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect();
        let (warps, ctas) = report.split_at(WARP_STAMPS);
        let (cycles, nanos) = (span(warps), span(ctas));
        // Of CTA 0, if it read both clocks.
        let within = span(&warps[..2]).zip(span(&ctas[..2]));
        Self {
            cycles,
            nanos,
            micros,
            mhz: within
                .map(|(cycles, nanos)| cycles * 1e3 / nanos)
                .or(around),
        }
    }
}

/// From the first start to the last end, of those that reported.
fn span(stamps: &[u64]) -> Option<f64> {
    let reported = || stamps.chunks_exact(2).filter(|pair| pair[1] != 0);
    let start = reported().map(|pair| pair[0]).min()?;
    let end = reported().map(|pair| pair[1]).max()?;
    Some(end.saturating_sub(start) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_from_first_start_to_last_end() {
        let mut words = vec![0u64; REPORT_BYTES / 8];
        words[..4].copy_from_slice(&[100, 200, 90, 150]);
        let read = |words: &[u64]| ProbeReading::of(bytemuck::cast_slice(words), 3.0, Some(1800.0));
        assert_eq!(
            read(&words),
            ProbeReading {
                cycles: Some(110.0),
                nanos: None,
                micros: 3.0,
                mhz: Some(1800.0)
            }
        );
        words[WARP_STAMPS..WARP_STAMPS + 4].copy_from_slice(&[1000, 1050, 1010, 1200]);
        let both = read(&words);
        assert_eq!((both.nanos, both.mhz), (Some(200.0), Some(2000.0)));
    }
}
