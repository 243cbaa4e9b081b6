/*dgx
operator = "rms-norm"
summary  = "Each row stays in registers: read once, written once"
parent   = "two-reads"
claim    = { geomean = 1.1, over = "two-reads", why = "no second wait; what two-reads reads again is in L2" }
arch     = "sm_90a"
requires = ["n % 8 == 0", "n <= 131072"]

# Measured: eight vectors a thread for long rows, one where rows are few and latency is what counts.
[const]
COLUMNS = "n"
CTAS    = "n > 65536 || n > 16384 && m <= 64 ? 8 : n > 32768 ? 4 : 1"           # that share a row
VECTORS = "n / CTAS > 8192 ? (CTAS == 1 ? 8 : 4) : m <= 512 ? 1 : 2"              # of eight elements, a thread's
THREADS = "align(cdiv(n, 8 * VECTORS * CTAS), 32)"
PER_SM  = "max(1, min(32, (VECTORS > 2 ? 1024 : 2048) / align(THREADS, 128)))"   # CTAs that fit

[[launch]]
kernel  = "rms_norm"
grid    = "m * CTAS"
block   = "THREADS"
cluster = "CTAS"
*/
#include <dgx/ptx/convert.cuh>
#include <dgx/row.cuh>
using namespace dgx;

constexpr float EPSILON = dgx::constants::eps;

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM) rms_norm(const __grid_constant__ Args args) {
  __shared__ float slots[THREADS / 32 * CTAS];
  DGX_STAMP_KERNEL(args, rms_norm);
  const Row<COLUMNS, CTAS, THREADS, VECTORS> place;
  const Group& group = args.near[0];
  const u32 row = blockIdx.x / CTAS;
  uint4 raw[VECTORS];
  place.load(raw, group.x, row, 0);
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
  place.begun();
  const float mean = reduce_row<Sum, THREADS, CTAS>(sum, slots) / float(COLUMNS);
  const float scale = rsqrtf(mean + EPSILON);
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    const u32 xs[4] = {raw[i].x, raw[i].y, raw[i].z, raw[i].w};
    const uint4 weights = place.load(group.w, 0, i, 0);  // from L1: a CTA more fits without their registers
    const u32 ws[4] = {weights.x, weights.y, weights.z, weights.w};
    u32 words[4];
#pragma unroll
    for (u32 j = 0; j < 4; ++j)
      words[j] = ptx::f32x2_to_bf16x2(ptx::bf16_to_f32(xs[j], 0) * scale * ptx::bf16_to_f32(ws[j], 0),
                                      ptx::bf16_to_f32(xs[j], 1) * scale * ptx::bf16_to_f32(ws[j], 1));
    place.store(group.y, row, i, {words[0], words[1], words[2], words[3]});
  }
}
