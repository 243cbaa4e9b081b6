// Every thread of the grid adds once.

// All of them to one word.
extern "C" __global__ void same(float* sums, const float* values, const unsigned* places) {
  atomicAdd(sums, values[threadIdx.x]);
}

// Each to a word of its own.
extern "C" __global__ void apart(float* sums, const float* values, const unsigned* places) {
  atomicAdd(sums + blockIdx.x * blockDim.x + threadIdx.x, values[threadIdx.x]);
}

// To the words that they are told, of few.
extern "C" __global__ void bins(unsigned* sums, const float* values, const unsigned* places) {
  atomicAdd(sums + places[threadIdx.x], 3u);
}

// All to one word, and the assembler can see it: one lane adds for its warp.
extern "C" __global__ void counted(unsigned* sums, const float* values, const unsigned* places) {
  atomicAdd(sums, 1u);
}

// The same four in shared memory; floats there are added by a loop.
extern "C" __global__ void shared_same(float* sums, const float* values, const unsigned* places) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, values[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void shared_apart(float* sums, const float* values, const unsigned* places) {
  __shared__ float sum[256];
  sum[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&sum[threadIdx.x], values[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = sum[0];
}

extern "C" __global__ void shared_bins(unsigned* sums, const float* values, const unsigned* places) {
  __shared__ unsigned sum[256];
  sum[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&sum[places[threadIdx.x]], 3u);
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = sum[0];
}

extern "C" __global__ void shared_counted(unsigned* sums, const float* values, const unsigned* places) {
  __shared__ unsigned sum[256];
  sum[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&sum[places[threadIdx.x]], 1u);
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = sum[0];
}
