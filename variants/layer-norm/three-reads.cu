/*dgx
summary  = "A warp a row, read three times: for the mean, for the variance, for the result"
arch     = "sm_90a"
requires = ["n % 2 == 0"]
const    = { WARPS = 4, BIAS = 1 }

[[launch]]
kernel = "layer_norm"
grid   = "cdiv(m, WARPS)"
block  = "32 * WARPS"
args   = ["y", "x", "w", "b", "m", "n", "eps"]
*/
#include "three_reads.cuh"
