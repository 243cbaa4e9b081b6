/*probe
question = "How fast do short pieces of many rows come by loads: 64 bytes of eight rows an instruction, and their scales?"

# Rows of 3584 bytes (K = 7168, packed), 64 of them a CTA; a warp's lanes take 64 bytes of
# eight rows, its neighbours the next 64. One SM from L2, then all of them.
[[case]]
name = "{FORM}/one/{WARPS}x{AHEAD}"
each = { FORM = ["plain", "once", "beyond", "scales", "both"], WARPS = [14], AHEAD = [8] }
block = "32 * WARPS"
data = "64 * 4032"
[[case]]
name = "{FORM}/one/{WARPS}x{AHEAD}"
each = { FORM = ["once", "both"], WARPS = [1, 4], AHEAD = [8] }
block = "32 * WARPS"
data = "64 * 4032"
[[case]]
name = "{FORM}/all/warm/{WARPS}x{AHEAD}"
each = { FORM = ["once", "scales", "both"], WARPS = [14], AHEAD = [8] }
grid = 132
block = "32 * WARPS"
data = "132 * 64 * 4032"
read = "nanos"
[[case]]
name = "{FORM}/all/cold/{WARPS}x{AHEAD}"
each = { FORM = ["plain", "once", "both"], WARPS = [4, 8, 14], AHEAD = [4, 8] }
grid = 132
block = "32 * WARPS"
data = "132 * 64 * 4032"
read = "nanos"
l2 = "cold"
[[case]]
name = "{FORM}/all/cold/{WARPS}x{AHEAD}"
each = { FORM = ["scales", "beyond"], WARPS = [14], AHEAD = [8] }
grid = 132
block = "32 * WARPS"
data = "132 * 64 * 4032"
read = "nanos"
l2 = "cold"
*/
#include <probe.cuh>

constexpr u32 ROWS = 64, WIDTH = 3584, SCALES = WIDTH / 8, SPANS = WIDTH / 64;
constexpr u32 AT_ONCE = AHEAD * 8;  // rows

// Where a lane's piece of a row is, and where its scales are.
struct At {
  const u8 *words, *scale;
};

__device__ __forceinline__ u32 sum(const uint4& v) { return v.x ^ v.y ^ v.z ^ v.w; }

__device__ __forceinline__ u32 plain(const At& at) { return sum(load_global_v4(at.words)); }
__device__ __forceinline__ u32 once(const At& at) { return sum(load_global_once_v4(at.words)); }
__device__ __forceinline__ u32 scales(const At& at) { return load_global_u16(at.scale); }

__device__ __forceinline__ u32 beyond(const At& at) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at.words));
  return sum(v);
}

__device__ __forceinline__ u32 both(const At& at) { return once(at) ^ scales(at); }

PROBE __launch_bounds__(512) probe(ARGUMENTS) {
  const u32 row = lane() / 4;
  const u8* words = data + u64(blockIdx.x) * ROWS * WIDTH + row * WIDTH + lane() % 4 * 16;
  const u8* scale = data + u64(gridDim.x) * ROWS * WIDTH + u64(blockIdx.x) * ROWS * SCALES + row * SCALES + lane() % 4 * 2;
  u32 found = 0;
  __syncthreads();
  const u64 start = now();
#pragma unroll 1
  for (u32 span = warp(); span < SPANS; span += WARPS) {
#pragma unroll 1
    for (u32 first = 0; first < ROWS; first += AT_ONCE) {
      u32 v[AHEAD];
#pragma unroll
      for (u32 i = 0; i < AHEAD; ++i)
        v[i] = FORM({words + (first + 8 * i) * WIDTH + span * 64, scale + (first + 8 * i) * SCALES + span * 8});
#pragma unroll
      for (u32 i = 0; i < AHEAD; ++i) found ^= v[i];
    }
  }
  need(scratch, found);
  __syncthreads();
  const u64 end = now();
  report(out, start, end);
}
