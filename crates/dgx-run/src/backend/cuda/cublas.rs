//! Products by the vendor's library, as a Hopper user would compute them today. NVFP4 operands are
//! dequantised to fp16 beforehand. Each group is one cuBLASLt GEMM: two right operands are stacked
//! into one matrix, and one fused kernel then applies the gate for all groups.

use std::ffi::c_void;
use std::rc::Rc;

use cudarc::cublaslt::{result, sys};

use super::call_buffers::CallBuffers;
use super::driver::{CudaError, DeviceMemory, Graph, LaunchConfig, Stream};
use super::instance::Instance;
use super::timer::Timer;
use super::tools::{Tools, launch, uploaded};
use super::tuning::{Chooser, Tuner, algorithm_of};
use crate::backend::RunFailure;
use crate::toolkit;
use dgx_core::domain::{Algorithm, Tuning};
use dgx_core::fields::PointedPart;
use dgx_core::operator::{ElementType, Operator, Product};

pub(super) const WORKSPACE: u64 = 64 << 20;

/// cuBLASLt's name and version, or the reason why it cannot be used.
pub fn find() -> Result<String, String> {
    const STEM: &str = "libcublasLt";
    // SAFETY: only looks for the library.
    let present = || unsafe { sys::is_culib_present() };
    if !present() {
        let named = std::env::var_os("DGX_CUBLASLT").map(std::path::PathBuf::from);
        let folders = toolkit::system_library_folders()
            .into_iter()
            .chain(toolkit::python_library_folders());
        let path = named
            .and_then(|place| toolkit::file_or_folder(&place, STEM))
            .or_else(|| toolkit::search(&folders.collect::<Vec<_>>(), STEM))
            .ok_or("no libcublasLt found; set DGX_CUBLASLT to it or to its folder")?;
        toolkit::preload(&path).map_err(|e| format!("cannot load {}: {e}", path.display()))?;
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

/// All groups of a shape.
#[derive(Debug)]
pub(super) struct Cublas {
    handle: Handle,
    gemms: Vec<Gemm>,
    gate: Option<(LaunchConfig, DeviceMemory)>,
    workspace: DeviceMemory,
    call_buffers: CallBuffers,
    /// Dequantised operands and products of each group.
    buffers: Vec<Buffers>,
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

/// The extents of one group's GEMM: D (rows × columns) = A (rows × depth) · B (columns × depth)ᵀ,
/// all row-major, `batch` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GemmExtents {
    batch: u64,
    rows: u64,
    columns: u64,
    depth: u64,
}

impl GemmExtents {
    /// With the right operands stacked.
    fn of(operator: &Operator, product: &Product, sizes: &[u64]) -> Option<Self> {
        let left = operator.inputs[product.left].extents(sizes)?;
        let right = operator.inputs[product.rights[0]].extents(sizes)?;
        let (axes, rights) = (left.len(), product.rights.len() as u64);
        Some(Self {
            batch: left[..axes - 2].iter().product(),
            rows: left[axes - 2],
            columns: rights * right[axes - 2],
            depth: left[axes - 1],
        })
    }
}

/// cuBLAS uses column-major order, so it computes Dᵀ = B · Aᵀ.
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

impl Cublas {
    /// Uses the kept algorithm for every GEMM, or the fastest of cuBLASLt's first candidates, as a
    /// user who autotunes would, on the operands in the instance. Returns the choices.
    pub(super) fn new(
        tools: &Rc<Tools>,
        instance: &Rc<Instance>,
        kept: Option<&Tuning>,
        timer: &mut Timer,
    ) -> Result<(Self, Vec<Algorithm>), String> {
        let (library, stream) = (find()?, &tools.stream);
        let mut chooser = Chooser::new(kept, &library, timer)?;
        let say = |e: CudaError| e.to_string();
        let handle = Handle(result::create_handle().map_err(|e| format!("cublasLtCreate: {e}"))?);
        let workspace = DeviceMemory::new(WORKSPACE).map_err(say)?;
        let call_buffers =
            CallBuffers::bare(Rc::clone(instance), Rc::clone(stream)).map_err(say)?;
        let product = instance.operator().product();
        let product = product.ok_or("the operator is no product that cuBLAS has")?;
        let (mut gemms, mut buffers, mut algorithms) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..instance.groups().len() {
            let own = Buffers::new(&product, &call_buffers, index).map_err(say)?;
            own.dequantise(tools).map_err(say)?;
            let mut gemm = Gemm::new(&own)?;
            let tuner = Tuner {
                handle: &handle,
                gemm: &gemm,
                workspace: &workspace,
                stream,
            };
            let algorithm = chooser.choose(index, own.extents, &tuner)?;
            gemm.algo = algorithm_of(&algorithm.code)?;
            gemms.push(gemm);
            algorithms.push(algorithm);
            buffers.push(own);
        }
        let gate = match product.rights.len() {
            1 => None,
            _ => Some(gate(&call_buffers, &buffers).map_err(say)?),
        };
        let cublas = Self {
            handle,
            gemms,
            gate,
            workspace,
            call_buffers,
            buffers,
            tools: Rc::clone(tools),
        };
        Ok((cublas, algorithms))
    }

    pub(super) fn call_buffers(&self) -> &CallBuffers {
        &self.call_buffers
    }

    /// Queues dequantising the operands in the instance: a user has them in fp16 beforehand, so
    /// this is not timed.
    pub(super) fn dequantise(&self) -> Result<(), CudaError> {
        let mut buffers = self.buffers.iter();
        buffers.try_for_each(|buffers| buffers.dequantise(&self.tools))
    }

    pub(super) fn capture(&self) -> Result<Graph, RunFailure> {
        self.tools.stream.capture(|| self.queue())
    }

    /// Queues the GEMMs and the gate.
    pub(super) fn queue(&self) -> Result<(), RunFailure> {
        let stream = &self.tools.stream;
        for gemm in &self.gemms {
            gemm.queue(&self.handle, &gemm.algo, &self.workspace, stream)
                .map_err(RunFailure::refused)?;
        }
        let Some((launch, groups)) = &self.gate else {
            return Ok(());
        };
        let launched = launch!(self.tools.gate, stream, launch, [groups.address]);
        launched.map_err(CudaError::refused)
    }
}

/// One kernel for the gates of all groups.
fn gate(
    call_buffers: &CallBuffers,
    buffers: &[Buffers],
) -> Result<(LaunchConfig, DeviceMemory), CudaError> {
    let groups = buffers.iter().enumerate();
    let groups: Vec<GateGroup> = groups
        .map(|(index, own)| GateGroup {
            products: own.d,
            c: call_buffers.outputs.address(index),
            rows: own.extents.rows,
            columns: own.extents.columns / 2,
        })
        .collect();
    let most = groups.iter().map(|g| g.rows * g.columns).max().unwrap_or(0);
    let mut launch = LaunchConfig::flat(most.div_ceil(8 * 256) as u32, 256);
    launch.grid[1] = groups.len() as u32;
    let groups = uploaded(bytemuck::cast_slice(&groups), &call_buffers.stream)?;
    Ok((launch, groups))
}

/// Operands and product of one group in 16 bits, by their addresses.
#[derive(Debug)]
struct Buffers {
    extents: GemmExtents,
    element: sys::cudaDataType,
    a: u64,
    b: u64,
    d: u64,
    /// Codes and scales to dequantise, and their destinations.
    scaled: Vec<ScaledOperand>,
    /// Memory that the contenders do not use.
    _memory: Vec<DeviceMemory>,
}

#[derive(Debug)]
struct ScaledOperand {
    codes: u64,
    scales: u64,
    out: u64,
    blocks: u64,
}

impl Buffers {
    /// NVFP4 is dequantised to separate memory; 16-bit operands are used where they are. The
    /// product goes to the output unless it is to be gated.
    fn new(product: &Product, call_buffers: &CallBuffers, group: usize) -> Result<Self, CudaError> {
        let (instance, operator) = (&call_buffers.instance, call_buffers.instance.operator());
        let sizes = operator.sizes_in(&instance.groups()[group]);
        let extents = sizes.and_then(|sizes| GemmExtents::of(operator, product, &sizes));
        let extents = extents.expect("a shape of the operator");
        let GemmExtents {
            batch,
            rows,
            columns,
            depth,
        } = extents;
        let element = operator.inputs[product.left].element;
        let mut buffers = Self {
            extents,
            element: match element {
                ElementType::Bf16 => sys::cudaDataType::CUDA_R_16BF,
                _ => sys::cudaDataType::CUDA_R_16F,
            },
            a: instance.address(group, product.left, PointedPart::Elements),
            b: instance.address(group, product.rights[0], PointedPart::Elements),
            d: call_buffers.outputs.address(group),
            scaled: Vec::new(),
            _memory: Vec::new(),
        };
        if element == ElementType::Nvfp4 {
            buffers.a = buffers.room(batch * rows * depth)?;
            buffers.b = buffers.room(batch * columns * depth)?;
            let part = batch * columns * depth / product.rights.len() as u64;
            let rights = product.rights.iter().zip(0..);
            let rights = rights.map(|(place, nth)| (*place, buffers.b + 2 * nth * part, part));
            let outs = [(product.left, buffers.a, batch * rows * depth)];
            let outs: Vec<_> = outs.into_iter().chain(rights).collect();
            buffers.scaled = outs
                .into_iter()
                .map(|(place, out, elements)| ScaledOperand {
                    codes: instance.address(group, place, PointedPart::Elements),
                    scales: instance.address(group, place, PointedPart::Scales),
                    out,
                    blocks: elements / 16,
                })
                .collect();
        }
        if product.rights.len() > 1 {
            buffers.d = buffers.room(rows * columns)?;
        }
        Ok(buffers)
    }

    /// Memory for this many elements.
    fn room(&mut self, elements: u64) -> Result<u64, CudaError> {
        let memory = DeviceMemory::new(2 * elements)?;
        let address = memory.address;
        self._memory.push(memory);
        Ok(address)
    }

    fn dequantise(&self, tools: &Tools) -> Result<(), CudaError> {
        let launch = LaunchConfig::flat(1024, 256);
        for scaled in &self.scaled {
            launch!(
                tools.dequantise,
                &tools.stream,
                &launch,
                [scaled.codes, scaled.scales, scaled.out, scaled.blocks]
            )?;
        }
        Ok(())
    }
}

impl Gemm {
    fn new(buffers: &Buffers) -> Result<Self, String> {
        let GemmExtents {
            batch,
            rows,
            columns,
            depth,
        } = buffers.extents;
        let layout = |rows: u64, columns: u64| layout(buffers.element, rows, columns, batch);
        let compute = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
        let desc = result::create_matmul_desc(compute, sys::cudaDataType::CUDA_R_32F)
            .map_err(|e| format!("cublasLtMatmulDescCreate: {e}"))?;
        let gemm = Self {
            desc,
            weights: layout(depth, columns)?,
            tokens: layout(depth, rows)?,
            products: layout(columns, rows)?,
            b: buffers.b,
            a: buffers.a,
            d: buffers.d,
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

/// `batch` matrices one after the other, columns contiguous.
fn layout(
    element: sys::cudaDataType,
    rows: u64,
    columns: u64,
    batch: u64,
) -> Result<sys::cublasLtMatrixLayout_t, String> {
    use sys::cublasLtMatrixLayoutAttribute_t::{
        CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
    };
    let layout = result::create_matrix_layout(element, rows, columns, rows as i64)
        .map_err(|e| format!("cublasLtMatrixLayoutCreate: {e}"))?;
    let (count, offset) = (batch as i32, (rows * columns) as i64);
    // SAFETY: the attributes are a 32-bit count and a 64-bit offset in elements.
    unsafe {
        result::set_matrix_layout_attribute(
            layout,
            CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
            (&raw const count).cast(),
            size_of::<i32>(),
        )
        .and_then(|()| {
            result::set_matrix_layout_attribute(
                layout,
                CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                (&raw const offset).cast(),
                size_of::<i64>(),
            )
        })
    }
    .map_err(|e| format!("cublasLtMatrixLayoutSetAttribute: {e}"))?;
    Ok(layout)
}
