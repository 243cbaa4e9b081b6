/*dgx
operator = "rms-norm"
summary  = "Each row stays in registers: read once, written once"
parent   = "two-reads"
claim    = { geomean = 1.1, over = "two-reads", why = "no second wait for memory; what two-reads reads again lies in L2" }
arch     = "sm_90a"
requires = ["n % 8 == 0", "n <= 131072"]

# Measured: two vectors a thread are fastest, but one where rows are few and latency is what
# counts.
[const]
COLUMNS = "n"
CTAS    = "n > 65536 ? 8 : n > 32768 ? 4 : n > 16384 ? 2 : 1"  # that share a row
VECTORS = "m <= 512 && n <= 8192 ? 1 : 2"                      # of eight elements, a thread's
THREADS = "align(cdiv(n, 8 * VECTORS * CTAS), 32)"

[[launch]]
kernel  = "rms_norm"
grid    = "m * CTAS"
block   = "THREADS"
cluster = "CTAS"
*/
#include <dgx/ptx/convert.cuh>
#include <dgx/row.cuh>
using namespace dgx;

constexpr float EPSILON = 1e-5f;

extern "C" __global__ void __launch_bounds__(THREADS) rms_norm(const __grid_constant__ Args args) {
  __shared__ float slots[THREADS / 32 * CTAS];
  DGX_STAMP_KERNEL(args, rms_norm);
  cluster_begin<CTAS>();
  const Group& group = args.near[0];
  const u32 row = blockIdx.x / CTAS, first = (CTAS == 1 ? 0 : ptx::cluster_rank() * THREADS) + threadIdx.x;
  const auto* x = reinterpret_cast<const uint4*>(group.x) + u64(row) * (COLUMNS / VECTOR);
  const auto* w = reinterpret_cast<const uint4*>(group.w);
  auto* y = reinterpret_cast<uint4*>(group.y) + u64(row) * (COLUMNS / VECTOR);

  uint4 raw[VECTORS], weights[VECTORS];
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    const u32 at = first + i * THREADS * CTAS;
    raw[i] = weights[i] = {};
    if (at < COLUMNS / VECTOR) raw[i] = ptx::load_global_once_v4(x + at), weights[i] = ptx::load_global_v4(w + at);
  }
  float sum = 0.0f;
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    const u32 words[4] = {raw[i].x, raw[i].y, raw[i].z, raw[i].w};
#pragma unroll
    for (u32 j = 0; j < VECTOR; ++j) {
      const float value = ptx::bf16_to_f32(words[j / 2], j % 2);
      sum += value * value;
    }
  }
  cluster_begun<CTAS>();
  const float mean = reduce_row<Sum, THREADS, CTAS>(sum, slots) / float(COLUMNS);
  const float scale = rsqrtf(mean + EPSILON);
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    const u32 at = first + i * THREADS * CTAS;
    const u32 xs[4] = {raw[i].x, raw[i].y, raw[i].z, raw[i].w};
    const u32 ws[4] = {weights[i].x, weights[i].y, weights[i].z, weights[i].w};
    u32 words[4];
#pragma unroll
    for (u32 j = 0; j < 4; ++j)
      words[j] = ptx::f32x2_to_bf16x2(ptx::bf16_to_f32(xs[j], 0) * scale * ptx::bf16_to_f32(ws[j], 0),
                                 ptx::bf16_to_f32(xs[j], 1) * scale * ptx::bf16_to_f32(ws[j], 1));
    if (at < COLUMNS / VECTOR) ptx::store_global_v4(y + at, {words[0], words[1], words[2], words[3]});
  }
}
