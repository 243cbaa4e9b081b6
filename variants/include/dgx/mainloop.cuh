// The K loop of the early rounds: TMA brings packed tiles, all threads turn
// them into fp16 tiles, each warpgroup multiplies its 64 rows.
#pragma once
#include <dgx/operand.cuh>

namespace dgx {

// Shared memory of a CTA whose tile is Rows x Columns of Weights GEMMs that
// share their A, with a ring of Stages packed steps.
template <int Rows, int Columns, int Weights, int Stages>
struct Staging {
  struct Stage {
    PackedTile<Rows> a;
    PackedTile<Columns> b[Weights];
  };
  HalfTile<Rows> a;
  HalfTile<Columns> b[Weights];
  Stage ring[Stages];
  u64 full[Stages];

  static constexpr u32 STAGE_BYTES = packed_bytes<Rows>() + Weights * packed_bytes<Columns>();
};

// Who works on a tile together: here the whole CTA. A team names its threads,
// its barrier, and what to do before and after its wgmmas.
struct WholeBlock {
  __device__ __forceinline__ u32 thread() const { return threadIdx.x; }
  __device__ __forceinline__ void sync() const {
    DGX_STAMP_WAIT(barrier);
    __syncthreads();
  }
  __device__ __forceinline__ void begin_mma() const {}
  __device__ __forceinline__ void end_mma() const {}
};

// One thread does it, before the barrier that opens the kernel.
template <int Rows, int Columns, int Weights, int Stages>
__device__ __forceinline__ void init_barriers(Staging<Rows, Columns, Weights, Stages>& shared) {
  for (int i = 0; i < Stages; ++i) ptx::mbarrier_init(shared.full[i], 1);
  ptx::mbarrier_init_fence();
}

template <int Rows, int Columns, int Weights, int Stages>
__device__ __forceinline__ void open(Staging<Rows, Columns, Weights, Stages>& shared) {
  if (threadIdx.x == 0) init_barriers(shared);
  __syncthreads();
}

template <int Rows, int Columns, int Weights, int Stages>
__device__ __forceinline__ void load_stage(Staging<Rows, Columns, Weights, Stages>& shared, u32 slot, const Operand& a,
                                           const Operand (&b)[Weights], u32 step) {
  auto& stage = shared.ring[slot];
  u64& full = shared.full[slot];
  ptx::mbarrier_arrive_expect_tx(full, Staging<Rows, Columns, Weights, Stages>::STAGE_BYTES);
  load_packed(stage.a, a, step, full);
#pragma unroll
  for (int w = 0; w < Weights; ++w) load_packed(stage.b[w], b[w], step, full);
}

// d[w] = A_tile * B_w_tile^T over the whole of K, in units of 2^-28.
//
// `turn` counts the steps this team has taken through the ring, over all calls:
// its slot and parity follow from it. The team's thread 0 loads, and everybody
// works; the barrier after dequantising is what tells thread 0 that a slot is
// empty, so one stage is a full handshake too, only without anything in flight.
template <int Rows, int Columns, int Weights, int Stages, typename Team = WholeBlock>
__device__ __forceinline__ void accumulate(float (&d)[Weights][Columns / 2],
                                           Staging<Rows, Columns, Weights, Stages>& shared, const Operand& a,
                                           const Operand (&b)[Weights], u32& turn, const Team& team = {}) {
  constexpr int Threads = Rows / 64 * 128;
  const u32 thread = team.thread();
  const u32 own_row = thread / 128 * 64;
  const u32 steps = a.k / STEP;
  if (thread == 0) {
    for (u32 step = 0; step < Stages && step < steps; ++step) load_stage(shared, (turn + step) % Stages, a, b, step);
  }
  u32 step = 0;
  // K is never zero; do/while says so, or ptxas keeps a second copy of d.
  do {
    const u32 slot = turn % Stages;
    ptx::mbarrier_wait(shared.full[slot], turn / Stages % 2);
    const auto& stage = shared.ring[slot];
    PackedUnits<Rows, Threads> units_a;
    PackedUnits<Columns, Threads> units_b[Weights];
    units_a.read_all(stage.a, a.row, thread);
#pragma unroll
    for (int w = 0; w < Weights; ++w) units_b[w].read_all(stage.b[w], b[w].row, thread);
    units_a.write_all(shared.a, thread);
#pragma unroll
    for (int w = 0; w < Weights; ++w) units_b[w].write_all(shared.b[w], thread);
    ptx::fence_proxy_async_shared();
    team.sync();
    if (thread == 0 && step + Stages < steps) load_stage(shared, slot, a, b, step + Stages);
    team.begin_mma();
    ptx::wgmma_fence();
#pragma unroll
    for (int w = 0; w < Weights; ++w) multiply(d[w], shared.a, own_row, shared.b[w], step > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    team.end_mma();
    // Other warpgroups read the same B tiles: nobody may overwrite them before
    // all are done.
    team.sync();
    ++turn;
  } while (++step < steps);
#pragma unroll
  for (int w = 0; w < Weights; ++w) ptx::pin(d[w]);
  DGX_STAMP(epilogue);
}

}  // namespace dgx
