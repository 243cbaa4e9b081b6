/*dgx
summary  = "The incumbent: one GEMM, C = A·B1ᵀ, no gate"
round    = 1
expect   = "wrong"
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

[[launch]]
kernel = "single_gemm"
grid   = "sum(tiles)"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/sm100/kernel.cuh>
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

  const auto tmem = open(shared);
  if (threadIdx.x < 32 && ptx::elect_one()) {
    u32 turn = 0;
    accumulate(shared, tmem, 0, a, b, turn);
    ptx::mma_commit(shared.done);
  }
  __syncwarp();
  wait_for_products(shared);

  const u32 row = tile.row + row_in_tile();
  each_chunk<BN>(tmem.accumulator(0), [&](u32 column, const float(&product)[CHUNK]) {
    u32 out[CHUNK / 2];
#pragma unroll
    for (int i = 0; i < CHUNK / 2; ++i) out[i] = ptx::f32x2_to_f16x2(product[2 * i], product[2 * i + 1]);
    if (row < group.m) ptx::store_global_v8(group.c + u64(row) * group.n + tile.column + column, out);
  });
  close(tmem);
}
