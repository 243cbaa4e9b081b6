// A histogram of random bytes: blocks count in shared memory and add up in global memory.
// The host counts too, and compares.
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int BINS = 256;

#define CHECK(call)                                                                      \
    do {                                                                                 \
        cudaError_t code = (call);                                                       \
        if (code != cudaSuccess) {                                                       \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(code)); \
            std::exit(1);                                                                \
        }                                                                                \
    } while (0)

__global__ void histogram(const unsigned char* bytes, int count, unsigned* bins) {
    __shared__ unsigned counted[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) counted[bin] = 0;
    __syncthreads();
    int step = gridDim.x * blockDim.x;
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step)
        atomicAdd(&counted[bytes[at]], 1u);
#ifndef RACE
    __syncthreads();
#endif
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) atomicAdd(&bins[bin], counted[bin]);
}

int main() {
    constexpr int COUNT = 1 << 18;
    std::vector<unsigned char> bytes(COUNT);
    std::vector<unsigned> expected(BINS), found(BINS);
    for (unsigned char& byte : bytes) expected[byte = std::rand() & 0xff]++;

    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    std::printf("%s, %d multiprocessors\n", device.name, device.multiProcessorCount);

    unsigned char* on_device;
    unsigned* bins;
    CHECK(cudaMalloc(&on_device, COUNT));
    CHECK(cudaMalloc(&bins, BINS * sizeof(unsigned)));
    CHECK(cudaMemcpy(on_device, bytes.data(), COUNT, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(bins, 0, BINS * sizeof(unsigned)));
    histogram<<<16, 256>>>(on_device, COUNT, bins);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found.data(), bins, BINS * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(on_device));
    CHECK(cudaFree(bins));

    bool right = found == expected;
    std::puts(right ? "Test PASSED" : "Test FAILED");
    return right ? 0 : 1;
}
