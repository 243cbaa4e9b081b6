/*dgx
summary  = "interleaved with C staged in shared memory and stored by TMA"
extend   = "interleaved"
round    = 3
claim    = { geomean = 1.02, over = "interleaved", why = "full lines to L2; 1.12 pitched first, then 1.03, then 1.00 to 1.05" }

[[map]]
name    = "C"
tensor  = "c"
box     = ["64", "64"]
swizzle = "128B"
*/
#include <dgx/epilogue.cuh>
#include <dgx/epilogue_tma.cuh>
#include <dgx/mainloop.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

using Shared = Staging<BM, BN, 2, STAGES>;
static_assert(BK == STEP && sizeof(Shared) <= SMEM);

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
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
