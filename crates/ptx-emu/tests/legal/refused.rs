//! One kernel that cannot run does not hurt its module.

use ptx_emu::LaunchError;

use crate::{kernel, launch, module};

/// Three kernels: one right, one with an unknown instruction, one that calls such a function.
fn mixed() -> String {
    format!(
        ".func bad() {{ tcgen05.wait::ld.sync.aligned; ret; }}
         .visible .entry first() {{ .reg .b32 %r<2>; frobnicate.u32 %r1; ret; }}
         .visible .entry second() {{ call bad; ret; }}\n{}",
        kernel("st.global.u32 [%rd2], 8;")
    )
}

#[test]
fn the_others_run_and_the_list_says_which_cannot() {
    let module = module(&mixed());
    assert_eq!(module.kernels().map(|k| k.name).collect::<Vec<_>>(), ["k"]);
    assert_eq!(launch(&module, 32).expect("runs"), [8; 32]);
    let refused: Vec<(String, u32)> = module
        .refused()
        .iter()
        .map(|(name, error)| (format!("{name}: {}", error.problem), error.ptx_line))
        .collect();
    let expected = [
        ("first: instruction `frobnicate.u32` is not supported", 5),
        (
            "second: `tcgen05.wait::ld` is not supported on .target sm_90a: \
                 it needs sm_100a/f, sm_103a/f, sm_110a/f",
            4,
        ),
    ];
    assert_eq!(
        refused,
        expected.map(|(what, line)| (what.to_owned(), line))
    );
}

#[test]
fn launching_a_refused_kernel_gives_the_reason_and_the_line() {
    let text = mixed()
        .replace(".entry k(", ".entry other(")
        .replace(".entry first(", ".entry k(");
    let module = module(&text);
    let Err(error @ LaunchError::Refused { .. }) = launch(&module, 1) else {
        panic!("it ran");
    };
    assert_eq!(
        error.to_string(),
        "kernel `k` cannot run in the emulator: ptx line 5: \
         instruction `frobnicate.u32` is not supported in `frobnicate.u32 %r1`"
    );
    let LaunchError::Refused { reason, .. } = error else {
        unreachable!()
    };
    assert_eq!(reason.ptx_line, 5);
}

#[test]
fn an_unknown_kernel_lists_the_refused_ones_too() {
    let text = mixed().replace(".entry k(", ".entry other(");
    let error = launch(&module(&text), 1).expect_err("no such kernel");
    let expected = "the module has no kernel `k`; it has: other, first, second";
    assert_eq!(error.to_string(), expected);
}

/// A body this parser does not understand is its own function's business.
#[test]
fn a_body_that_does_not_parse_refuses_only_its_kernel() {
    let text = format!(
        ".visible .entry odd() {{ .reg .f32 %f<9>; {{ .reg .b32 %r; }}\n\
         tex.2d.v4.f32.f32 {{%f1, %f2, %f3, %f4}}, [t, s, {{%f5, %f6}}];\nret; }}\n{}",
        kernel("st.global.u32 [%rd2], 8;")
    );
    let module = module(&text);
    assert_eq!(launch(&module, 32).expect("runs"), [8; 32]);
    let reason = module.refused()["odd"].to_string();
    assert_eq!(reason, "ptx line 5: expected `]`, found `,`");
    // A file cut short is no module.
    let cut = format!(".version 8.7\n.target sm_90a\n{}", &text[..text.len() - 4]);
    assert!(ptx_emu::Module::load(&cut).is_err());
}
