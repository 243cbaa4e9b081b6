// Streams, events, pinned memory and a reduction with a constant and an atomic.
#include <cstdio>
#include <vector>

__constant__ float factor;
__device__ unsigned int blocks_done;

__global__ void scale(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * factor;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&blocks_done, 1u);
}

__global__ void sum(const float *in, float *out, int n) {
    __shared__ float part[256];
    float mine = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) mine += in[i];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = part[0];
}

#define CHECK(call)                                                         \
    do {                                                                    \
        cudaError_t code = (call);                                          \
        if (code != cudaSuccess) {                                          \
            printf("%s: %s\n", #call, cudaGetErrorString(code));            \
            return 1;                                                       \
        }                                                                   \
    } while (0)

int main() {
    const int n = 5000;
    float *host, *in, *out, *total, value = 3.0f;
    CHECK(cudaMallocHost(&host, n * sizeof(float)));
    CHECK(cudaMalloc(&in, n * sizeof(float)));
    CHECK(cudaMalloc(&out, n * sizeof(float)));
    CHECK(cudaMallocManaged(&total, sizeof(float)));
    for (int i = 0; i < n; i++) host[i] = i % 7;
    cudaStream_t stream;
    cudaEvent_t from, to;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    CHECK(cudaMemcpyToSymbol(factor, &value, sizeof value));
    CHECK(cudaMemcpyAsync(in, host, n * sizeof(float), cudaMemcpyHostToDevice, stream));
    CHECK(cudaEventRecord(from, stream));
    scale<<<(n + 255) / 256, 256, 0, stream>>>(in, out, n);
    sum<<<1, 256, 0, stream>>>(out, total, n);
    CHECK(cudaEventRecord(to, stream));
    CHECK(cudaStreamSynchronize(stream));
    float expected = 0, millis = -1;
    for (int i = 0; i < n; i++) expected += 3.0f * (i % 7);
    unsigned int done;
    CHECK(cudaMemcpyFromSymbol(&done, blocks_done, sizeof done));
    CHECK(cudaEventElapsedTime(&millis, from, to));
    bool right = *total == expected && done == 20 && millis >= 0;
    printf("%g of %g, %u blocks: %s\n", *total, expected, done, right ? "right" : "wrong");
    return right ? 0 : 1;
}
