/*dgx
operator = "f16-gemm"
summary  = "Tiles of 64 x 64 through shared memory, mma.sync, nothing overlapped"
arch     = "sm_90a"
requires = ["n % 8 == 0", "k % 8 == 0"]
const    = { F16_SUMS = 0, F16_PRODUCTS = 0 }

[[launch]]
kernel = "gemm"
grid   = ["cdiv(n, 64)", "cdiv(m, 64)"]
block  = 128
*/
#include "tiled.cuh"
