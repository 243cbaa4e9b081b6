// Keeps the odd numbers: ranks by ballot, one place in the output per warp by an atomic.
extern "C" __global__ void compact(const unsigned* in, unsigned* out, unsigned* count, int n) {
    const int lane = threadIdx.x & 31;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const unsigned x = in[i];
        const unsigned odd = __ballot_sync(~0u, x & 1);
        unsigned first = 0;
        if (lane == 0) first = atomicAdd(count, __popc(odd));
        first = __shfl_sync(~0u, first, 0);
        if (x & 1) out[first + __popc(odd & ((1u << lane) - 1))] = x;
    }
}
