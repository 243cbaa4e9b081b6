// The operator with nothing clever in it: one thread per element of C, scalar
// arithmetic, a grid row per group. Too slow to contend; what it is for is to
// be mutated, one mistake at a time, to see that each mistake is caught.
#pragma once
#include <dgx/dot.cuh>
#include <dgx/epilogue.cuh>

namespace dgx::plain {

__device__ inline float gate(const Group& g, u32 row, u32 column) {
  return dot(g.a, g.sfa, row, g.b1, g.sfb1, column, g.k, 0, g.k);
}

__device__ inline float up(const Group& g, u32 row, u32 column) {
  return dot(g.a, g.sfa, row, g.b2, g.sfb2, column, g.k, 0, g.k);
}

__device__ inline void store(const Group& g, u32 row, u32 column, float value) {
  g.c[u64(row) * g.n + column] = static_cast<u16>(ptx::f32x2_to_f16x2(value, 0.0f));
}

// Calls body(group, row, column) for this thread's element, if it has one.
template <typename Body>
__device__ inline void each_element(const Args& args, Body body) {
  const Group& g = args.groups[blockIdx.y];
  const u32 element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element < g.m * g.n) body(g, element / g.n, element % g.n);
}

}  // namespace dgx::plain
