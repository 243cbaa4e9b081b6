// Inclusive scan of 1024 integers per CTA: shuffles within a warp, shared memory between warps.
extern "C" __global__ void scan(const int* in, int* out) {
    __shared__ int sums[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    int x = in[at];
    for (int by = 1; by < 32; by *= 2) {
        const int left = __shfl_up_sync(~0u, x, by);
        if (lane >= by) x += left;
    }
    if (lane == 31) sums[warp] = x;
    __syncthreads();
    if (warp == 0) {
        int sum = sums[lane];
        for (int by = 1; by < 32; by *= 2) {
            const int left = __shfl_up_sync(~0u, sum, by);
            if (lane >= by) sum += left;
        }
        sums[lane] = sum;
    }
    __syncthreads();
    out[at] = x + (warp > 0 ? sums[warp - 1] : 0);
}
