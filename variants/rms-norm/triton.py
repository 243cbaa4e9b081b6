"""dgx
summary  = "Triton: a program for each row, which stays in registers"
parent   = "two-reads"
arch     = "sm_90a"
params   = { NUM_WARPS = [4, 8, 16] }
const    = { N = "n" }
requires = ["n <= 65536"]

[[launch]]
kernel  = "rms_norm"
grid    = "m"
options = { num_warps = "n > 16384 ? 32 : NUM_WARPS" }
args    = ["x", "w", "y", "eps"]
"""
import triton
import triton.language as tl


@triton.jit
def rms_norm(x, w, y, eps, N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, triton.next_power_of_2(N))
    inside = column < N
    value = tl.load(x + row * N + column, inside, 0.0).to(tl.float32)
    weight = tl.load(w + column, inside, 0.0, eviction_policy="evict_last").to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / N + eps)
    tl.store(y + row * N + column, (value * scale * weight).to(tl.bfloat16), inside)
