// Weights and tokens as fragments of the warp's MMA, dequantised in registers.
//
// The MMA's sixteen rows are an octet of features, eight rows of B1 and the same
// eight of B2, so that a thread holds gate and up of the same elements. A lane
// takes sixteen bytes of its row: the pairs that a word comes apart into are the
// same elements of K in weights and tokens, in whatever order.
#pragma once
#include <dgx/dequant.cuh>
#include <dgx/ptx/mma.cuh>

namespace dgx {

// Sixteen bytes of a row, 32 elements, and their two scales, as they come.
struct Piece {
  uint4 words;
  u32 scales;
};

struct Weights {
  Piece gate, up;
};

// A piece as fp16, in units of the epilogue.
struct Halves {
  uint4 of_word[4];
};

__device__ __forceinline__ Halves halves_of(const Piece& piece) {
  const u32 scales = scales_to_f16x2(piece.scales);
  const u32 low = ptx::low_half_twice(scales), high = ptx::high_half_twice(scales);
  return {dequantise8(piece.words.x, low), dequantise8(piece.words.y, low), dequantise8(piece.words.z, high),
          dequantise8(piece.words.w, high)};
}

// d[i] += weights times tokens[i]^T over the piece's K.
template <u32 Octets>
__device__ __forceinline__ void multiply_octet(float4 (&d)[Octets], const Weights& weights,
                                               const Halves (&tokens)[Octets]) {
  const Halves gate = halves_of(weights.gate), up = halves_of(weights.up);
#pragma unroll
  for (u32 word = 0; word < 4; ++word) {
    const uint4 g = gate.of_word[word], u = up.of_word[word];
#pragma unroll
    for (u32 i = 0; i < Octets; ++i) {
      const uint4 t = tokens[i].of_word[word];
      ptx::mma_m16n8k16(d[i], g.x, u.x, g.y, u.y, t.x, t.y);
      ptx::mma_m16n8k16(d[i], g.z, u.z, g.w, u.w, t.z, t.w);
    }
  }
}

}  // namespace dgx
