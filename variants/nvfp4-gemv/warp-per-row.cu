/*dgx
operator = "nvfp4-gemv"
summary  = "A warp a row, a block of 16 a lane at a time"
arch     = "sm_90a"
requires = ["m % WARPS == 0"]
const    = { WARPS = 4, LEAST_SCALE = 0 }

[[launch]]
kernel = "gemv"
grid   = ["m / WARPS", "l"]
block  = "32 * WARPS"
*/
#include "warp_per_row.cuh"
