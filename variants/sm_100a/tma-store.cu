/*dgx
summary  = "interleaved with C staged in shared memory and stored by TMA"
extend   = "interleaved"
round    = 3
claim    = { geomean = 1.02, over = "interleaved", why = "full lines to L2; 1.12 pitched first, then 1.03, then 1.00 to 1.05" }

[[map]]
name    = "C"
tensor  = "c"
box     = ["64", "32"]
swizzle = "128B"
*/
#include <dgx/sm100/epilogue_tma.cuh>
#include <dgx/sm100/kernel.cuh>
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

  const auto tmem = open(shared);
  if (threadIdx.x < 32 && ptx::elect_one()) {
    u32 turn = 0;
    accumulate(shared, tmem, 0, a, b, turn);
    ptx::mma_commit(shared.done);
  }
  __syncwarp();
  wait_for_products(shared);

  // The ring is idle now, and a stage larger than the tile of C.
  static_assert(sizeof(shared.stage) >= BM * BN * 2);
  store_gated_by_tma<BN>(tile, tmem.accumulator(0), tmem.accumulator(1), ptx::shared_address(shared.stage),
                         tile.maps + MAP_C);
  close(tmem);
}
