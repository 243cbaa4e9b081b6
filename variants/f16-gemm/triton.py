"""dgx
summary  = "Triton: tiles in groups of rows, so that B's columns are still in L2; a pipeline of STAGES"
parent   = "tiled"
arch     = "sm_90a"
params   = { WIDTH = [128, 256], STAGES = [3, 4] }
requires = ["n % 8 == 0", "k % 8 == 0"]

# Few rows: B is what is read, and narrow tiles give every SM a part of it.
[const]
BLOCK_M = "m <= 16 ? 16 : m <= 64 ? 64 : 128"
BLOCK_N = "m <= 64 ? 32 : cdiv(m, 128) * cdiv(n, WIDTH) * 2 <= sms ? WIDTH / 2 : WIDTH"
BLOCK_K = "m <= 64 ? 128 : 64"
GROUP   = 8  # rows of tiles
K       = "k"

[[launch]]
kernel  = "gemm"
grid    = "cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N)"
options = { num_warps = "m <= 64 ? 4 : 8", num_stages = "m <= 64 ? 6 : STAGES" }
args    = ["a", "b", "c", "m", "n"]
"""
import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, m, n, K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
         GROUP: tl.constexpr):
    # GROUP rows of tiles share their columns before the next columns begin.
    tile = tl.program_id(0)
    rows, columns = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    first = tile // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    row = (first + tile % (GROUP * columns) % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile % (GROUP * columns) // height * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    # Rows beyond A or B are read as its last: what they make is not stored.
    a_tile = a + tl.minimum(row, m - 1).to(tl.int64)[:, None] * K + depth[None, :]
    b_tile = b + tl.minimum(column, n - 1).to(tl.int64)[None, :] * K + depth[:, None]
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        if K % BLOCK_K == 0:
            a_part = tl.load(a_tile)
            b_part = tl.load(b_tile)
        else:
            a_part = tl.load(a_tile, depth[None, :] < K - k, 0.0)
            b_part = tl.load(b_tile, depth[:, None] < K - k, 0.0)
        sums = tl.dot(a_part, b_part, sums)
        a_tile += BLOCK_K
        b_tile += BLOCK_K
    c_tile = c + row.to(tl.int64)[:, None] * n + column[None, :]
    tl.store(c_tile, sums.to(tl.float16), (row[:, None] < m) & (column[None, :] < n))
