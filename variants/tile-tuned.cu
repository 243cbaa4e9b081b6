/*dgx
summary  = "interleaved with the tile chosen per shape by waves and cost per step"
extend   = "interleaved"
round    = 2
claim    = { geomean = 2.0, over = "interleaved", why = "no idle SMs, less padding of M; 2 to 3 pitched" }

# Waves over the SMs times the cycles of one K128 step: the MMAs (two weights,
# eight k16, half a cycle a column for each 64 rows), dequantising (about 5/2
# cycles a row), and what the barriers and latencies of a step cost however
# small it is.
[tune]
choose   = { BM = [128, 64], BN = [128, 64] }
minimise = "cdiv(sum(tiles), sms) * (BM / 64 * BN * 8 + (BM + 2 * BN) * 5 / 2 + 600)"
*/
#include <dgx/interleaved.cuh>
