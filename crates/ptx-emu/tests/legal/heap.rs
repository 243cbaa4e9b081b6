//! `malloc` and `free` of kernels.

use super::{kernel, run};

const DECLARED: &str = ".extern .func (.param .b64 r) malloc (.param .b64 a);\n\
    .extern .func free (.param .b64 a);\n";

/// `%rd3` = malloc(bytes)
fn allocate(bytes: &str) -> String {
    format!(
        "{{ .param .b64 a; .param .b64 r; st.param.b64 [a], {bytes};\n\
         call.uni (r), malloc, (a); ld.param.b64 %rd3, [r]; }}\n"
    )
}

const FREE: &str = "{ .param .b64 a; st.param.b64 [a], %rd3; call.uni free, (a); }\n";

#[test]
fn every_thread_has_memory_of_its_own() {
    let lines = format!(
        "{}st.u32 [%rd3], %r1; st.u32 [%rd3+96], %r1; bar.warp.sync -1;\n\
         ld.u32 %r2, [%rd3]; ld.u32 %r3, [%rd3+96]; add.u32 %r2, %r2, %r3; st.global.u32 [%rd2], %r2;\n{FREE}",
        allocate("100")
    );
    let twice: Vec<u32> = (0..32).map(|lane| 2 * lane).collect();
    assert_eq!(run(&format!("{DECLARED}{}", kernel(&lines)), 32), twice);
}

#[test]
fn memory_is_given_again_and_runs_out() {
    let again = format!(
        "mov.u32 %r2, 0; mov.u32 %r3, 0;\nAGAIN: {}setp.ne.u64 %p1, %rd3, 0; @%p1 add.u32 %r3, %r3, 1;\n\
         @%p1 st.u32 [%rd3], %r2;\n{FREE}\
         add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 100; @%p2 bra AGAIN;\n\
         {}set.eq.u32.u64 %r4, %rd3, 0;\n{FREE}st.global.v2.u32 [%rd1], {{%r3, %r4}};",
        allocate("1000000"),
        allocate("200000000"),
    );
    let one = format!("setp.ne.u32 %p3, %r1, 0; @%p3 ret;\n{again}");
    assert_eq!(
        run(&format!("{DECLARED}{}", kernel(&one)), 2),
        [100, u32::MAX]
    );
}

#[test]
fn functions_of_these_names_may_be_the_modules_own() {
    let own = ".func (.param .b64 r) malloc (.param .b64 a) { .reg .b64 %x; ld.param.b64 %x, [a];\n\
         st.param.b64 [r], %x; ret; }\n";
    let lines = format!(
        "{}cvt.u32.u64 %r2, %rd3; st.global.u32 [%rd1], %r2;",
        allocate("77")
    );
    assert_eq!(run(&format!("{own}{}", kernel(&lines)), 1), [77]);
}
