/*dgx
summary  = "interleaved with the tile chosen per shape by waves and cost per step"
parent   = "interleaved"
round    = 2
claim    = { geomean = 2.0, over = "interleaved", why = "no idle SMs, less padding of M; 2 to 3 pitched" }
arch     = "sm_90a"
requires = ["k % BK == 0", "n % BN == 0"]
tiles    = "cdiv(m, BM) * (n / BN)"

# Waves over the SMs times the cycles of one K128 step: the MMAs (two weights,
# eight k16, half a cycle a column for each 64 rows), dequantising (about 5/2
# cycles a row), and what the barriers and latencies of a step cost however
# small it is.
[tune]
choose   = { BM = [128, 64], BN = [128, 64] }
minimise = "cdiv(sum(cdiv(m, BM) * (n / BN)), sms) * (BM / 64 * BN * 8 + (BM + 2 * BN) * 5 / 2 + 600)"

[const]
BK      = 128
STAGES  = 1
THREADS = "BM / 64 * 128"
SMEM    = "(BM + 2 * BN) * BK * 2 + STAGES * ((BM + 2 * BN) * BK / 2 + 3 * 1024) + 1024"

[[map]]
name    = "A"
tensor  = "a"
box     = ["BK / 2", "BM"]
swizzle = "64B"

[[map]]
name    = "B1"
tensor  = "b1"
box     = ["BK / 2", "BN"]
swizzle = "64B"

[[map]]
name    = "B2"
tensor  = "b2"
box     = ["BK / 2", "BN"]
swizzle = "64B"

[[launch]]
kernel = "dual_gemm"
grid   = "sum(tiles)"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/epilogue.cuh>
#include <dgx/mainloop.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

using Shared = Staging<BM, BN, 2, STAGES>;
static_assert(BK == STEP && sizeof(Shared) <= SMEM);

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  Shared& shared = shared_memory<Shared>();
  const Tile tile = find_tile_by_walk<BM, BN>(args, blockIdx.x, MAPS);
  const Group& group = *tile.group;
  const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
  const Operand b[2] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k},
                        {tile.maps + MAP_B2, group.sfb2_atoms, tile.column, group.k}};

  open(shared);
  u32 turn = 0;
  float product[2][BN / 2];
  accumulate(product, shared, a, b, turn);

  store_gated<BN>(tile, product[0], product[1]);
}
