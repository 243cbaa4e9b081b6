// The kernel of interleaved and of those that differ from it in BN and STAGES
// alone: a CTA a tile, both products in one K loop.
#pragma once
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

  store_gated<BN>(tile, tmem.accumulator(0), tmem.accumulator(1));
  close(tmem);
}
