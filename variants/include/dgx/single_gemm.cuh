// One product of NVFP4: a tile of C a CTA, operands dequantised in shared memory.
#pragma once
#include <dgx/epilogue.cuh>
#include <dgx/mainloop.cuh>
#include <dgx/shared.cuh>

namespace dgx {

using Shared = Staging<BM, BN, 1, STAGES>;
static_assert(BK == STEP && sizeof(Shared) <= SMEM);

// Of the rows of a and of the map `Map`, whose scales are atoms from scales(group) on.
template <int Map, typename Scales>
__device__ __forceinline__ void single_gemm(const Args& args, Scales scales) {
  Shared& shared = shared_memory<Shared>();
  const Tile tile = find_tile_by_walk<BM, BN>(args, blockIdx.x, MAPS);
  const Group& group = *tile.group;
  const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
  const Operand b[1] = {{tile.maps + Map, scales(group), tile.column, group.k}};

  open(shared);
  u32 turn = 0;
  float product[1][BN / 2];
  accumulate(product, shared, a, b, turn);

  each_pair<BN>(tile, threadIdx.x, [&](u32 i, u32 row, u32 column) {
    ptx::store_global_u32(group.c + u64(row) * group.n + column,
                          ptx::f32x2_to_f16x2(product[0][i] * UNSCALE, product[0][i + 1] * UNSCALE));
  });
}

}  // namespace dgx
