/*dgx
summary  = "The interleaved K loop behind a ring of TMA stages"
parent   = "interleaved"
round    = 1
claim    = { geomean = 1.5, over = "pipelined[STAGES=1]", why = "loads hidden behind the MMAs; 1.5 to 1.8 pitched" }
arch     = "sm_90a"
params   = { STAGES = [1, 2, 3, 4] }
requires = ["k % BK == 0", "n % BN == 0"]
tiles    = "cdiv(m, BM) * (n / BN)"

[const]
BM      = 128
BN      = 128
BK      = 128
THREADS = "BM / 64 * 128"
SMEM    = "(BM + 2 * BN) * BK * 2 + STAGES * (BM + 2 * BN) * BK * 9 / 16 + 1024"

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
