// One query per thread, online softmax over tiles of keys and values in shared memory.
constexpr int D = 32, TILE = 64;
extern "C" __global__ void attention(const float* q, const float* k, const float* v, float* out, int keys) {
    __shared__ float ks[TILE][D], vs[TILE][D];
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    float query[D], sum[D] = {};
    for (int i = 0; i < D; ++i) query[i] = q[row * D + i] * 0.17677669f;
    float most = -1e30f, weight = 0;
    for (int first = 0; first < keys; first += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * D; i += blockDim.x) {
            (&ks[0][0])[i] = k[first * D + i];
            (&vs[0][0])[i] = v[first * D + i];
        }
        __syncthreads();
        for (int key = 0; key < TILE; ++key) {
            float score = 0;
#pragma unroll
            for (int i = 0; i < D; ++i) score += query[i] * ks[key][i];
            const float top = fmaxf(most, score);
            const float keep = expf(most - top), p = expf(score - top);
            weight = weight * keep + p;
#pragma unroll
            for (int i = 0; i < D; ++i) sum[i] = sum[i] * keep + p * vs[key][i];
            most = top;
        }
    }
    for (int i = 0; i < D; ++i) out[row * D + i] = sum[i] / weight;
}
