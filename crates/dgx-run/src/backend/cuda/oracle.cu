
// The oracle's two products in f64. Plain on purpose: a tile of 64 x 64, one
// block of 16 along K a step, every thread 4 x 4 elements. Elements times
// scales are exact, so are their products, and sums of them nearly always are.

struct Products {
  const u8 *a, *sfa;      // m x k
  const u8 *b[2], *sfb[2];  // n x k each
  float* out[2];          // m x n each: A B1^T, A B2^T
  u32 m, n, k;
};

namespace {

constexpr u32 SIDE = 64, STEP = 16;

// Four elements of one row, by one thread of four; rows past the end are zero.
__device__ void dequantise_step(const u8* codes, const u8* scales, u32 row, u32 rows, u32 k, u32 step,
                                double (*tile)[SIDE + 1]) {
  const u32 place = threadIdx.x / 4, quarter = threadIdx.x % 4;
  u32 pairs = 0;
  float scale = 0;
  if (row + place < rows) {
    const u64 at = row + place;
    pairs = *reinterpret_cast<const u16*>(codes + at * (k / 2) + step * (STEP / 2) + quarter * 2);
    scale = e4m3(scales[at * (k / STEP) + step]);
  }
  for (u32 i = 0; i < 4; ++i) {
    tile[quarter * 4 + i][place] = double(e2m1(pairs >> (4 * i) & 15)) * double(scale);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) dgx_products(const __grid_constant__ Products p) {
  __shared__ double left[STEP][SIDE + 1], right[STEP][SIDE + 1];
  const u32 which = blockIdx.z, row = blockIdx.y * SIDE, column = blockIdx.x * SIDE;
  const u32 x = threadIdx.x % 16, y = threadIdx.x / 16;
  double sum[4][4] = {};
  for (u32 step = 0; step < p.k / STEP; ++step) {
    dequantise_step(p.a, p.sfa, row, p.m, p.k, step, left);
    dequantise_step(p.b[which], p.sfb[which], column, p.n, p.k, step, right);
    __syncthreads();
    for (u32 i = 0; i < STEP; ++i) {
      double l[4], r[4];
      for (u32 j = 0; j < 4; ++j) {
        l[j] = left[i][y + 16 * j];
        r[j] = right[i][x + 16 * j];
      }
      for (u32 u = 0; u < 4; ++u) {
        for (u32 v = 0; v < 4; ++v) sum[u][v] += l[u] * r[v];
      }
    }
    __syncthreads();
  }
  for (u32 u = 0; u < 4; ++u) {
    for (u32 v = 0; v < 4; ++v) {
      const u32 i = row + y + 16 * u, j = column + x + 16 * v;
      if (i < p.m && j < p.n) p.out[which][u64(i) * p.n + j] = float(sum[u][v]);
    }
  }
}
