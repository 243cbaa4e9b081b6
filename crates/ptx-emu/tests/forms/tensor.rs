//! Tensor cores and what feeds them.

use crate::accepts;

fn registers(prefix: &str, count: u32) -> String {
    let names: Vec<String> = (0..count).map(|at| format!("{prefix}{at}")).collect();
    format!("{{{}}}", names.join(", "))
}

#[test]
fn wgmma_in_every_shape() {
    accepts(
        "wgmma.fence.sync.aligned;
         wgmma.commit_group.sync.aligned;
         wgmma.wait_group.sync.aligned 0;",
    );
    let types = [
        ("f32", "f16", "f16", 16, 2, true),
        ("f16", "f16", "f16", 16, 2, true),
        ("f32", "bf16", "bf16", 16, 2, true),
        ("f32", "tf32", "tf32", 8, 0, true),
        ("f32", "e4m3", "e5m2", 32, 0, true),
        ("f16", "e5m2", "e5m2", 32, 0, true),
        ("s32", "s8", "u8", 32, 0, false),
        ("s32", "b1", "b1", 256, 0, false),
    ];
    for (d, a, b, k, transposes, signs) in types {
        for n in (8..=256).step_by(8) {
            if d == "s32" && n > 24 && n % 16 != 0 {
                continue;
            }
            let count = if d == "f16" { n / 4 } else { n / 2 };
            let acc = registers("%f", count);
            let popc = if a == "b1" { ".and.popc" } else { "" };
            let shape = format!("wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b}{popc}");
            let scale = if signs { ", 1, -1" } else { "" };
            let trans_ss = if transposes == 2 { ", 0, 1" } else { "" };
            let trans_rs = if transposes == 2 { ", 1" } else { "" };
            accepts(&format!("{shape} {acc}, %rd1, %rd2, %p1{scale}{trans_ss};"));
            accepts(&format!(
                "{shape} {acc}, {{%r1, %r2, %r3, %r4}}, %rd2, 1{scale}{trans_rs};"
            ));
        }
    }
}

#[test]
fn matrices() {
    accepts(
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];
         ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16 {%r1, %r2, %r3, %r4}, [%r5+32];
         stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r5], {%r1, %r2, %r3, %r4};
         stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%r5], {%r1, %r2, %r3, %r4};
         stmatrix.sync.aligned.x4.trans.m8n8.shared.b16 [%r5], {%r1, %r2, %r3, %r4};
         movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;
         mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r7, %r8}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, %r8};
         mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r5}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r5}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
         mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r11, %r12, %r13, %r14}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r11, %r12, %r13, %r14};
         mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r11, %r12, %r13, %r14}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r11, %r12, %r13, %r14};
         mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r11, %r12}, {%r1}, {%r5}, {%r11, %r12};
         mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r11, %r12, %r13, %r14}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r11, %r12, %r13, %r14};
         mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd1, %fd2};
         mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64.rn {%fd1, %fd2, %fd3, %fd4}, {%fd5, %fd6}, {%fd9}, {%fd1, %fd2, %fd3, %fd4};
         mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%fd1, %fd2, %fd3, %fd4}, {%fd5, %fd6, %fd7, %fd8}, {%fd9, %fd10}, {%fd1, %fd2, %fd3, %fd4};
         mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, {%r1, %r2}, {%r5, %r6}, {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};
         mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%f1, %f2, %f3, %f4}, %r9, 0;",
    );
}
