/*dgx
operator = "rms-norm"
summary  = "A thread a row, its sum of squares in bf16, which stands still at 256 times a square"
expect   = "wrong"
arch     = "sm_90a"
const    = { THREADS = 32 }

[[launch]]
kernel = "rms_norm"
grid   = "cdiv(m, THREADS)"
block  = "THREADS"
*/
#include <dgx/ptx/convert.cuh>
#include <dgx/stamp.cuh>
using namespace dgx;

constexpr float EPSILON = dgx::constants::eps;

extern "C" __global__ void __launch_bounds__(THREADS) rms_norm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, rms_norm);
  const Group& group = args.near[0];
  const u32 row = blockIdx.x * THREADS + threadIdx.x;
  if (row >= group.m) return;
  const auto* x = reinterpret_cast<const u16*>(group.x) + u64(row) * group.n;
  const auto* w = reinterpret_cast<const u16*>(group.w);
  auto* y = reinterpret_cast<u16*>(group.y) + u64(row) * group.n;

  u32 sum = 0;
  for (u32 i = 0; i < group.n; ++i) {
    const float value = ptx::bf16_to_f32(x[i], 0);
    sum = ptx::f32x2_to_bf16x2(ptx::bf16_to_f32(sum, 0) + value * value, 0.0f);
  }
  const float scale = rsqrtf(ptx::bf16_to_f32(sum, 0) / float(group.n) + EPSILON);
  for (u32 i = 0; i < group.n; ++i)
    y[i] = static_cast<u16>(ptx::f32x2_to_bf16x2(ptx::bf16_to_f32(x[i], 0) * scale * ptx::bf16_to_f32(w[i], 0), 0.0f));
}
