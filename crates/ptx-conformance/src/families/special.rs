//! Special registers with one right answer, fences, and instructions that steer the machine.

use std::fmt::Write;

use crate::case::{Case, Launch};
use crate::elementwise::Elementwise;
use crate::kernel::Kernel;
use crate::values::Ty::*;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [coordinates(), clocks(), fences(), steering()].concat()
}

fn coordinates() -> Vec<Case> {
    let names = [
        "tid.x",
        "tid.y",
        "tid.z",
        "ntid.x",
        "ntid.y",
        "ntid.z",
        "ctaid.x",
        "ctaid.y",
        "ctaid.z",
        "nctaid.x",
        "nctaid.y",
        "nctaid.z",
        "laneid",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
        "dynamic_smem_size",
    ];
    let mut body = String::from(
        "mov.u32 %r0, %tid.z;\nmov.u32 %r1, %ntid.y;\nmov.u32 %r2, %tid.y;\nmad.lo.u32 %r0, %r0, %r1, %r2;\nmov.u32 %r1, %ntid.x;\nmad.lo.u32 %r0, %r0, %r1, %thread;\n\
         mov.u32 %r3, %ctaid.z;\nmov.u32 %r4, %nctaid.y;\nmov.u32 %r5, %ctaid.y;\nmad.lo.u32 %r3, %r3, %r4, %r5;\nmov.u32 %r4, %nctaid.x;\nmov.u32 %r5, %ctaid.x;\n\
         mad.lo.u32 %r3, %r3, %r4, %r5;\nmad.lo.u32 %r0, %r3, 40, %r0;\n",
    );
    let _ = writeln!(body, "mad.wide.u32 %l0, %r0, {}, %out0;", 4 * names.len());
    for (i, name) in names.iter().enumerate() {
        let _ = writeln!(
            body,
            "mov.u32 %r6, %{name};\nst.global.b32 [%l0+{}], %r6;",
            4 * i
        );
    }
    let launch = Launch {
        grid: [3, 2, 2],
        block: [5, 4, 2],
        cluster: [1, 1, 1],
        shared: 256,
    };
    vec![
        Kernel::new("special/coordinates", launch)
            .forms(names.map(|n| format!("mov.u32 %{n}")))
            .output(12 * 40 * 4 * names.len())
            .body(&body)
            .case(),
    ]
}

/// Clocks advance; how far is nobody's business here.
fn clocks() -> Vec<Case> {
    let advance = |register: &str, ty: &str, class: &str| {
        format!(
            "mov.{ty} %{class}10, %{register};\nnanosleep.u32 200;\nmov.{ty} %{class}11, %{register};\nsub.{ty} %{class}12, %{class}11, %{class}10;\nsetp.ne.{ty} %p0, %{class}12, 0;\nselp.u32 %d, 1, 0, %p0;"
        )
    };
    let case = |name: &str, body: &str| {
        Elementwise::new(name)
            .operand(U32, vec![0; 32])
            .result(U32)
            .body(body)
            .case()
    };
    vec![
        case("mov.u64 %clock64/advances", &advance("clock64", "u64", "l")),
        case("mov.u32 %clock/advances", &advance("clock", "u32", "r")),
        case(
            "nanosleep.u32/register",
            "add.u32 %r0, %a, 100;\nnanosleep.u32 %r0;\nadd.u32 %d, %a, 5;",
        ),
        case(
            "mov.u64 %globaltimer/not-zero",
            "mov.u64 %l0, %globaltimer;\nsetp.ne.u64 %p0, %l0, 0;\nselp.u32 %d, 1, 0, %p0;",
        ),
    ]
}

/// A fence between a thread's own accesses changes nothing it can see; it has to be accepted.
fn fences() -> Vec<Case> {
    let mut forms: Vec<String> = Vec::new();
    for scope in ["cta", "cluster", "gpu", "sys"] {
        for semantics in ["sc", "acq_rel", "acquire", "release"] {
            forms.push(format!("fence.{semantics}.{scope}"));
        }
    }
    forms.extend(
        [
            "membar.cta",
            "membar.gl",
            "membar.sys",
            "fence.proxy.alias",
            "fence.proxy.async",
            "fence.proxy.async.global",
            "fence.proxy.async.shared::cta",
            "fence.proxy.async.shared::cluster",
            "fence.proxy.tensormap::generic.release.gpu",
            "fence.mbarrier_init.release.cluster",
            "fence.acquire.sync_restrict::shared::cluster.cluster",
            "fence.release.sync_restrict::shared::cta.cluster",
        ]
        .map(str::to_owned),
    );
    let case = |form: &String| {
        Elementwise::new(form.clone())
            .operand(U32, U32.random(101, 32))
            .result(U32)
            .body(&format!("mad.wide.u32 %l0, %index, 4, %out0;\nst.global.b32 [%l0], %a;\n{form};\nld.global.b32 %d, [%l0];\nadd.u32 %d, %d, 3;"))
            .case()
    };
    forms.iter().map(case).collect()
}

fn steering() -> Vec<Case> {
    let registers = Kernel::new("setmaxnreg.inc.sync.aligned.u32/hand-over", Launch::single(256))
        .forms(["setmaxnreg.inc.sync.aligned.u32", "setmaxnreg.dec.sync.aligned.u32"])
        .attributes(".maxntid 256, 1, 1\n.minnctapersm 1\n.maxnreg 64")
        .output(1024)
        .body(
            "setp.ge.u32 %p0, %thread, 128;\n@%p0 bra TAKE;\nsetmaxnreg.dec.sync.aligned.u32 24;\nmul.lo.u32 %r0, %thread, 3;\nbra MEET;\n\
             TAKE:\nsetmaxnreg.inc.sync.aligned.u32 104;\nmul.lo.u32 %r0, %thread, 5;\nMEET:\nmad.wide.u32 %l0, %thread, 4, %out0;\nst.global.b32 [%l0], %r0;",
        )
        .case();
    let dependents = Kernel::new("griddepcontrol.wait/alone", Launch::linear(2, 32))
        .forms(["griddepcontrol.wait", "griddepcontrol.launch_dependents"])
        .output(256)
        .body(
            "griddepcontrol.wait;\nmov.u32 %r0, %ctaid.x;\nmad.lo.u32 %r0, %r0, 32, %thread;\nmad.wide.u32 %l0, %r0, 4, %out0;\nst.global.b32 [%l0], %r0;\n\
             griddepcontrol.launch_dependents;",
        )
        .case();
    let trap = Elementwise::new("trap/never-reached")
        .operand(U32, (0..32).collect())
        .result(U32)
        .body("setp.gt.u32 %p0, %a, 1000;\n@%p0 trap;\nadd.u32 %d, %a, 1;")
        .case();
    vec![registers, dependents, trap]
}
