//! Addresses of functions: in tables, in registers, and in other kernels' tables.

use ptx_emu::LaunchError;

use crate::{kernel, launch, module, run};

const FUNCTIONS: &str = "
    .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x];
        add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }
    .func (.param .b32 r) square(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x];
        mul.lo.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }
    .func (.param .b64 r) wide(.param .b64 x) { .reg .b64 %rd<2>; ld.param.b64 %rd1, [x];
        st.param.b64 [r], %rd1; ret; }
    .func nothing() { ret; }
    .global .align 8 .u64 vt[4] = {0, twice, square, nothing};
    .const .align 8 .u64 ct[2] = {square, wide};
";

/// Calls what `%rd3` holds with the lane's number.
const CALL: &str = "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1;
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (y), %rd3, (x), proto; ld.param.b32 %r2, [y]; }
    st.global.u32 [%rd2], %r2;";

#[test]
fn a_table_of_functions_is_called_through() {
    // Odd lanes square, even lanes double: one call, two functions.
    let lines = format!(
        "and.b32 %r3, %r1, 1; add.u32 %r3, %r3, 1;
         mov.u64 %rd4, vt; mad.wide.u32 %rd4, %r3, 8, %rd4; ld.global.u64 %rd3, [%rd4];\n{CALL}"
    );
    let out = run(&format!("{FUNCTIONS}{}", kernel(&lines)), 32);
    let expected: Vec<u32> = (0..32)
        .map(|x| if x % 2 == 1 { x * x } else { 2 * x })
        .collect();
    assert_eq!(out, expected);
}

#[test]
fn constant_tables_and_moved_addresses_agree() {
    let lines = format!(
        "ld.const.u64 %rd3, ct[0]; mov.u64 %rd4, square; setp.ne.u64 %p1, %rd3, %rd4;
         @%p1 trap; mov.u64 %rd5, twice; setp.eq.u64 %p1, %rd3, %rd5; @%p1 trap;\n{CALL}"
    );
    let out = run(&format!("{FUNCTIONS}{}", kernel(&lines)), 32);
    assert_eq!(out, (0..32).map(|x| x * x).collect::<Vec<u32>>());
}

/// A pointer stored by one kernel is called by another of the module.
#[test]
fn addresses_are_the_same_in_every_kernel() {
    use ptx_emu::{Launch, Memory, Params};
    let text = format!(
        "{FUNCTIONS}.global .u64 slot;
         .visible .entry set() {{ .reg .b64 %rd<2>; mov.u64 %rd1, square;
            st.global.u64 [slot], %rd1; ret; }}\n{}",
        kernel(&format!("ld.global.u64 %rd3, [slot];\n{CALL}"))
    );
    let module = module(&text);
    let mut memory = Memory::new();
    let out = memory.alloc(128).expect("memory");
    let launches = [
        Launch::new("set"),
        Launch::new("k")
            .block([32, 1, 1])
            .params(Params::new().pointer(out)),
    ];
    for launch in launches {
        launch
            .run(&module, &mut memory)
            .unwrap_or_else(|e| panic!("{e}"));
    }
    let bytes = memory.read_vec(out, 128).expect("in bounds");
    let word = |x: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[4 * x + i]));
    assert_eq!(word(9), 81);
}

#[test]
fn what_is_no_function_of_the_prototype_faults() {
    for table in ["vt[0]", "vt[3]", "ct[1]"] {
        let space = if table.starts_with('c') {
            "const"
        } else {
            "global"
        };
        let lines = format!("ld.{space}.u64 %rd3, {table};\n{CALL}");
        let module = module(&format!("{FUNCTIONS}{}", kernel(&lines)));
        let Err(LaunchError::Fault(fault)) = launch(&module, 32) else {
            panic!("{table}: no fault");
        };
        let story = fault.to_string();
        assert!(story.contains("no function of its prototype"), "{story}");
    }
}

/// Virtual functions as nvcc lays them out: an object holds the address of its table.
#[test]
fn virtual_functions() {
    let text = format!(
        "{FUNCTIONS}
         .global .align 8 .u64 A_vtable[4] = {{0, 0, twice, nothing}};
         .global .align 8 .u64 B_vtable[4] = {{0, 0, square, nothing}};\n{}",
        kernel(&format!(
            ".local .align 8 .b8 object[16]; .reg .b64 %SP;
             and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 1;
             mov.u64 %rd5, A_vtable; cvta.global.u64 %rd5, %rd5; add.s64 %rd5, %rd5, 16;
             mov.u64 %rd6, B_vtable; cvta.global.u64 %rd6, %rd6; add.s64 %rd6, %rd6, 16;
             selp.b64 %rd5, %rd6, %rd5, %p1;
             mov.u64 %SP, object; cvta.local.u64 %SP, %SP; st.u64 [%SP], %rd5;
             ld.u64 %rd7, [%SP]; ld.u64 %rd3, [%rd7];\n{CALL}"
        ))
    );
    let expected: Vec<u32> = (0..32)
        .map(|x| if x % 2 == 1 { x * x } else { 2 * x })
        .collect();
    assert_eq!(run(&text, 32), expected);
}

#[test]
fn a_table_of_targets_limits_the_call() {
    let call = CALL
        .replace(
            "proto: .callprototype (.param .b32 _) _ (.param .b32 _);",
            "t: .calltargets twice;",
        )
        .replace(", proto", ", t");
    let text = |index: u32| {
        let lines = format!("ld.global.u64 %rd3, vt[{index}];\n{call}");
        module(&format!("{FUNCTIONS}{}", kernel(&lines)))
    };
    let doubled = launch(&text(1), 32).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(doubled[21], 42);
    assert!(matches!(launch(&text(2), 32), Err(LaunchError::Fault(_))));
}
