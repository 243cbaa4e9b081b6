/*dgx
summary  = "One CTA: the K loop over B1, then over B2, gate in the epilogue"
parent   = "two-pass"
round    = 4
claim    = { geomean = 1.33, over = "two-pass", why = "one launch, no scratch traffic; about 600 µs pitched against 800" }
arch     = "sm_90a"
requires = ["k % BK == 0", "n % BN == 0"]
tiles    = "cdiv(m, BM) * (n / BN)"

[const]
BM      = 128
BN      = 128
BK      = 128
STAGES  = 1
THREADS = "BM / 64 * 128"
SMEM    = "(BM + BN) * BK * 2 + STAGES * (BM + BN) * BK * 9 / 16 + 1024"

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

using Shared = Staging<BM, BN, 1, STAGES>;
static_assert(BK == STEP && sizeof(Shared) <= SMEM);

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  const Tile tile = find_tile_by_walk<BM, BN>(args, blockIdx.x, MAPS);
  const Group& group = *tile.group;
  const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
  const Operand b1[1] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k}};
  const Operand b2[1] = {{tile.maps + MAP_B2, group.sfb2_atoms, tile.column, group.k}};

  open(shared);
  u32 turn = 0;
  float gate[1][BN / 2], up[1][BN / 2];
  accumulate(gate, shared, a, b1, turn);
  accumulate(up, shared, a, b2, turn);

  store_gated<BN>(tile, gate[0], up[0]);
}
