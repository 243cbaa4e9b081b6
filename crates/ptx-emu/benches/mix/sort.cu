// Bitonic sort of 1024 keys per CTA in shared memory.
extern "C" __global__ void sort(unsigned* keys) {
    __shared__ unsigned tile[1024];
    const unsigned i = threadIdx.x;
    unsigned* mine = keys + blockIdx.x * 1024;
    tile[i] = mine[i];
    tile[i + 512] = mine[i + 512];
    for (unsigned size = 2; size <= 1024; size *= 2) {
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            const unsigned at = 2 * i - (i & (stride - 1));
            const unsigned a = tile[at], b = tile[at + stride];
            const bool up = (at & size) == 0;
            if ((a > b) == up) {
                tile[at] = b;
                tile[at + stride] = a;
            }
        }
    }
    __syncthreads();
    mine[i] = tile[i];
    mine[i + 512] = tile[i + 512];
}
