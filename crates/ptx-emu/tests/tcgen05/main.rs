//! `tcgen05` as kernels use it: products in tensor memory, what is copied and moved there, and
//! what goes wrong when it is not waited for.

mod faults;
mod hazards;
mod kinds;
mod moves;
mod pairs;
mod products;
mod residency;

use ptx_emu::{Config, DeviceLimits, Launch, LaunchError, Memory, MmaMode, Module, Params, Report};

/// A kernel for one CTA (or pair) that fills shared memory with its input, lets one thread issue
/// something, waits for it and stores columns of tensor memory.
pub(crate) struct Bench {
    /// What `tile` in shared memory is filled with; for a pair, one half for each CTA.
    pub input: Vec<u8>,
    /// For all threads, before anything is issued: `%r6` is the address of tensor memory, `%r8`
    /// that of the warp's quarter, `%r1` the thread, `%r2` the warp.
    pub before: String,
    /// For one thread: `%rd8` is the address of `tile` as a descriptor has it.
    pub issue: String,
    /// Columns that are stored at the end, a multiple of 8.
    pub columns: u32,
    pub ctas: u32,
    /// In the place of the wait for what was issued.
    pub wait: Option<String>,
    /// In the place of the loads that store columns.
    pub after: Option<String>,
    pub epilogue: Option<String>,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            input: Vec::new(),
            before: String::new(),
            issue: String::new(),
            columns: 8,
            ctas: 1,
            wait: None,
            after: None,
            epilogue: None,
        }
    }
}

pub(crate) const WAIT: &str = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0;
@!%p4 bra WAIT;
tcgen05.fence::after_thread_sync;";

impl Bench {
    pub(crate) fn text(&self) -> String {
        let Self {
            before,
            issue,
            columns,
            ctas: g,
            ..
        } = self;
        let wait = self.wait.as_deref().unwrap_or(WAIT);
        let dump = "DUMP: tcgen05.ld.sync.aligned.32x32b.x8.b32 \
                    {%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}, [%r8];
tcgen05.wait::ld.sync.aligned;
st.global.v4.b32 [%rd4], {%r20,%r21,%r22,%r23};
st.global.v4.b32 [%rd4+16], {%r24,%r25,%r26,%r27};
add.u32 %r8, %r8, 8; add.u64 %rd4, %rd4, 32; add.u32 %r14, %r14, 8;
setp.lt.u32 %p5, %r14, %r15; @%p5 bra DUMP;";
        let after = self.after.as_deref().unwrap_or(dump);
        let (leads, multicast) = match g {
            1 => ("setp.ne.u32 %p3, %r1, 0;", ""),
            _ => (
                "or.b32 %r16, %r1, %r7; setp.ne.u32 %p3, %r16, 0; mov.b16 %rs1, 3;",
                ".multicast::cluster",
            ),
        };
        let mask = if *g == 1 { "" } else { ", %rs1" };
        let together = match g {
            1 => "bar.sync 0;",
            _ => "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        };
        let free = format!("tcgen05.dealloc.cta_group::{g}.sync.aligned.b32 %r6, 512;");
        let epilogue = self.epilogue.as_deref().unwrap_or(&free);
        format!(
            ".version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 bytes) .reqntid 128, 1, 1
{{
.reg .pred %p<8>; .reg .b16 %rs<4>; .reg .b32 %r<300>; .reg .b64 %rd<32>;
.shared .align 1024 .b8 tile[45056]; .shared .align 8 .b64 bar; .shared .align 8 .b64 spare;
.shared .align 4 .b32 slot;
ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r9, [bytes];
mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r3, tile; mov.u32 %r7, %cluster_ctarank;
mul.lo.u32 %r4, %r7, %r9; cvt.u64.u32 %rd3, %r4; add.u64 %rd1, %rd1, %rd3;
mul.lo.u32 %r4, %r1, 16;
COPY: setp.ge.u32 %p1, %r4, %r9; @%p1 bra COPIED;
cvt.u64.u32 %rd3, %r4; add.u64 %rd3, %rd1, %rd3;
ld.global.v4.b32 {{%r10,%r11,%r12,%r13}}, [%rd3];
add.u32 %r5, %r3, %r4; st.shared.v4.b32 [%r5], {{%r10,%r11,%r12,%r13}};
add.u32 %r4, %r4, 2048; bra COPY;
COPIED: fence.proxy.async.shared::cta;
setp.ne.u32 %p2, %r2, 0; @%p2 bra ALLOCATED;
tcgen05.alloc.cta_group::{g}.sync.aligned.shared::cta.b32 [slot], 512;
tcgen05.relinquish_alloc_permit.cta_group::{g}.sync.aligned;
ALLOCATED: setp.ne.u32 %p6, %r1, 0; @%p6 bra READY;
mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.init.shared::cta.b64 [spare], 1;
fence.mbarrier_init.release.cluster;
READY: {together}
ld.shared.b32 %r6, [slot]; shl.b32 %r8, %r2, 21; add.u32 %r8, %r8, %r6;
cvt.u64.u32 %rd8, %r3; shr.u64 %rd8, %rd8, 4; and.b64 %rd8, %rd8, 0x3fff;
{before}
{leads} @%p3 bra ISSUED;
setp.ne.b32 %p0, 0, 0;
{issue}
mov.u32 %r17, bar;
tcgen05.commit.cta_group::{g}.mbarrier::arrive::one.shared::cluster{multicast}.b64 [%r17]{mask};
ISSUED:
{wait}
mul.wide.u32 %rd4, %r1, {row}; add.u64 %rd4, %rd2, %rd4;
mul.wide.u32 %rd5, %r7, {part}; add.u64 %rd4, %rd4, %rd5;
mov.u32 %r14, 0; mov.u32 %r15, {columns};
{after}
tcgen05.fence::before_thread_sync;
{together}
@%p2 bra END;
{epilogue}
END: ret;
}}
",
            row = columns * 4,
            part = 128 * columns * 4,
        )
    }

    pub(crate) fn run(&self, seed: u64, mode: MmaMode) -> Result<(Vec<u32>, Report), LaunchError> {
        self.launch(Config {
            seed,
            mma_mode: mode,
            limits: DeviceLimits::B200,
            ..Config::default()
        })
    }

    pub(crate) fn launch(&self, config: Config) -> Result<(Vec<u32>, Report), LaunchError> {
        let text = self.text();
        let module = Module::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        if let Some(error) = module.refused().values().next() {
            panic!("{error}\n{text}");
        }
        let mut memory = Memory::new();
        let words = u64::from(self.ctas * 128 * self.columns);
        let out = memory.alloc_named("out", 4 * words)?;
        let input = memory.alloc_named("in", self.input.len().max(16) as u64)?;
        memory.write(input, &self.input)?;
        let per_cta = self.input.len() as u32 / self.ctas;
        let mut launch = Launch::new("k")
            .grid([self.ctas, 1, 1])
            .block([128, 1, 1])
            .params(Params::new().pointer(input).pointer(out).u32(per_cta))
            .config(config);
        if self.ctas > 1 {
            launch = launch.cluster([self.ctas, 1, 1]);
        }
        let report = launch.run(&module, &mut memory)?;
        let bytes = memory.read_vec(out, 4 * words)?;
        let words = bytes.as_chunks::<4>().0.iter();
        Ok((
            words.map(|word| u32::from_le_bytes(*word)).collect(),
            report,
        ))
    }

    /// The words stored, whatever the seed.
    #[track_caller]
    pub(crate) fn words(&self, mode: MmaMode) -> Vec<u32> {
        let all: Vec<Vec<u32>> = (0..4)
            .map(|seed| match self.run(seed, mode) {
                Ok((words, report)) => {
                    let early = report.early_read.map(|early| early.to_string());
                    assert_eq!(early, None, "seed {seed}");
                    words
                }
                Err(error) => panic!("seed {seed}: {error}\n{}", self.text()),
            })
            .collect();
        assert!(all.iter().all(|words| *words == all[0]));
        all.into_iter().next().expect("some seeds")
    }

    /// The fault it must end with.
    #[track_caller]
    pub(crate) fn fault(&self, seed: u64) -> String {
        match self.run(seed, MmaMode::Fast) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("no fault\n{}", self.text()),
        }
    }

