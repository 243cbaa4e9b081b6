//! Reads of many bytes are checked to the last of them.

use ptx_emu::{FaultKind, LaunchError};

use crate::{kernel, launch, module};

/// A tensor map is 128 bytes; here only its first 64 exist. In local and shared
/// memory no copy finds one at all.
#[test]
fn a_tensor_map_that_runs_past_its_memory_faults() {
    let copy = "setp.eq.u32 %p1, %r1, 31;
        @%p1 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd3, {0}], [%r3];";
    for (declare, address, space) in [
        (
            ".local .align 64 .b8 short[64];",
            "mov.u64 %rd3, short; cvta.local.u64 %rd3, %rd3;",
            "local",
        ),
        ("", "mov.u64 %rd3, out; cvta.param.u64 %rd3, %rd3;", "param"),
        ("", "mov.u64 %rd3, %rd1;", "global"),
        (
            ".shared .align 64 .b8 short[64];",
            "mov.u64 %rd3, short; cvta.shared.u64 %rd3, %rd3;",
            "shared",
        ),
    ] {
        let text = kernel(&format!("{declare}\nmov.u32 %r3, 1024;\n{address}\n{copy}"));
        let Err(LaunchError::Fault(fault)) = launch(&module(&text), 16) else {
            panic!("{space}: no fault");
        };
        match &fault.kind {
            FaultKind::OutOfBounds { space: found, .. } => assert_eq!(*found, space),
            other if ["local", "shared"].contains(&space) => {
                let told = other.to_string();
                assert!(told.contains("lies in local or shared memory"), "{told}");
            }
            other => panic!("{space}: {other}"),
        }
    }
}
