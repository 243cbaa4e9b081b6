//! 8×8 matrices between shared memory and registers.

use crate::case::{Case, Launch};
use crate::kernel::Kernel;
use crate::values::Ty::*;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for count in [1usize, 2, 4] {
        for trans in ["", ".trans"] {
            for space in ["shared", "shared::cta"] {
                cases.push(load(count, trans, space));
                cases.push(store(count, trans, space));
            }
        }
    }
    cases.push(generic());
    cases.push(transpose());
    cases
}

/// Lane `l` names row `(l · 11) mod 32`, so that a row taken from the wrong lane shows.
const ROW: &str = "mov.u32 %r0, rows;\nmul.lo.u32 %r1, %thread, 11;\nand.b32 %r1, %r1, 31;\nmad.lo.u32 %r2, %r1, 16, %r0;\n";

fn list(count: usize) -> String {
    let names: Vec<String> = (10..10 + count).map(|i| format!("%r{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

fn load(count: usize, trans: &str, space: &str) -> Case {
    let form = format!("ldmatrix.sync.aligned.m8n8.x{count}{trans}.{space}.b16");
    let stores: String = (0..count)
        .map(|i| format!("st.global.b32 [%l1+{}], %r{};\n", 128 * i, 10 + i))
        .collect();
    Kernel::new(form.clone(), Launch::single(32))
        .declare(".shared .align 16 .b8 rows[512];")
        .input(U16.pack(&(0..256).collect::<Vec<_>>()))
        .output(count * 128)
        .body(&format!(
            "{ROW}mad.lo.u32 %r3, %thread, 16, %r0;\nmad.wide.u32 %l0, %thread, 16, %in0;\nld.global.v2.b64 {{%l2, %l3}}, [%l0];\nst.shared.v2.b64 [%r3], {{%l2, %l3}};\n\
             bar.sync 0;\n{form} {}, [%r2];\nmad.wide.u32 %l1, %thread, 4, %out0;\n{stores}",
            list(count)
        ))
        .case()
}

fn store(count: usize, trans: &str, space: &str) -> Case {
    let form = format!("stmatrix.sync.aligned.m8n8.x{count}{trans}.{space}.b16");
    let loads: String = (0..count)
        .map(|i| format!("ld.global.b32 %r{}, [%l0+{}];\n", 10 + i, 128 * i))
        .collect();
    Kernel::new(form.clone(), Launch::single(32))
        .declare(".shared .align 16 .b8 rows[512];")
        .input(U16.pack(&(0..256).collect::<Vec<_>>()))
        .output(512)
        .body(&format!(
            "{ROW}mad.lo.u32 %r3, %thread, 16, %r0;\nmov.b64 %l2, -1;\nst.shared.v2.b64 [%r3], {{%l2, %l2}};\nmad.wide.u32 %l0, %thread, 4, %in0;\n{loads}bar.sync 0;\n\
             {form} [%r2], {};\nbar.sync 0;\nld.shared.v2.b64 {{%l2, %l3}}, [%r3];\nmad.wide.u32 %l1, %thread, 16, %out0;\nst.global.v2.b64 [%l1], {{%l2, %l3}};",
            list(count)
        ))
        .case()
}

fn generic() -> Case {
    Kernel::new("ldmatrix.sync.aligned.m8n8.x4.b16/generic", Launch::single(32))
        .declare(".shared .align 16 .b8 rows[512];")
        .input(U16.pack(&(0..256).collect::<Vec<_>>()))
        .output(512)
        .body(
            "mov.u64 %l4, rows;\ncvta.shared.u64 %l4, %l4;\nmov.u32 %r0, rows;\nmad.lo.u32 %r3, %thread, 16, %r0;\nmad.wide.u32 %l0, %thread, 16, %in0;\n\
             ld.global.v2.b64 {%l2, %l3}, [%l0];\nst.shared.v2.b64 [%r3], {%l2, %l3};\nbar.sync 0;\nmad.wide.u32 %l4, %thread, 16, %l4;\n\
             ldmatrix.sync.aligned.m8n8.x4.b16 {%r10, %r11, %r12, %r13}, [%l4];\nmad.wide.u32 %l1, %thread, 16, %out0;\nst.global.v4.b32 [%l1], {%r10, %r11, %r12, %r13};",
        )
        .case()
}

fn transpose() -> Case {
    Kernel::new("movmatrix.sync.aligned.m8n8.trans.b16", Launch::single(32))
        .input(U32.pack(&U32.random(111, 32)))
        .output(128)
        .body(
            "mad.wide.u32 %l0, %thread, 4, %in0;\nld.global.b32 %r0, [%l0];\nmovmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;\n\
             mad.wide.u32 %l1, %thread, 4, %out0;\nst.global.b32 [%l1], %r1;",
        )
        .case()
}