    /// What the run says it read too early.
    #[track_caller]
    pub(crate) fn remark(&self, seed: u64) -> String {
        let ran = self.run(seed, MmaMode::Fast);
        let (_, report) = ran.unwrap_or_else(|error| panic!("{error}"));
        report
            .early_read
            .expect("something read too early")
            .to_string()
    }
}

/// How a tile of 32-byte rows lies in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    pub start: u32,
    pub leading: u32,
    pub stride: u32,
    pub swizzle: u32,
}

impl Tile {
    /// Without a swizzle: eight rows of 16 bytes, then the same for the second 16 bytes.
    pub(crate) fn plain(start: u32) -> Self {
        Self {
            start,
            leading: 128,
            stride: 256,
            swizzle: 0,
        }
    }

    /// 128-byte rows with their swizzle.
    pub(crate) fn swizzled(start: u32) -> Self {
        Self::coded(start, 2)
    }

    /// By a descriptor's code for the swizzle: rows as wide as it is.
    pub(crate) fn coded(start: u32, swizzle: u32) -> Self {
        match swizzle {
            0 => Self::plain(start),
            _ => Self {
                start,
                leading: 16,
                stride: 8 * width(swizzle),
                swizzle,
            },
        }
    }

    /// Sets a register to its descriptor; `%rd8` is the address of `tile`, over 16.
    pub(crate) fn descriptor(&self, register: &str) -> String {
        let bits = u64::from(self.start >> 4)
            | u64::from(self.leading >> 4) << 16
            | u64::from(self.stride >> 4) << 32
            | 1 << 46
            | u64::from(self.swizzle) << 61;
        format!("add.u64 {register}, %rd8, {bits:#x};")
    }

    /// Where a byte of a row lies. `tile` begins at a multiple of 1024.
    pub(crate) fn at(&self, row: u32, byte: u32) -> usize {
        let (unit, within) = (byte / 16, byte % 16);
        let linear = match self.swizzle {
            0 => self.start + row / 8 * self.stride + row % 8 * 16 + unit * self.leading,
            code => self.start + row / 8 * self.stride + row % 8 * width(code) + unit * 16,
        };
        let mask = match self.swizzle {
            0 => 0,
            code => linear >> 7 & (width(code) / 16 - 1),
        };
        ((linear ^ mask << 4) + within) as usize
    }

    pub(crate) fn put(&self, input: &mut [u8], row: u32, bytes: &[u8; 32]) {
        for (i, byte) in (0..).zip(bytes) {
            input[self.at(row, i)] = *byte;
        }
    }
}

/// Bytes of a row under a swizzle.
fn width(swizzle: u32) -> u32 {
    match swizzle {
        2 => 128,
        4 => 64,
        _ => 32,
    }
}

/// Numbers that look random.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as u32
    }

    pub(crate) fn row(&mut self) -> [u8; 32] {
        std::array::from_fn(|_| self.next() as u8)
    }
}
