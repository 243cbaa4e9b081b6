// C = A·B in f32, square: 64×64 per CTA of 256 threads, 4×4 per thread.
extern "C" __global__ void sgemm(const float* a, const float* b, float* c, int n) {
    __shared__ float as[16][64], bs[16][64];
    const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    const int row = blockIdx.y * 64, column = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        const int ar = threadIdx.x >> 2, ak = (threadIdx.x & 3) * 4;
        const float4 left = *(const float4*)&a[(row + ar) * n + k + ak];
        as[ak][ar] = left.x;
        as[ak + 1][ar] = left.y;
        as[ak + 2][ar] = left.z;
        as[ak + 3][ar] = left.w;
        const int bk = threadIdx.x >> 4, bc = (threadIdx.x & 15) * 4;
        *(float4*)&bs[bk][bc] = *(const float4*)&b[(k + bk) * n + column + bc];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const float4 x = *(const float4*)&as[i][ty * 4], y = *(const float4*)&bs[i][tx * 4];
            const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
            for (int r = 0; r < 4; ++r)
                for (int s = 0; s < 4; ++s) sum[r][s] += xs[r] * ys[s];
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s) c[(row + ty * 4 + r) * n + column + tx * 4 + s] = sum[r][s];
}
