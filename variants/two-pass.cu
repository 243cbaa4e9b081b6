/*dgx
summary  = "The single GEMM twice into scratch, then an elementwise gate"
parent   = "single-gemm"
round    = 4
claim    = { geomean = 1.0, over = "two-pass", why = "correct with no change to the GEMM; about 800 µs pitched" }
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
GATE_THREADS = 256
GATE_EACH    = 4

[[scratch]]
name  = "gate"
bytes = "m * n * 4"

[[scratch]]
name  = "up"
bytes = "m * n * 4"

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
kernel = "gate_gemm"
grid   = "sum(tiles)"
block  = "THREADS"
smem   = "SMEM"

[[launch]]
kernel = "up_gemm"
grid   = "sum(tiles)"
block  = "THREADS"
smem   = "SMEM"

[[launch]]
kernel = "apply_gate"
grid   = ["cdiv(most(m * n), GATE_THREADS * GATE_EACH)", "groups"]
block  = "GATE_THREADS"
*/
#include <dgx/epilogue.cuh>
#include <dgx/mainloop.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

using Shared = Staging<BM, BN, 1, STAGES>;
static_assert(BK == STEP && sizeof(Shared) <= SMEM);

// fp32 in between: fp16 would round, and overflow, before the gate.
__device__ __forceinline__ void gemm(const Args& args, int map, const u8* Group::*atoms, int scratch) {
  Shared& shared = shared_memory<Shared>();
  const Tile tile = find_tile_by_walk<BM, BN>(args, blockIdx.x, MAPS);
  const Group& group = *tile.group;
  const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
  const Operand b[1] = {{tile.maps + map, group.*atoms, tile.column, group.k}};

  open(shared);
  u32 turn = 0;
  float product[1][BN / 2];
  accumulate(product, shared, a, b, turn);

  float* out = reinterpret_cast<float*>(group.scratch[scratch]);
  each_pair<BN>(tile, threadIdx.x, [&](u32 i, u32 row, u32 column) {
    ptx::store_global_v2_f32(out + u64(row) * group.n + column, product[0][i], product[0][i + 1]);
  });
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) gate_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, gate_gemm);
  gemm(args, MAP_B1, &Group::sfb1_atoms, SCRATCH_GATE);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) up_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, up_gemm);
  gemm(args, MAP_B2, &Group::sfb2_atoms, SCRATCH_UP);
}

// N is a multiple of 128, so four neighbours never straddle the end.
extern "C" __global__ void __launch_bounds__(GATE_THREADS) apply_gate(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, apply_gate);
  const Group& group = args.groups[blockIdx.y];
  const u64 first = (u64(blockIdx.x) * GATE_THREADS + threadIdx.x) * GATE_EACH;
  if (first >= u64(group.m) * group.n) return;
  const float4 gate = *reinterpret_cast<const float4*>(group.scratch[SCRATCH_GATE] + first * sizeof(float));
  const float4 up = *reinterpret_cast<const float4*>(group.scratch[SCRATCH_UP] + first * sizeof(float));
  const uint2 out = {ptx::f32x2_to_f16x2(gated(gate.x, up.x), gated(gate.y, up.y)),
                     ptx::f32x2_to_f16x2(gated(gate.z, up.z), gated(gate.w, up.w))};
  *reinterpret_cast<uint2*>(group.c + first) = out;
}
