"""dgx
summary = "Triton: a program for each row, which stays in registers where it fits"
parent  = "two-reads"
arch    = "sm_90a"
params  = { NUM_WARPS = [4, 8, 16] }
const   = { N = "n" }

[[launch]]
kernel  = "softmax"
grid    = "m"
options = { num_warps = "n > 16384 ? 32 : NUM_WARPS" }
args    = ["x", "y"]
"""
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax(x, y, N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * N
    y += row * N
    if N <= 16384:
        column = tl.arange(0, triton.next_power_of_2(N))
        inside = column < N
        value = tl.load(x + column, inside, -float("inf")).to(tl.float32)
        weight = tl.exp2((value - tl.max(value, 0)) * LOG2_E)
        tl.store(y + column, (weight / tl.sum(weight, 0)).to(tl.float16), inside)
    else:
        # Each lane keeps its own maximum and sum; they meet once. The second read is from L2.
        STEP: tl.constexpr = 8192
        column = tl.arange(0, STEP)
        tops = tl.full([STEP], -1e30, tl.float32)  # finite: lanes beyond the row keep it
        sums = tl.zeros([STEP], tl.float32)
        for first in range(0, N, STEP):
            value = tl.load(x + first + column, first + column < N, -float("inf")).to(tl.float32)
            higher = tl.maximum(tops, value)
            sums = sums * tl.exp2((tops - higher) * LOG2_E) + tl.exp2((value - higher) * LOG2_E)
            tops = higher
        top = tl.max(tops, 0)
        scale = 1.0 / tl.sum(sums * tl.exp2((tops - top) * LOG2_E), 0)
        for first in range(0, N, STEP):
            inside = first + column < N
            value = tl.load(x + first + column, inside).to(tl.float32)
            tl.store(y + first + column, (tl.exp2((value - top) * LOG2_E) * scale).to(tl.float16), inside)
