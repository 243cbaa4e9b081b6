/*dgx
summary  = "A tile loaded and dequantised once, multiplied with B1 and B2 in one K loop"
extend   = "sequential"
round    = 4
claim    = { geomean = 1.6, over = "two-pass", why = "half the A traffic; about 500 µs pitched against 800" }

# A tile's scales are those of 128 rows, however few it has.
[const]
SMEM     = "(BM + 2 * BN) * BK * 2 + STAGES * ((BM + 2 * BN) * BK / 2 + 3 * 1024) + 1024"
*/
#include <dgx/interleaved.cuh>
