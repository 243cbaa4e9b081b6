// 256 bins of a byte stream: atomics on a CTA's own bins, then on the grid's.
extern "C" __global__ void histogram(const unsigned* bytes, unsigned* bins, int words) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        const unsigned four = bytes[i];
        atomicAdd(&own[four & 255], 1);
        atomicAdd(&own[four >> 8 & 255], 1);
        atomicAdd(&own[four >> 16 & 255], 1);
        atomicAdd(&own[four >> 24], 1);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
