/*dgx
summary  = "The incumbent: one GEMM, C = A·B1ᵀ, no gate"
round    = 1
expect   = "wrong"
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

[[launch]]
kernel = "single_gemm"
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

extern "C" __global__ void __launch_bounds__(THREADS, 1) single_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, single_gemm);
  Shared& shared = shared_memory<Shared>();
  const Tile tile = find_tile_by_walk<BM, BN>(args, blockIdx.x, MAPS);
  const Group& group = *tile.group;
  const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
  const Operand b[1] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k}};

  open(shared);
  u32 turn = 0;
  float product[1][BN / 2];
  accumulate(product, shared, a, b, turn);

  each_pair<BN>(tile, threadIdx.x, [&](u32 i, u32 row, u32 column) {
    ptx::store_global_u32(group.c + u64(row) * group.n + column,
                          ptx::f32x2_to_f16x2(product[0][i] * UNSCALE, product[0][i + 1] * UNSCALE));
  });
}
