/*dgx
summary  = "A tile loaded once, multiplied with B1 and B2 in one K loop"
extend   = "sequential"
round    = 4
claim    = { geomean = 1.6, over = "two-pass", why = "half the A traffic; about 500 µs pitched against 800" }

# A tile's scales are those of whole atoms of 128 rows, however few it has.
[const]
SMEM     = "STAGES * ((BM + 2 * BN) * BK / 2 + (1 + 2 * cdiv(BN, 128)) * 8 * BK) + 1024"
*/
#include <dgx/sm100/interleaved.cuh>
