//! Substitutes for headers that nvcc finds and NVRTC does not: the parts of the standard library
//! that device code needs, and empty files for host libraries. Imported files include them; code
//! that needs the rest of them is blanked.

/// The header that nvcc includes before the first line of a file.
pub(super) const PRELUDE: &str = "dgx/nvcc.h";

/// Host libraries, whose own headers NVRTC cannot read.
const OF_HOSTS: [&str; 10] = [
    "cublas_v2.h",
    "cublasLt.h",
    "cuda_profiler_api.h",
    "cudnn.h",
    "curand.h",
    "cusparse.h",
    "mpi.h",
    "nccl.h",
    "nvtx3/nvToolsExt.h",
    "nvtx3/nvToolsExtCudaRt.h",
];

/// Names of the standard library that CCCL has in `cuda::std`.
const OF_CCCL: [&str; 10] = [
    "array",
    "complex",
    "functional",
    "initializer_list",
    "limits",
    "numeric",
    "optional",
    "tuple",
    "type_traits",
    "utility",
];

/// Headers that are only for hosts.
const EMPTY: [&str; 27] = [
    "arpa/inet.h",
    "atomic",
    "cassert",
    "chrono",
    "cstdio",
    "cstring",
    "ctime",
    "dirent.h",
    "exception",
    "fcntl.h",
    "fstream",
    "glob.h",
    "iomanip",
    "iostream",
    "istream",
    "mutex",
    "ostream",
    "random",
    "sstream",
    "stdexcept",
    "stdio.h",
    "string.h",
    "sys/stat.h",
    "sys/types.h",
    "thread",
    "time.h",
    "unistd.h",
];

/// Types used by members and signatures of host code.
const TYPES: [(&str, &str); 7] = [
    ("map", "template <class...> class map {};"),
    (
        "memory",
        "template <class...> class unique_ptr {}; template <class> class shared_ptr {};",
    ),
    ("set", "template <class...> class set {};"),
    ("string", "class string {};"),
    (
        "unordered_map",
        "template <class...> class unordered_map {};",
    ),
    (
        "unordered_set",
        "template <class...> class unordered_set {};",
    ),
    ("vector", "template <class...> class vector {};"),
];

const TEXTS: [(&str, &str); 13] = [
    (PRELUDE, include_str!("standins/nvcc.h")),
    ("algorithm", include_str!("standins/algorithm.h")),
    // NVRTC defines it.
    ("assert.h", ""),
    ("cmath", include_str!("standins/cmath.h")),
    ("float.h", include_str!("standins/float.h")),
    ("inttypes.h", "#include <stdint.h>\n"),
    ("limits.h", "#include <cuda/std/climits>\n"),
    ("math.h", include_str!("standins/math.h")),
    ("stddef.h", include_str!("standins/stddef.h")),
    // 64 bits are `long long`, as in CCCL.
    ("stdint.h", include_str!("standins/stdint.h")),
    ("stdlib.h", include_str!("standins/stdlib.h")),
    // The driver's functions are for hosts.
    (
        "cuda.h",
        "typedef struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;\n",
    ),
    // The whole of CUB also launches kernels.
    ("cub/cub.cuh", include_str!("standins/cub.cuh")),
];

/// Whether the stand-in takes precedence over a toolkit's own header.
pub(super) fn comes_first(name: &str) -> bool {
    OF_HOSTS.contains(&name) || ["cub/cub.cuh", "cuda.h"].contains(&name)
}

/// The stand-in for the header `name`.
pub(super) fn text(name: &str) -> Option<String> {
    let once = |text: &str| format!("#pragma once\n{text}");
    if let Some((_, text)) = TEXTS.iter().find(|(own, _)| *own == name) {
        return Some(once(text));
    }
    if let Some((_, types)) = TYPES.iter().find(|(own, _)| *own == name) {
        return Some(once(&format!("namespace std {{ {types} }}\n")));
    }
    if OF_CCCL.contains(&name) {
        let using = "namespace std { using namespace ::cuda::std; }";
        return Some(once(&format!("#include <cuda/std/{name}>\n{using}\n")));
    }
    if EMPTY.contains(&name) || OF_HOSTS.contains(&name) {
        return Some(String::new());
    }
    // <cstdint> is <stdint.h>.
    let plain = format!("{}.h", name.strip_prefix('c')?);
    let is_plain = TEXTS.iter().any(|(own, _)| *own == plain);
    is_plain.then(|| format!("#include <{plain}>\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_text() {
        for name in [
            "cstdint", "stdint.h", "limits", "climits", "vector", "iostream", "curand.h",
        ] {
            assert!(text(name).is_some(), "{name}");
        }
        for name in ["cuda_fp16.h", "c", "ccmath", "torch/types.h"] {
            assert_eq!(text(name), None, "{name}");
        }
        assert!(comes_first("cub/cub.cuh") && !comes_first("vector"));
    }
}
