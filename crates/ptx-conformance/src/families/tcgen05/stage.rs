//! A kernel around some `tcgen05` instructions: shared memory is filled, tensor memory allocated,
//! one thread issues, all wait, and columns of tensor memory are stored.

use crate::case::{Case, Launch};
use crate::kernel::Kernel;

/// What a case puts into the kernel.
pub(super) struct Stage {
    pub name: String,
    pub forms: Vec<String>,
    /// Bytes of `tile` in shared memory, those of each CTA of a pair one behind the other.
    pub tile: Vec<u8>,
    /// Columns that are filled with numbers of their lane and column before anything else.
    pub filled: u32,
    /// For all threads: `%base` is the address of tensor memory, `%own` that of the warp's lanes.
    pub before: String,
    /// For one thread: `%tile` is the address of `tile` as descriptors have it.
    pub issue: String,
    /// For all threads, in the place of storing columns; then words of each thread.
    pub after: Option<(String, u32)>,
    /// Columns that are stored, a multiple of 8.
    pub columns: u32,
    pub ctas: u32,
}

impl Stage {
    pub(super) fn new(name: String, form: &str) -> Self {
        Self {
            name,
            forms: vec![form.to_owned()],
            tile: vec![0; 16],
            filled: 0,
            before: String::new(),
            issue: String::new(),
            after: None,
            columns: 8,
            ctas: 1,
        }
    }

    pub(super) fn case(self) -> Case {
        let g = self.ctas;
        let bytes = self.tile.len() as u32 / g;
        let launch = match g {
            1 => Launch::single(128),
            _ => Launch::one_cluster(g, 128),
        };
        let together = match g {
            1 => "bar.sync 0;",
            _ => "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;",
        };
        let (cast, mask) = match g {
            1 => ("", ""),
            _ => (".multicast::cluster", ", %h0"),
        };
        let words = self.after.as_ref().map_or(self.columns, |after| after.1);
        let store = match &self.after {
            Some((text, _)) => text.clone(),
            None => dump(self.columns),
        };
        let body = format!(
            "mov.u32 %rank, %cluster_ctarank;\nmov.u32 %r1, tile;\nshr.u32 %r2, %thread, 5;\n\
             mul.lo.u32 %r3, %rank, {bytes};\ncvt.u64.u32 %l0, %r3;\nadd.u64 %l1, %in0, %l0;\n\
             mul.lo.u32 %r4, %thread, 16;\n\
             COPY: setp.ge.u32 %p0, %r4, {bytes};\n@%p0 bra COPIED;\ncvt.u64.u32 %l2, %r4;\n\
             add.u64 %l2, %l1, %l2;\nld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%l2];\n\
             add.u32 %r9, %r1, %r4;\nst.shared.v4.b32 [%r9], {{%r5, %r6, %r7, %r8}};\n\
             add.u32 %r4, %r4, 2048;\nbra COPY;\n\
             COPIED: fence.proxy.async.shared::cta;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra ALLOCATED;\n\
             tcgen05.alloc.cta_group::{g}.sync.aligned.shared::cta.b32 [slot], 512;\n\
             tcgen05.relinquish_alloc_permit.cta_group::{g}.sync.aligned;\n\
             ALLOCATED: setp.ne.u32 %p2, %thread, 0;\n@%p2 bra READY;\n\
             mbarrier.init.shared::cta.b64 [done], 1;\nfence.mbarrier_init.release.cluster;\n\
             READY:\n{together}\nld.shared.b32 %base, [slot];\nshl.b32 %own, %r2, 21;\n\
             add.u32 %own, %own, %base;\nand.b32 %r13, %r1, 0x3ffff;\ncvt.u64.u32 %tile, %r13;\nshr.u64 %tile, %tile, 4;\n\
             {fill}{before}tcgen05.fence::before_thread_sync;\n{together}\n\
             tcgen05.fence::after_thread_sync;\n\
             or.b32 %r10, %thread, %rank;\nsetp.ne.u32 %p3, %r10, 0;\n@%p3 bra ISSUED;\n\
             mov.b16 %h0, 3;\n{issue}mov.u32 %r11, done;\n\
             tcgen05.commit.cta_group::{g}.mbarrier::arrive::one.shared::cluster{cast}.b64 [%r11]{mask};\n\
             ISSUED: mbarrier.try_wait.parity.shared::cta.b64 %p4, [done], 0;\n@!%p4 bra ISSUED;\n\
             tcgen05.fence::after_thread_sync;\nmad.lo.u32 %r12, %rank, 128, %thread;\n\
             mul.wide.u32 %l3, %r12, {row};\nadd.u64 %out, %out0, %l3;\n{store}\
             tcgen05.fence::before_thread_sync;\n{together}\n@%p1 bra END;\n\
             tcgen05.dealloc.cta_group::{g}.sync.aligned.b32 %base, 512;\nEND:\n",
            fill = fill(self.filled),
            before = self.before,
            issue = self.issue,
            row = words * 4,
        );
        Kernel::new(self.name, launch)
            .target("sm_100a")
            .forms(self.forms)
            .declare(".reg .b32 %v<128>;\n.reg .b32 %base, %own, %rank;\n.reg .b64 %tile, %out;")
            .declare(&format!(
                ".shared .align 1024 .b8 tile[{bytes}];\n.shared .align 8 .b64 done;\n\
                 .shared .align 4 .b32 slot;"
            ))
            .input(self.tile)
            .output((g * 128 * words * 4) as usize)
            .body(&body)
            .case()
    }
}

