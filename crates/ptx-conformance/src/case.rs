//! What a case is: a kernel, its launch, its bytes, and how its outputs are compared.

/// The name every kernel of the suite is entered by.
pub(crate) const ENTRY: &str = "kernel";

/// Grid, block and cluster extents and the dynamic shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// CTAs in x, y and z.
    pub grid: [u32; 3],
    /// Threads in x, y and z.
    pub block: [u32; 3],
    /// CTAs per cluster in x, y and z; `[1, 1, 1]` launches without clusters.
    pub cluster: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared: u32,
}

impl Launch {
    /// One CTA of `threads` threads.
    pub fn single(threads: u32) -> Self {
        Self::linear(1, threads)
    }

    /// `ctas` CTAs of `threads` threads each.
    pub fn linear(ctas: u32, threads: u32) -> Self {
        Self {
            grid: [ctas, 1, 1],
            block: [threads, 1, 1],
            cluster: [1, 1, 1],
            shared: 0,
        }
    }

    /// One cluster of `ctas` CTAs of `threads` threads each.
    pub fn one_cluster(ctas: u32, threads: u32) -> Self {
        Self {
            cluster: [ctas, 1, 1],
            ..Self::linear(ctas, threads)
        }
    }

    /// The same launch with `bytes` of dynamic shared memory.
    pub fn with_shared(self, bytes: u32) -> Self {
        Self {
            shared: bytes,
            ..self
        }
    }
}

/// The element type outputs are read as when a tolerance applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Element {
    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The value of one little-endian element.
    pub fn value(self, bytes: &[u8]) -> f64 {
        let mut bits = [0u8; 8];
        bits[..self.bytes()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(bits);
        match self {
            Self::F16 => half::f16::from_bits(bits as u16).to_f64(),
            Self::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            Self::F64 => f64::from_bits(bits),
        }
    }
}

/// How a replayed output is held against the recorded one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compare {
    /// Bit for bit.
    Exact,
    /// `|ours − golden| ≤ absolute + relative · |golden|`, NaN only against NaN and
    /// infinities only against themselves: for results the ISA specifies by an error
    /// bound, and for sums whose order the ISA leaves open.
    Near {
        /// What the output's bytes are numbers of.
        element: Element,
        /// Of the recorded value.
        relative: f64,
        /// Allowed on top, for values near zero.
        absolute: f64,
    },
}

/// Which buffer a tensor map describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapBuffer {
    /// The input of this index.
    Input(usize),
    /// The output of this index.
    Output(usize),
}

/// Element types of a tensor map, in the driver's numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum MapType {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    S32 = 3,
    U64 = 4,
    S64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
    F32Ftz = 10,
    Tf32 = 11,
    Tf32Ftz = 12,
    /// `16U4_ALIGN8B`
    U4 = 13,
    /// `16U4_ALIGN16B`
    U4Align16 = 14,
    /// `16U6_ALIGN16B`
    U6Align16 = 15,
}

impl MapType {
    /// Bytes of one element, of the types that fill them.
    pub fn bytes(self) -> usize {
        self.bits() / 8
    }

    /// Bits of one element in global memory.
    pub fn bits(self) -> usize {
        match self {
            Self::U4 | Self::U4Align16 => 4,
            Self::U6Align16 => 6,
            Self::U8 => 8,
            Self::U16 | Self::F16 | Self::Bf16 => 16,
            Self::U32 | Self::S32 | Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => 32,
            Self::U64 | Self::S64 | Self::F64 => 64,
        }
    }
}

/// Shared-memory swizzles of a tensor map, in the driver's numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum Swizzle {
    None = 0,
    B32 = 1,
    B64 = 2,
    B128 = 3,
    B128Atom32 = 4,
    B128Atom32Flip8 = 5,
    B128Atom64 = 6,
}

