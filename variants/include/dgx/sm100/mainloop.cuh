// The K loop: TMA brings packed tiles and atoms of scales, the tensor core
// takes both as they are. One thread keeps all of it going.
#pragma once
#include <dgx/ptx/barrier.cuh>
#include <dgx/sm100/operand.cuh>

namespace dgx {

// Shared memory of a CTA whose tile is Rows x Columns of Weights GEMMs that
// share their A, with a ring of Slots steps, for so many accumulators.
template <int Rows, int Columns, int Weights, int Slots, int Accumulators = Weights>
struct Staging {
  static_assert(Rows == 128, "a block-scaled MMA has 128 rows");
  static constexpr int WEIGHTS = Weights, SLOTS = Slots;
  static constexpr u32 INSTRUCTION = ptx::nvfp4_instruction(Rows, Columns);
  using Tensor = TensorColumns<Columns, Accumulators, Weights>;
  struct Stage {
    PackedTile<Rows> a;
    PackedTile<Columns> b[Weights];
  };
  Stage stage[Slots];
  u64 full[Slots];   // its bytes are there
  u64 empty[Slots];  // its MMAs are done
  u64 done;          // all MMAs of the tile are
  u32 columns;       // where its tensor memory begins
};

// One thread does it, before the barrier that opens the kernel.
template <typename Shared>
__device__ __forceinline__ void init_barriers(Shared& shared) {
  for (int i = 0; i < Shared::SLOTS; ++i) {
    ptx::mbarrier_init(shared.full[i], 1);
    ptx::mbarrier_init(shared.empty[i], 1);
  }
  ptx::mbarrier_init(shared.done, 1);
  ptx::mbarrier_init_fence();
}

// Loads `step` of a tile as the turn-th step the ring sees, once its slot is
// empty: the first time round it is.
template <typename Shared>
__device__ __forceinline__ void load_step(Shared& shared, u32 turn, const Operand& a,
                                          const Operand (&b)[Shared::WEIGHTS], u32 step) {
  const u32 slot = turn % Shared::SLOTS;
  auto& stage = shared.stage[slot];
  u64& full = shared.full[slot];
  ptx::mbarrier_wait(shared.empty[slot], turn / Shared::SLOTS % 2 ^ 1);
  ptx::mbarrier_arrive_expect_tx(full, sizeof(stage));
  load_packed(stage.a, a, step, full);
#pragma unroll
  for (int w = 0; w < Shared::WEIGHTS; ++w) load_packed(stage.b[w], b[w], step, full);
}

// Multiplies the turn-th step into accumulators first, first + 1, ... once it
// is there, and lets its slot be refilled when that is done.
template <typename Shared>
__device__ __forceinline__ void multiply_step(Shared& shared, u32 turn, const typename Shared::Tensor& tmem, u32 first,
                                              const Operand (&b)[Shared::WEIGHTS], bool add) {
  const u32 slot = turn % Shared::SLOTS;
  const auto& stage = shared.stage[slot];
  ptx::mbarrier_wait(shared.full[slot], turn / Shared::SLOTS % 2);
  ptx::tensor_fence_after();
  DGX_STAMP(multiply);
  const u64 a_tile = ptx::operand_descriptor(ptx::shared_address(stage.a.nibbles));
#pragma unroll
  for (int k64 = 0; k64 < K64S; ++k64) {
    const u32 at = k64 * ptx::OPERAND_K64;
    copy_scales(tmem.a_scales(k64), stage.a.scales, k64);
#pragma unroll
    for (int w = 0; w < Shared::WEIGHTS; ++w) copy_scales(tmem.b_scales(w, k64), stage.b[w].scales, k64);
#pragma unroll
    for (int w = 0; w < Shared::WEIGHTS; ++w) {
      const u64 b_tile = ptx::operand_descriptor(ptx::shared_address(stage.b[w].nibbles));
      ptx::mma_nvfp4(tmem.accumulator(first + w), a_tile + at, b_tile + at, Shared::INSTRUCTION, tmem.a_scales(k64),
                     tmem.b_scales(w, k64) + b[w].atom_column(), add || k64 > 0);
    }
  }
  ptx::mma_commit(shared.empty[slot]);
}

// accumulator(first + w) = A_tile * B_w_tile^T over the whole of K, by one
// thread; the caller commits. `turn` counts the steps the ring has seen, over
// all calls.
//
// A slot is refilled one step after its MMAs were issued, when they are about
// done and the next step's are in the queue. With one slot there is no next:
// load, wait, multiply, wait.
template <typename Shared>
__device__ __forceinline__ void accumulate(Shared& shared, const typename Shared::Tensor& tmem, u32 first,
                                           const Operand& a, const Operand (&b)[Shared::WEIGHTS], u32& turn) {
  constexpr u32 AHEAD = Shared::SLOTS > 1 ? Shared::SLOTS - 1 : 1;
  const u32 steps = a.steps();
  for (u32 step = 0; step < Shared::SLOTS && step < steps; ++step) load_step(shared, turn + step, a, b, step);
  for (u32 step = 0; step < steps; ++step) {
    multiply_step(shared, turn + step, tmem, first, b, step > 0);
    const u32 next = step + AHEAD;
    if (next >= Shared::SLOTS && next < steps) load_step(shared, turn + next, a, b, next);
  }
  turn += steps;
}

}  // namespace dgx
