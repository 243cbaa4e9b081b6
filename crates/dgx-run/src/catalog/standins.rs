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
    (
        PRELUDE,
        "#if __has_include(<cuda_runtime.h>)
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <cuda_runtime.h>
#include <cuda_device_runtime_api.h>
#undef __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#endif
#include <math.h>
#include <stdlib.h>
",
    ),
    (
        "algorithm",
        "namespace std {
template <class T> __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> __device__ constexpr const T& clamp(const T& x, const T& low, const T& high) {
  return x < low ? low : high < x ? high : x;
}
template <class T> __device__ constexpr void swap(T& a, T& b) { T c = a; a = b; b = c; }
}
",
    ),
    // NVRTC defines it.
    ("assert.h", ""),
    (
        "cmath",
        "#include <math.h>
namespace std {
using ::abs; using ::acos; using ::asin; using ::atan; using ::atan2; using ::cbrt; using ::ceil;
using ::copysign; using ::cos; using ::cosh; using ::erf; using ::exp; using ::exp2; using ::expm1;
using ::fabs; using ::floor; using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::hypot;
using ::isfinite; using ::isinf; using ::isnan; using ::ldexp; using ::log; using ::log10;
using ::log1p; using ::log2; using ::lround; using ::pow; using ::rint; using ::round; using ::sin;
using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::trunc;
}
",
    ),
    (
        "float.h",
        "#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_EPSILON 1.1920928955078125e-7f
#define FLT_MIN 1.1754943508222875e-38f
#define FLT_MAX 3.4028234663852886e+38f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
",
    ),
    ("inttypes.h", "#include <stdint.h>\n"),
    ("limits.h", "#include <cuda/std/climits>\n"),
    (
        "math.h",
        "#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fc00000)
#endif
#define HUGE_VALF INFINITY
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
",
    ),
    (
        "stddef.h",
        "#ifndef NULL
#define NULL 0
#endif
typedef decltype(sizeof(0)) size_t;
typedef decltype((char*)0 - (char*)0) ptrdiff_t;
namespace std { using ::size_t; using ::ptrdiff_t; using nullptr_t = decltype(nullptr); }
",
    ),
    // 64 bits are `long long`, as in CCCL.
    (
        "stdint.h",
        "#include <stddef.h>
#define DGX_INT(N, T) \\
  typedef signed T int##N##_t; typedef unsigned T uint##N##_t; \\
  namespace std { using ::int##N##_t; using ::uint##N##_t; }
DGX_INT(8, char) DGX_INT(16, short) DGX_INT(32, int) DGX_INT(64, long long)
DGX_INT(ptr, long long) DGX_INT(max, long long)
#undef DGX_INT
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT64_MAX 18446744073709551615ULL
",
    ),
    (
        "stdlib.h",
        "#include <stddef.h>
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
",
    ),
    // The driver's functions are for hosts.
    (
        "cuda.h",
        "typedef struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;\n",
    ),
    // The whole of CUB also launches kernels.
    (
        "cub/cub.cuh",
        "#include <cub/block/block_exchange.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
",
    ),
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
