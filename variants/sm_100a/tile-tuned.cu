/*dgx
summary  = "interleaved with the tile's width chosen per shape by waves and cost per step"
extend   = "interleaved"
round    = 2
claim    = { geomean = 2.0, over = "interleaved", why = "no idle SMs, less padding of M; 2 to 3 pitched" }

# Waves over the SMs times the cycles of one K256 step: four MMAs of each weight,
# which read A and B from shared memory in 32 + BN/4 cycles and multiply in BN/2,
# and what one stage waits for its loads however small they are. 128 rows are
# the least a block-scaled MMA has: only the width is free.
[tune]
choose   = { BN = [128, 64, 192] }
minimise = "most(n % BN) > 0 ? 1000000000000 : cdiv(sum(tiles), sms) * (8 * max(BN / 2, 32 + BN / 4) + 1200)"
*/
#include <dgx/sm100/interleaved.cuh>
