/*dgx
summary  = "interleaved with C staged in shared memory and stored by TMA"
parent   = "interleaved"
round    = 3
claim    = { geomean = 1.02, over = "interleaved", why = "full lines to L2; 1.12 pitched first, then 1.03, then 1.00 to 1.05" }
arch     = "sm_90a"
requires = ["k % BK == 0", "n % BN == 0"]
tiles    = "cdiv(m, BM) * (n / BN)"

[const]
BM      = 128
BN      = 128
BK      = 128
STAGES  = 1
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

[[map]]
name    = "C"
tensor  = "c"
box     = ["64", "64"]
swizzle = "128B"

[[launch]]
kernel = "dual_gemm"
grid   = "sum(tiles)"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/epilogue.cuh>
#include <dgx/epilogue_tma.cuh>
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

  // The fp16 tile of A is free now, and as large as the tile of C.
  static_assert(BN == STEP);
  store_gated_by_tma<BN>(tile, product[0], product[1], shared.a.panel, tile.maps + MAP_C);
}
