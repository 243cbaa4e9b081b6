//! Speed of whole kernels on one core: warp instructions per second of a loop as dequantisation
//! has it, and FLOP/s of a loop of wgmma. Throughput "elements" are warp instructions and FLOP.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptx_emu::{Config, Launch, Level, Memory, Module, Params};

const HEADER: &str = ".version 8.8\n.target sm_90a\n.address_size 64\n";

/// Spreads nibbles to halves and scales them, 1000 times.
fn integer_loop() -> String {
    format!(
        "{HEADER}.visible .entry k(.param .u64 out) {{
        .reg .pred %p; .reg .b32 %r<20>; .reg .b64 %rd<4>; .shared .align 16 .b8 tile[4096];
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0x12345678;
        shl.b32 %r14, %r1, 2; mov.u32 %r15, tile; add.u32 %r15, %r15, %r14;
        LOOP: add.u32 %r3, %r3, %r1; shl.b32 %r4, %r3, 4; prmt.b32 %r5, %r3, %r4, 0x5140;
        lop3.b32 %r6, %r5, 0x80808080, %r4, 0xEA; and.b32 %r7, %r5, 0x0e000e00; shr.u32 %r8, %r6, 3;
        lop3.b32 %r9, %r7, %r8, 0x9c009c00, 0xF8; mul.rn.f16x2 %r10, %r9, %r6; xor.b32 %r11, %r10, %r7;
        st.shared.b32 [%r15], %r11; ld.shared.b32 %r12, [%r15]; mad.lo.u32 %r3, %r12, %r11, %r3;
        add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 1000; @%p bra LOOP;
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r3; ret; }}"
    )
}

/// 256 groups of four m64n128k16, each waited for before the next but one.
fn wgmma_loop() -> String {
    let names: Vec<String> = (0..64).map(|i| format!("%f{i}")).collect();
    let (d, sum) = (names.join(","), "add.f32 %f0, %f0, %f1;");
    let step = |k: u32| {
        format!(
            "add.u64 %rd6, %rd4, {0}; add.u64 %rd7, %rd5, {0};
             wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{{d}}}, %rd6, %rd7, 1, 1, 1, 0, 0;",
            2 * k
        )
    };
    let steps: String = (0..4).map(step).collect();
    format!(
        "{HEADER}.visible .entry k(.param .u64 out) {{
        .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<64>;
        .shared .align 1024 .b8 tile[32768];
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r3, 0; mov.u32 %r4, tile; shl.b32 %r5, %r1, 4;
        add.u32 %r5, %r4, %r5;
        ZERO: st.shared.v4.u32 [%r5], {{%r3,%r3,%r3,%r3}}; add.u32 %r5, %r5, 2048; add.u32 %r3, %r3, 1;
        setp.lt.u32 %p, %r3, 16; @%p bra ZERO; bar.sync 0;
        cvt.u64.u32 %rd4, %r4; shr.u64 %rd4, %rd4, 4; or.b64 %rd4, %rd4, 0x4000004000010000;
        add.u64 %rd5, %rd4, 512; mov.u32 %r2, 0;
        LOOP: wgmma.fence.sync.aligned; {steps} wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 1; add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 256; @%p bra LOOP;
        wgmma.wait_group.sync.aligned 0; {sum}
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.f32 [%rd3], %f0; ret; }}"
    )
}

fn bench(
    c: &mut Criterion,
    name: &str,
    ptx: &str,
    threads: u32,
    work: fn(&ptx_emu::Counters) -> u64,
) {
    let module = Module::load(ptx).expect("the benchmark's own PTX");
    let mut memory = Memory::new();
    let out = memory.alloc(4096).expect("a page");
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    for level in Level::available() {
        let config = Config {
            threads: 1,
            level,
            ..Config::default()
        };
        let launch = Launch::new("k")
            .block([threads, 1, 1])
            .params(Params::new().pointer(out))
            .config(config);
        let report = launch.run(&module, &mut memory).expect("a correct kernel");
        group.throughput(Throughput::Elements(work(&report.counters)));
        group.bench_function(format!("{level:?}"), |b| {
            b.iter(|| launch.run(&module, &mut memory).expect("a correct kernel"));
        });
    }
    group.finish();
}

fn kernels(c: &mut Criterion) {
    bench(c, "warp instructions", &integer_loop(), 256, |counters| {
        counters.total_instructions()
    });
    bench(c, "wgmma", &wgmma_loop(), 128, |counters| {
        counters.mma_flops
    });
}

criterion_group!(benches, kernels);
criterion_main!(benches);
