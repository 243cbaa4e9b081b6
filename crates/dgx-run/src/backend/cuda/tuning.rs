//! Chooses the cuBLASLt algorithm of the yardstick. The heuristic lists several for a GEMM, and a
//! few warm calls cannot tell which is fastest: chosen anew in each process, the yardstick differed
//! every time. So the best is found once per run, with the clock and the cold cache of its samples,
//! and recorded for all processes.

use cudarc::cublaslt::{result, sys};

use super::cublas::{Gemm, GemmExtents, Handle, WORKSPACE};
use super::driver::{CudaError, DeviceMemory, Graph, Stream};
use super::timer::Timer;
use crate::backend::RunFailure;
use dgx_core::domain::{Algorithm, Micros, Tuning};

/// Candidates the heuristic is asked for.
const CANDIDATES: usize = 16;
/// Timed calls of each.
const TRIALS: usize = 15;

/// Chooses an algorithm for one GEMM after the other.
pub(super) struct Chooser<'a> {
    kept: Option<&'a Tuning>,
    timer: &'a mut Timer,
    /// Groups of one size are one problem.
    chosen: Vec<(GemmExtents, Algorithm)>,
}

impl<'a> Chooser<'a> {
    /// Refuses the choices of another library.
    pub(super) fn new(
        kept: Option<&'a Tuning>,
        library: &str,
        timer: &'a mut Timer,
    ) -> Result<Self, String> {
        if let Some(tuning) = kept.filter(|t| t.library != library) {
            return Err(format!(
                "the run was begun with {}, and {library} is here",
                tuning.library
            ));
        }
        Ok(Self {
            kept,
            timer,
            chosen: Vec::new(),
        })
    }

    pub(super) fn choose(
        &mut self,
        index: usize,
        extents: GemmExtents,
        tuner: &Tuner<'_>,
    ) -> Result<Algorithm, String> {
        if let Some(tuning) = self.kept {
            let algorithm = tuning.gemms.get(index).cloned();
            let algorithm = algorithm.ok_or_else(|| format!("no algorithm for group {index}"))?;
            tuner.accept(&algorithm)?;
            return Ok(algorithm);
        }
        if let Some((_, algorithm)) = self.chosen.iter().find(|(known, _)| *known == extents) {
            return Ok(algorithm.clone());
        }
        let algorithm = tuner.fastest(self.timer)?;
        self.chosen.push((extents, algorithm.clone()));
        Ok(algorithm)
    }
}

/// One GEMM and everything needed to call it.
pub(super) struct Tuner<'a> {
    pub handle: &'a Handle,
    pub gemm: &'a Gemm,
    pub workspace: &'a DeviceMemory,
    pub stream: &'a Stream,
}

struct Candidate {
    algo: sys::cublasLtMatmulAlgo_t,
    graph: Graph,
    micros: Vec<f64>,
}

impl Tuner<'_> {
    /// The candidate with the lowest median, all taking turns.
    fn fastest(&self, timer: &mut Timer) -> Result<Algorithm, String> {
        let mut field: Vec<Candidate> = Vec::new();
        for algo in self.candidates()? {
            // A candidate that cannot be called here is skipped.
            if let Ok(graph) = self.graph(&algo) {
                field.push(Candidate {
                    algo,
                    graph,
                    micros: Vec::new(),
                });
            }
        }
        for _ in 0..TRIALS {
            for candidate in &mut field {
                let micros = timer.trial(&candidate.graph).map_err(|e| e.message)?;
                candidate.micros.push(micros);
            }
        }
        let candidates = field.len() as u32;
        let timed = field.into_iter().map(|c| (median(c.micros), c.algo));
        let best = timed.min_by(|(a, _), (b, _)| a.total_cmp(b));
        let (micros, algo) =
            best.ok_or("cuBLASLt offers no algorithm for this shape".to_owned())?;
        Ok(Algorithm {
            code: code_of(&algo),
            text: describe(&algo),
            micros: Micros(micros),
            candidates,
        })
    }

    /// Checks that a recorded algorithm can be used.
    fn accept(&self, algorithm: &Algorithm) -> Result<(), String> {
        let algo = algorithm_of(&algorithm.code)?;
        let Gemm {
            desc,
            weights,
            tokens,
            products,
            ..
        } = *self.gemm;
        // SAFETY: a plain output record; all handles are live.
        let status = unsafe {
            let mut found = std::mem::zeroed();
            sys::cublasLtMatmulAlgoCheck(
                self.handle.0,
                desc,
                weights,
                tokens,
                products,
                products,
                &algo,
                &mut found,
            )
        };
        status
            .result()
            .map_err(|e| format!("cublasLtMatmulAlgoCheck of {}: {e}", algorithm.text))?;
        // The library loads its kernel here, and not while a graph is captured.
        self.call(&algo).map_err(|e| e.message)
    }

    fn graph(&self, algo: &sys::cublasLtMatmulAlgo_t) -> Result<Graph, RunFailure> {
        self.call(algo)?;
        self.stream.capture(|| self.queue(algo))
    }

    fn call(&self, algo: &sys::cublasLtMatmulAlgo_t) -> Result<(), RunFailure> {
        self.queue(algo)?;
        self.stream.synchronize().map_err(CudaError::crashed)
    }

    fn queue(&self, algo: &sys::cublasLtMatmulAlgo_t) -> Result<(), RunFailure> {
        self.gemm
            .queue(self.handle, algo, self.workspace, self.stream)
            .map_err(RunFailure::refused)
    }

    fn candidates(&self) -> Result<Vec<sys::cublasLtMatmulAlgo_t>, String> {
        let preference = result::create_matmul_pref().map_err(|e| e.to_string())?;
        let bytes = WORKSPACE as usize;
        // SAFETY: plain output records, counted by the library.
        let mut found: [sys::cublasLtMatmulHeuristicResult_t; CANDIDATES] =
            unsafe { std::mem::zeroed() };
        let mut count = 0;
        // SAFETY: all handles are live; the array holds CANDIDATES records.
        let status = unsafe {
            let attribute =
                sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
            let _ = result::set_matmul_pref_attribute(
                preference,
                attribute,
                (&raw const bytes).cast(),
                size_of::<usize>(),
            );
            let status = sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle.0,
                self.gemm.desc,
                self.gemm.weights,
                self.gemm.tokens,
                self.gemm.products,
                self.gemm.products,
                preference,
                CANDIDATES as i32,
                found.as_mut_ptr(),
                &mut count,
            );
            let _ = result::destroy_matmul_pref(preference);
            status
        };
        status
            .result()
            .map_err(|e| format!("cublasLtMatmulAlgoGetHeuristic: {e}"))?;
        let usable = found[..count as usize]
            .iter()
            .filter(|f| f.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        Ok(usable.map(|f| f.algo).collect())
    }
}

