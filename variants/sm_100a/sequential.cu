/*dgx
summary  = "One CTA: the K loop over B1, then over B2, gate in the epilogue"
parent   = "two-pass"
round    = 4
claim    = { geomean = 1.33, over = "two-pass", why = "one launch, no scratch traffic; about 600 µs pitched against 800" }
requires = ["k % BK == 0", "n % BN == 0"]
tiles    = "cdiv(m, BM) * (n / BN)"

[const]
BM      = 128
BN      = 128
BK      = 256
STAGES  = 1
THREADS = 128
SMEM    = "STAGES * (BM + BN) * (BK / 2 + BK / 16) + 1024"

[[map]]
name    = "A"
tensor  = "a"
type    = "u4"
box     = ["BK", "BM"]
swizzle = "128B"

[[map]]
name    = "B1"
tensor  = "b1"
type    = "u4"
box     = ["BK", "BN"]
swizzle = "128B"

[[map]]
name    = "B2"
tensor  = "b2"
type    = "u4"
box     = ["BK", "BN"]
swizzle = "128B"

[[launch]]
kernel = "dual_gemm"
grid   = "sum(tiles)"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/sm100/kernel.cuh>
using namespace dgx;

using Shared = Staging<BM, BN, 1, STAGES, 2>;
static_assert(BK == STEP && sizeof(Shared) <= SMEM);

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  const Tile tile = find_tile_by_walk<BM, BN>(args, blockIdx.x, MAPS);
  const Group& group = *tile.group;
  const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
  const Operand b1[1] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k}};
  const Operand b2[1] = {{tile.maps + MAP_B2, group.sfb2_atoms, tile.column, group.k}};

  const auto tmem = open(shared);
  if (threadIdx.x < 32 && ptx::elect_one()) {
    u32 turn = 0;
    accumulate(shared, tmem, 0, a, b1, turn);
    accumulate(shared, tmem, 1, a, b2, turn);
    ptx::mma_commit(shared.done);
  }
  __syncwarp();
  wait_for_products(shared);

  store_gated<BN>(tile, tmem.accumulator(0), tmem.accumulator(1));
  close(tmem);
}
