//! The yardstick: what a Hopper user would do today. Weights and activations
//! are dequantised to fp16 beforehand, B1 and B2 stand one above the other, so
//! each group is one cuBLASLt GEMM; one fused kernel then gates all groups.

use std::ffi::c_void;
use std::rc::Rc;

use cudarc::cublaslt::{result, sys};

use super::driver::{CudaError, DeviceMemory, Graph, Launch, Stream};
use super::ground::Ground;
use super::instance::Instance;
use super::timer::Timer;
use super::tools::{Tools, argument, uploaded};
use super::tuning::{Chooser, Tuner, algorithm_of};
use crate::backend::RunFailure;
use crate::compile;
use crate::operator::Extents;
use dgx_core::domain::{Algorithm, Tuning};
use dgx_core::fields::Form;

pub(super) const WORKSPACE: u64 = 64 << 20;

/// cuBLASLt's name and version, or why it cannot be used.
pub fn find() -> Result<String, String> {
    const STEM: &str = "libcublasLt";
    // SAFETY: only looks for the library.
    let present = || unsafe { sys::is_culib_present() };
    if !present() {
        let named = std::env::var_os("DGX_CUBLASLT").map(std::path::PathBuf::from);
        let folders = compile::system_library_folders()
            .into_iter()
            .chain(compile::python_library_folders());
        let path = named
            .and_then(|place| compile::file_or_folder(&place, STEM))
            .or_else(|| compile::search(&folders.collect::<Vec<_>>(), STEM))
            .ok_or("no libcublasLt found; set DGX_CUBLASLT to it or to its folder")?;
        compile::preload(&path).map_err(|e| format!("cannot load {}: {e}", path.display()))?;
        if !present() {
            return Err(format!("{} has an unknown soname", path.display()));
        }
    }
    // SAFETY: takes no arguments.
    let version = unsafe { sys::cublasLtGetVersion() };
    Ok(format!(
        "cuBLASLt {}.{}.{}",
        version / 10000,
        version / 100 % 100,
        version % 100
    ))
}

/// Mirrors `GateGroup` of tools.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::NoUninit)]
struct GateGroup {
    products: u64,
    c: u64,
    rows: u64,
    columns: u64,
}

#[derive(Debug)]
pub(super) struct Yardstick {
    handle: Handle,
    gemms: Vec<Gemm>,
    gate_launch: Launch,
    gate_groups: DeviceMemory,
    workspace: DeviceMemory,
    ground: Ground,
    /// Dequantised operands and products of each group.
    buffers: Vec<Buffers>,
    stream: Rc<Stream>,
    tools: Rc<Tools>,
}

#[derive(Debug)]
pub(super) struct Handle(pub(super) sys::cublasLtHandle_t);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by cublasLtCreate, destroyed once.
        let _ = unsafe { result::destroy_handle(self.0) };
    }
}

/// One group's GEMM: D (m × 2n) = A (m × k) · B (2n × k)ᵀ, all row-major fp16.
/// cuBLAS thinks in columns, so it is told Dᵀ = B · Aᵀ.
pub(super) struct Gemm {
    pub(super) desc: sys::cublasLtMatmulDesc_t,
    pub(super) weights: sys::cublasLtMatrixLayout_t,
    pub(super) tokens: sys::cublasLtMatrixLayout_t,
    pub(super) products: sys::cublasLtMatrixLayout_t,
    b: u64,
    a: u64,
    d: u64,
    algo: sys::cublasLtMatmulAlgo_t,
}

impl std::fmt::Debug for Gemm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gemm({:#x} · {:#x} → {:#x})", self.a, self.b, self.d)
    }
}