fn median(mut micros: Vec<f64>) -> f64 {
    micros.sort_by(f64::total_cmp);
    micros.get(micros.len() / 2).copied().unwrap_or(f64::MAX)
}

/// The library documents that its record may be stored and used again by the same version.
fn code_of(algo: &sys::cublasLtMatmulAlgo_t) -> String {
    algo.data
        .iter()
        .map(|word| format!("{word:016x}"))
        .collect()
}

pub(super) fn algorithm_of(code: &str) -> Result<sys::cublasLtMatmulAlgo_t, String> {
    let mut data = [0; 8];
    for (index, word) in data.iter_mut().enumerate() {
        let digits = code.get(16 * index..16 * index + 16);
        *word = digits
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .ok_or_else(|| format!("`{code}` is no algorithm of cuBLASLt"))?;
    }
    Ok(sys::cublasLtMatmulAlgo_t { data })
}

/// The library's description of an algorithm, by the numbers of its header file.
fn describe(algo: &sys::cublasLtMatmulAlgo_t) -> String {
    use sys::cublasLtMatmulAlgoConfigAttributes_t as Attribute;
    let attributes = [
        ("id", Attribute::CUBLASLT_ALGO_CONFIG_ID, 4),
        ("tile", Attribute::CUBLASLT_ALGO_CONFIG_TILE_ID, 4),
        ("stages", Attribute::CUBLASLT_ALGO_CONFIG_STAGES_ID, 4),
        ("split-k", Attribute::CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4),
        (
            "reduction",
            Attribute::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
            4,
        ),
        ("swizzle", Attribute::CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4),
        ("option", Attribute::CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4),
        ("inner", Attribute::CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2),
        (
            "cluster",
            Attribute::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
            2,
        ),
    ];
    let found: Vec<String> = attributes
        .into_iter()
        .filter_map(|(name, attribute, bytes)| {
            let (mut value, mut written) = (0u32, 0);
            // SAFETY: no attribute is longer than `value`, and the machine is
            // little-endian, as every one with such a GPU.
            let status = unsafe {
                sys::cublasLtMatmulAlgoConfigGetAttribute(
                    algo,
                    attribute,
                    (&raw mut value).cast(),
                    bytes,
                    &mut written,
                )
            };
            status.result().ok()?;
            Some(format!("{name} {value}"))
        })
        .collect();
    found.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::domain::ALGORITHM_DIGITS;

    #[test]
    fn an_algorithm_survives_being_written_down() {
        let algo = sys::cublasLtMatmulAlgo_t {
            data: [66, u64::MAX, 0, 1 << 63, 5, 6, 7, 0x0123_4567_89ab_cdef],
        };
        let code = code_of(&algo);
        assert_eq!(code.len(), ALGORITHM_DIGITS);
        assert_eq!(algorithm_of(&code).unwrap().data, algo.data);
        for broken in [
            "",
            &code[1..],
            &code.replace('f', "µ"),
            &code.replace('f', "g"),
        ] {
            assert!(algorithm_of(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn the_middle_time_counts_and_not_a_lucky_one() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(Vec::new()), f64::MAX);
    }
}
