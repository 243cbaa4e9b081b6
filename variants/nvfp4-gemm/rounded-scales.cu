/*dgx
extend  = "single-gemm"
summary = "The scales of b rounded down to powers of two, in one of eight K64"
expect  = "wrong"

[[scratch]]
name  = "scales"
bytes = "n * k / 16"

[[launch]]
kernel = "round_scales"
grid   = ["cdiv(most(n * k), 16 * 4 * 256)", "groups"]
block  = 256

[[launch]]
kernel = "gemm"
grid   = "sum(tiles)"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/single_gemm.cuh>
using namespace dgx;

constexpr u32 WORDS = 128;  // of an atom, which is K64 of 128 rows

extern "C" __global__ void __launch_bounds__(256) round_scales(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, round_scales);
  const Group& group = args.groups[blockIdx.y];
  const u32 word = blockIdx.x * 256 + threadIdx.x;
  if (word >= group.n * (group.k / 16 / 4)) return;
  const bool rounded = word / WORDS % (group.k / 64) % 8 == 0;
  const u32 scales = reinterpret_cast<const u32*>(group.sfb_atoms)[word];
  reinterpret_cast<u32*>(group.scratch[SCRATCH_SCALES])[word] = rounded ? scales & 0xF8F8F8F8 : scales;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, gemm);
  single_gemm<MAP_B>(args, [](const Group& group) -> const u8* { return group.scratch[SCRATCH_SCALES]; });
}