impl Drop for Gemm {
    fn drop(&mut self) {
        // SAFETY: each was made for this GEMM and is destroyed once.
        unsafe {
            let _ = result::destroy_matmul_desc(self.desc);
            for layout in [self.weights, self.tokens, self.products] {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

impl Yardstick {
    /// Does every GEMM as it was kept, or takes the fastest of cuBLASLt's first
    /// candidates, as a user who autotunes would, on the operands that lie in
    /// the instance. Says how each is done.
    pub(super) fn new(
        tools: &Rc<Tools>,
        stream: Rc<Stream>,
        instance: &Rc<Instance>,
        kept: Option<&Tuning>,
        timer: &mut Timer,
    ) -> Result<(Self, Vec<Algorithm>), String> {
        let library = find()?;
        let mut chooser = Chooser::new(kept, &library, timer)?;
        let say = |e: CudaError| e.to_string();
        let handle = Handle(result::create_handle().map_err(|e| format!("cublasLtCreate: {e}"))?);
        let workspace = DeviceMemory::new(WORKSPACE).map_err(say)?;
        let ground = Ground::bare(Rc::clone(instance), Rc::clone(&stream)).map_err(say)?;
        let (mut gemms, mut buffers, mut gates) = (Vec::new(), Vec::new(), Vec::new());
        let mut algorithms = Vec::new();
        for index in 0..instance.groups().len() {
            let no_products = "no yardstick for this operator yet: it is for gated products";
            let extents = instance.extents(index).ok_or(no_products)?;
            let own = Buffers::new(extents).map_err(say)?;
            own.dequantise(tools, &stream, instance, index)
                .map_err(say)?;
            let mut gemm = Gemm::new(extents, &own)?;
            let tuner = Tuner {
                handle: &handle,
                gemm: &gemm,
                workspace: &workspace,
                stream: &stream,
            };
            let algorithm = chooser.choose(index, extents, &tuner)?;
            gemm.algo = algorithm_of(&algorithm.code)?;
            gemms.push(gemm);
            algorithms.push(algorithm);
            gates.push(GateGroup {
                products: own.d.address,
                c: ground.outputs.address(index),
                rows: extents.rows as u64,
                columns: extents.columns as u64,
            });
            buffers.push(own);
        }
        let most = gates.iter().map(|g| g.rows * g.columns).max().unwrap_or(0);
        let mut gate_launch = Launch::flat(most.div_ceil(8 * 256) as u32, 256);
        gate_launch.grid[1] = gates.len() as u32;
        let yardstick = Self {
            handle,
            gemms,
            gate_launch,
            gate_groups: uploaded(bytemuck::cast_slice(&gates), &stream).map_err(say)?,
            workspace,
            ground,
            buffers,
            stream,
            tools: Rc::clone(tools),
        };
        Ok((yardstick, algorithms))
    }

    pub(super) fn ground(&self) -> &Ground {
        &self.ground
    }

    /// Queues dequantising what lies in the instance now: its users have their
    /// operands in fp16 beforehand, so that is not timed.
    pub(super) fn dequantise(&self) -> Result<(), CudaError> {
        let groups = self.buffers.iter().enumerate();
        groups.into_iter().try_for_each(|(index, buffers)| {
            buffers.dequantise(&self.tools, &self.stream, &self.ground.instance, index)
        })
    }

    pub(super) fn capture(&self) -> Result<Graph, RunFailure> {
        self.stream.capture(|| self.queue())
    }

    /// Queues the GEMMs and the gate.
    pub(super) fn queue(&self) -> Result<(), RunFailure> {
        for gemm in &self.gemms {
            gemm.queue(&self.handle, &gemm.algo, &self.workspace, &self.stream)
                .map_err(RunFailure::refused)?;
        }
        let mut groups = self.gate_groups.address;
        let mut parameters = [argument(&mut groups)];
        self.tools
            .gate
            .launch(&self.stream, &self.gate_launch, &mut parameters)
            .map_err(CudaError::refused)
    }
}

/// fp16 operands and products of one group.
#[derive(Debug)]
struct Buffers {
    a: DeviceMemory,
    b: DeviceMemory,
    d: DeviceMemory,
}

impl Buffers {
    fn new(extents: Extents) -> Result<Self, CudaError> {
        let [rows, columns, depth] = extents.wide();
        Ok(Self {
            a: DeviceMemory::new(rows * depth * 2)?,
            b: DeviceMemory::new(2 * columns * depth * 2)?,
            d: DeviceMemory::new(rows * 2 * columns * 2)?,
        })
    }

    fn dequantise(
        &self,
        tools: &Tools,
        stream: &Stream,
        instance: &Instance,
        index: usize,
    ) -> Result<(), CudaError> {
        let Some(extents) = instance.extents(index) else {
            return Ok(());
        };
        let [rows, columns, depth] = extents.wide();
        let half = self.b.address + columns * depth * 2;
        let outs = [
            (self.a.address, rows),
            (self.b.address, columns),
            (half, columns),
        ];
        for (tensor, (mut out, rows)) in outs.into_iter().enumerate() {
            let mut codes = instance.address(index, tensor, Form::Elements);
            let mut scales = instance.address(index, tensor, Form::Scales);
            let mut blocks = rows * depth / 16;
            let mut parameters = [
                argument(&mut codes),
                argument(&mut scales),
                argument(&mut out),
                argument(&mut blocks),
            ];
            tools
                .dequantise
                .launch(stream, &Launch::flat(1024, 256), &mut parameters)?;
        }
        Ok(())
    }
}

impl Gemm {
    fn new(extents: Extents, buffers: &Buffers) -> Result<Self, String> {
        let [rows, columns, depth] = extents.wide();
        let half = sys::cudaDataType::CUDA_R_16F;
        let layout = |rows: u64, columns: u64| {
            result::create_matrix_layout(half, rows, columns, rows as i64)
                .map_err(|e| format!("cublasLtMatrixLayoutCreate: {e}"))
        };
        let compute = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
        let desc = result::create_matmul_desc(compute, sys::cudaDataType::CUDA_R_32F)
            .map_err(|e| format!("cublasLtMatmulDescCreate: {e}"))?;
        let gemm = Self {
            desc,
            weights: layout(depth, 2 * columns)?,
            tokens: layout(depth, rows)?,
            products: layout(2 * columns, rows)?,
            b: buffers.b.address,
            a: buffers.a.address,
            d: buffers.d.address,
            // SAFETY: plain integers, chosen before use.
            algo: unsafe { std::mem::zeroed() },
        };
        let transpose: i32 = 1;
        // SAFETY: the attribute is a 32-bit cublasOperation_t, and 1 is transpose.
        unsafe {
            result::set_matmul_desc_attribute(
                gemm.desc,
                sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA,
                (&raw const transpose).cast(),
                size_of::<i32>(),
            )
        }
        .map_err(|e| format!("cublasLtMatmulDescSetAttribute: {e}"))?;
        Ok(gemm)
    }

    pub(super) fn queue(
        &self,
        handle: &Handle,
        algo: &sys::cublasLtMatmulAlgo_t,
        workspace: &DeviceMemory,
        stream: &Stream,
    ) -> Result<(), String> {
        let (one, zero) = (1f32, 0f32);
        let at = |address: u64| address as *mut c_void;
        // SAFETY: layouts describe buffers of exactly these sizes.
        unsafe {
            result::matmul(
                handle.0,
                self.desc,
                (&raw const one).cast(),
                (&raw const zero).cast(),
                at(self.b),
                self.weights,
                at(self.a),
                self.tokens,
                at(self.d),
                self.products,
                at(self.d),
                self.products,
                algo,
                at(workspace.address),
                workspace.bytes as usize,
                stream.0.cast(),
            )
        }
        .map_err(|e| format!("cublasLtMatmul: {e}"))
    }
}
