use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::backend::RunFailure;

/// The section of `__constant__` variables; the other banks belong to the driver.
const CONSTANTS: &str = ".nv.constant3";

/// The variables of a cubin that kernels can write, by name, with any linkage: a kernel could keep
/// values in them from one call to the next.
pub(super) fn variables(cubin: &[u8]) -> Result<Vec<String>, object::Error> {
    let file: ElfFile64<'_> = ElfFile64::parse(cubin)?;
    let mut names = Vec::new();
    for symbol in file.symbols().filter(|s| s.kind() == SymbolKind::Data) {
        let Some(index) = symbol.section_index() else {
            continue;
        };
        let section = file.section_by_index(index)?;
        let name = section.name()?;
        // Constants too: a kernel can write to one through its address.
        if name.starts_with(".nv.global") || name.starts_with(CONSTANTS) {
            names.push(symbol.name()?.to_owned());
        }
    }
    Ok(names)
}

/// The driver's functions that allocate memory.
const ALLOCATING: [&str; 2] = ["malloc", "__nv_aligned_device_malloc"];

/// Why a contender whose kernels allocate memory is not timed: data in the heap survive until the
/// next call. The cubin names the driver's functions, however the source spells the call.
pub(super) fn allocating(cubin: &[u8]) -> Result<Option<RunFailure>, object::Error> {
    let file: ElfFile64<'_> = ElfFile64::parse(cubin)?;
    let mut missing = file.symbols().filter(ObjectSymbol::is_undefined);
    let allocates = missing.any(|s| s.name().is_ok_and(|name| ALLOCATING.contains(&name)));
    Ok(allocates.then(|| {
        RunFailure::unsupported(
            "it calls malloc, and what it leaves in the heap cannot be cleared between calls: \
             use scratch",
        )
    }))
}

/// Why a contender with variables that the driver does not find is not timed.
pub(super) fn untimed_reason(missing: &[String]) -> Option<RunFailure> {
    let names = missing.join(", ");
    (!missing.is_empty()).then(|| {
        RunFailure::unsupported(format!(
            "the driver does not find {names}, so it cannot be put back between calls: \
             declare it `__device__` at file scope, not static, or keep it in scratch"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::Nvrtc;
    use dgx_core::domain::Status;

    const SOURCE: &str = "
__device__ int counter = 3;
static __device__ float memory[100];
namespace { __device__ int hidden; }
__constant__ int fixed = 5;
extern \"C\" __global__ void k(int* p) {
  static int calls;
  __shared__ int shared[4];
  shared[0] = ++calls;
  memory[threadIdx.x] += shared[0];
  *p = ++counter + ++hidden + fixed;
}";

    #[test]
    fn every_variable_a_kernel_can_write_is_found() {
        let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
        let cubin = |source: &str| {
            let flags = ["--gpu-architecture=sm_90a".to_owned()];
            let compiled = compiler.compile("x.cu", source, &flags, &[]);
            compiled.unwrap().cubin.expect("it compiles")
        };
        let found = variables(&cubin(SOURCE)).unwrap();
        for name in ["counter", "memory", "hidden", "calls", "fixed"] {
            let hits = found.iter().filter(|f| f.contains(name)).count();
            assert!(hits > 0, "no {name} in {found:?}");
        }
        assert_eq!(found.len(), 5, "{found:?}");
        let none = "extern \"C\" __global__ void k(int* p) { *p = 1; }";
        assert!(variables(&cubin(none)).unwrap().is_empty());
        assert!(variables(b"no cubin").is_err());
    }

    #[test]
    fn who_allocates_is_not_timed() {
        let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
        let refused = |body: &str| {
            let source = format!("extern \"C\" __global__ void k(int** p) {{ {body} }}");
            let flags = ["--gpu-architecture=sm_90a".to_owned()];
            let compiled = compiler.compile("x.cu", &source, &flags, &[]).unwrap();
            allocating(&compiled.cubin.expect(&compiled.log))
                .unwrap()
                .is_some()
        };
        let by_hand = |declaration: &str, name: &str| {
            format!(
                "asm volatile(\"ret; }}\\n{declaration}\\n.visible .entry by_hand (.param .b64 p) {{\\n\
                 .param .b64 r; .param .b64 s; st.param.b64 [s], 64; \
                 call.uni (r), {name}, (s);\");"
            )
        };
        assert!(refused("*p = static_cast<int*>(malloc(64));"));
        assert!(refused("*p = new int[3];"));
        for declaration in [
            ".extern .func (.param .b64 r) malloc (.param .b64 s);",
            "    .extern   .func (.param .b64 r) malloc(.param .b64 s) ;",
            ".extern .func (.param .b64 r)\\n/* so */ malloc\\n(.param .b64 s)\\n;",
        ] {
            assert!(refused(&by_hand(declaration, "malloc")), "{declaration}");
        }
        assert!(!refused("*p = nullptr; printf(\"malloc\");"));
    }

    #[test]
    fn who_could_remember_is_not_timed() {
        assert!(untimed_reason(&[]).is_none());
        let refusal = untimed_reason(&["a".to_owned(), "b".to_owned()]).unwrap();
        assert_eq!(refusal.status, Status::Unsupported);
        assert!(refusal.message.contains("a, b"), "{}", refusal.message);
        assert!(!refusal.fatal, "the others go on in this process");
    }
}
