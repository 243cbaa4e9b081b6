/*dgx
operator = "rms-norm"
summary  = "A warp a row, read twice: for the mean of squares, then for the result"
arch     = "sm_90a"
requires = ["n % 8 == 0"]
const    = { WARPS = 4 }

[[launch]]
kernel = "rms_norm"
grid   = "cdiv(m, WARPS)"
block  = "32 * WARPS"
*/
#include <dgx/ptx/convert.cuh>
#include <dgx/row.cuh>
using namespace dgx;

constexpr float EPSILON = dgx::constants::eps;

extern "C" __global__ void __launch_bounds__(32 * WARPS) rms_norm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, rms_norm);
  const Group& group = args.near[0];
  const u32 row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, vectors = group.n / VECTOR;
  if (row >= group.m) return;
  const auto* x = reinterpret_cast<const uint4*>(group.x) + u64(row) * vectors;
  const auto* w = reinterpret_cast<const uint4*>(group.w);
  auto* y = reinterpret_cast<uint4*>(group.y) + u64(row) * vectors;

  float sum = 0.0f;
  for (u32 at = lane; at < vectors; at += 32) {
    const uint4 raw = ptx::load_global_v4(x + at);
    const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
    for (u32 j = 0; j < VECTOR; ++j) {
      const float value = ptx::bf16_to_f32(words[j / 2], j % 2);
      sum += value * value;
    }
  }
  const float scale = rsqrtf(reduce_warp<Sum>(sum) / float(group.n) + EPSILON);
  for (u32 at = lane; at < vectors; at += 32) {
    const uint4 raw = ptx::load_global_v4(x + at), weights = ptx::load_global_v4(w + at);
    const u32 xs[4] = {raw.x, raw.y, raw.z, raw.w}, ws[4] = {weights.x, weights.y, weights.z, weights.w};
    u32 words[4];
    for (u32 j = 0; j < 4; ++j)
      words[j] = ptx::f32x2_to_bf16x2(ptx::bf16_to_f32(xs[j], 0) * scale * ptx::bf16_to_f32(ws[j], 0),
                                      ptx::bf16_to_f32(xs[j], 1) * scale * ptx::bf16_to_f32(ws[j], 1));
    ptx::store_global_v4(y + at, {words[0], words[1], words[2], words[3]});
  }
}
