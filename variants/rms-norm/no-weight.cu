/*dgx
operator = "rms-norm"
summary  = "A thread a row, and the weight is forgotten"
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
  auto* y = reinterpret_cast<u16*>(group.y) + u64(row) * group.n;

  float sum = 0.0f;
  for (u32 i = 0; i < group.n; ++i) {
    const float value = ptx::bf16_to_f32(x[i], 0);
    sum += value * value;
  }
  const float scale = rsqrtf(sum / float(group.n) + EPSILON);
  for (u32 i = 0; i < group.n; ++i)
    y[i] = static_cast<u16>(ptx::f32x2_to_bf16x2(ptx::bf16_to_f32(x[i], 0) * scale, 0.0f));
}