/// `%v0` and so on.
pub(super) fn registers(count: u32) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("%v{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// Stores registers of each thread.
pub(super) fn store(count: u32) -> String {
    (0..count)
        .map(|i| format!("st.global.b32 [%out+{}], %v{i};\n", 4 * i))
        .collect()
}

fn fill(columns: u32) -> String {
    let mut text = String::new();
    for first in (0..columns).step_by(8) {
        for i in 0..8 {
            text += &format!(
                "mad.lo.u32 %v{i}, %thread, 0x01010101, {};\n",
                (first + i) * 7
            );
        }
        text += &format!(
            "tcgen05.st.sync.aligned.32x32b.x8.b32 [%own+{first}], {};\n",
            registers(8)
        );
    }
    text + "tcgen05.wait::st.sync.aligned;\n"
}

fn dump(columns: u32) -> String {
    let mut text = String::new();
    for first in (0..columns).step_by(8) {
        text += &format!(
            "tcgen05.ld.sync.aligned.32x32b.x8.b32 {}, [%own+{first}];\n\
             tcgen05.wait::ld.sync.aligned;\n",
            registers(8)
        );
        text += &(0..8)
            .map(|i| format!("st.global.b32 [%out+{}], %v{i};\n", 4 * (first + i)))
            .collect::<String>();
    }
    text
}

/// How a tile lies in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile {
    pub start: u32,
    pub leading: u32,
    pub stride: u32,
    /// The descriptor's code: 0, or 2, 4, 6 for rows of 128, 64 and 32 bytes.
    pub swizzle: u32,
}

impl Tile {
    pub(super) fn new(start: u32, swizzle: u32) -> Self {
        let (leading, stride) = match swizzle {
            0 => (128, 256),
            2 => (16, 1024),
            4 => (16, 512),
            _ => (16, 256),
        };
        Self {
            start,
            leading,
            stride,
            swizzle,
        }
    }

    /// Sets a 64-bit register to the descriptor.
    pub(super) fn descriptor(&self, register: &str) -> String {
        let bits = u64::from(self.start >> 4)
            | u64::from(self.leading >> 4) << 16
            | u64::from(self.stride >> 4) << 32
            | 1 << 46
            | u64::from(self.swizzle) << 61;
        format!("add.u64 {register}, %tile, {bits:#x};\n")
    }

    /// Puts 32 bytes of a K-major row where the instruction finds them.
    pub(super) fn put(&self, bytes: &mut [u8], row: u32, values: &[u8]) {
        let width = [16, 0, 128, 0, 64, 0, 32][self.swizzle as usize];
        for (i, value) in (0..).zip(values) {
            let unit = i / 16;
            let linear = match self.swizzle {
                0 => self.start + row / 8 * self.stride + row % 8 * 16 + unit * self.leading,
                _ => self.start + row / 8 * self.stride + row % 8 * width + unit * 16,
            };
            let mask = linear >> 7 & (width / 16 - 1);
            bytes[((linear ^ mask << 4) + i % 16) as usize] = *value;
        }
    }
}
