/*dgx
operator = "nvfp4-gemm"
summary  = "A tile of C a CTA, operands dequantised in shared memory, one stage"
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
name    = "B"
tensor  = "b"
box     = ["BK / 2", "BN"]
swizzle = "64B"

[[launch]]
kernel = "gemm"
grid   = "sum(tiles)"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/single_gemm.cuh>
using namespace dgx;

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, gemm);
  single_gemm<MAP_B>(args, [](const Group& group) -> const u8* { return group.sfb_atoms; });
}
