// The kernel of interleaved and of those that differ from it in BM, BN and
// STAGES alone: a CTA a tile, both products in one K loop.
#pragma once
#include <dgx/epilogue.cuh>
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

  store_gated<BN>(tile, product[0], product[1]);
}