impl Swizzle {
    /// Those of Blackwell.
    pub const ATOMS: [Self; 3] = [Self::B128Atom32, Self::B128Atom32Flip8, Self::B128Atom64];

    /// All four of Hopper, in the driver's order.
    pub const ALL: [Self; 4] = [Self::None, Self::B32, Self::B64, Self::B128];

    /// The inner extent in bytes over which the swizzle works.
    pub fn span(self) -> u32 {
        [16, 32, 64, 128, 128, 128, 128][self as usize]
    }

    /// The name used in case names.
    pub fn label(self) -> &'static str {
        let labels = [
            "none",
            "32B",
            "64B",
            "128B",
            "128B-atom-32B",
            "128B-atom-32B-flip-8B",
            "128B-atom-64B",
        ];
        labels[self as usize]
    }

    /// The layout code of a wgmma matrix descriptor; Hopper knows four.
    pub fn descriptor_code(self) -> u64 {
        [0, 3, 2, 1][self as usize % 4]
    }
}

/// A tiled tensor map, encoded by the driver when recording and by the emulator when replaying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapSpec {
    /// The buffer it describes.
    pub buffer: MapBuffer,
    /// Element type.
    pub element: MapType,
    /// Extents in elements, innermost first; their number is the rank.
    pub dims: Vec<u64>,
    /// Byte strides of all dimensions but the innermost.
    pub strides: Vec<u64>,
    /// Box extents in elements.
    pub extent: Vec<u32>,
    /// Traversal strides in elements.
    pub element_strides: Vec<u32>,
    /// Shared-memory swizzle.
    pub swizzle: Swizzle,
    /// Whether out-of-bounds elements read as NaN instead of zero.
    pub nan_fill: bool,
}

impl MapSpec {
    /// A dense row-major map over `buffer` without swizzle.
    pub fn dense(buffer: MapBuffer, element: MapType, dims: &[u64], extent: &[u32]) -> Self {
        let mut strides = Vec::new();
        let mut stride = element.bits() as u64;
        for &dim in &dims[..dims.len() - 1] {
            stride *= dim;
            strides.push(stride / 8);
        }
        Self {
            buffer,
            element,
            dims: dims.to_vec(),
            strides,
            extent: extent.to_vec(),
            element_strides: vec![1; dims.len()],
            swizzle: Swizzle::None,
            nan_fill: false,
        }
    }

    /// The same map with another swizzle.
    pub fn swizzled(self, swizzle: Swizzle) -> Self {
        Self { swizzle, ..self }
    }
}

/// One kernel of the suite. Its parameters are the input pointers, then the output
/// pointers, then the tensor maps by value.
#[derive(Debug, Clone)]
pub struct Case {
    /// `form/variant`, unique in the suite.
    pub name: String,
    /// The instruction forms it covers.
    pub forms: Vec<String>,
    /// The whole PTX module.
    pub ptx: String,
    /// Its launch.
    pub launch: Launch,
    /// The bytes of each input buffer.
    pub inputs: Vec<Vec<u8>>,
    /// The initial bytes of each output buffer.
    pub outputs: Vec<Vec<u8>>,
    /// The tensor maps passed after the buffers.
    pub maps: Vec<MapSpec>,
    /// How outputs are compared.
    pub compare: Compare,
}

impl Case {
    /// A fingerprint of everything a golden depends on, so that a changed kernel or
    /// input is noticed instead of being held against a stale golden.
    pub fn fingerprint(&self) -> String {
        let mut hash = Fnv::default();
        hash.write(self.ptx.as_bytes());
        hash.write(format!("{:?}{:?}", self.launch, self.maps).as_bytes());
        for buffer in self.inputs.iter().chain(&self.outputs) {
            hash.write(&(buffer.len() as u64).to_le_bytes());
            hash.write(buffer);
        }
        format!("{:016x}", hash.0)
    }
}

/// FNV-1a: stable across platforms and compilers, which `std`'s hasher does not promise.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
