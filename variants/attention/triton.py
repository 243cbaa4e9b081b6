"""dgx
summary  = "Triton: scores stay in registers, keys and values through a pipeline, the mask on the diagonal alone"
parent   = "fragments"
arch     = "sm_90a"
params   = { KEYS = [64, 128], STAGES = [2, 3] }
const    = { S = "s", D = "d", QUERIES = 128, HEADS = "b * h" }
requires = ["d == 16 || d == 32 || d == 64 || d == 128"]

[[launch]]
kernel  = "attention"
grid    = "HEADS * cdiv(s, QUERIES)"
options = { num_warps = 8, num_stages = "STAGES" }
args    = ["q", "k", "v", "o"]
"""
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def tile(q, k, v, sums, top, total, query, first, S: tl.constexpr, D: tl.constexpr, KEYS: tl.constexpr,
         DIAGONAL: tl.constexpr):
    """One tile of keys; the sums so far shrink to the new maximum."""
    key = first + tl.arange(0, KEYS)
    place = key[:, None] * D + tl.arange(0, D)[None, :]
    if DIAGONAL and S % KEYS != 0:
        keys = tl.load(k + place, key[:, None] < S, 0.0)
        values = tl.load(v + place, key[:, None] < S, 0.0)
    else:
        keys = tl.load(k + place)
        values = tl.load(v + place)
    score = tl.dot(q, keys.T) * (LOG2_E / D**0.5)
    if DIAGONAL:
        score = tl.where(key[None, :] <= query[:, None], score, -float("inf"))
    higher = tl.maximum(top, tl.max(score, 1))
    weight = tl.exp2(score - higher[:, None])
    shrink = tl.exp2(top - higher)
    sums = tl.dot(weight.to(tl.float16), values, sums * shrink[:, None])
    return sums, higher, total * shrink + tl.sum(weight, 1)


@triton.jit
def attention(q, k, v, o, S: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, QUERIES: tl.constexpr,
              KEYS: tl.constexpr):
    # The programs with the most keys come first.
    tl.static_assert(QUERIES % KEYS == 0)
    head = (tl.program_id(0) % HEADS).to(tl.int64) * S * D
    begin = (tl.cdiv(S, QUERIES) - 1 - tl.program_id(0) // HEADS) * QUERIES
    query = begin + tl.arange(0, QUERIES)
    place = query[:, None] * D + tl.arange(0, D)[None, :]
    own = tl.load(q + head + place, query[:, None] < S, 0.0)
    sums = tl.zeros((QUERIES, D), tl.float32)
    top = tl.full((QUERIES,), -float("inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    for first in range(0, begin, KEYS):
        sums, top, total = tile(own, k + head, v + head, sums, top, total, query, first, S, D, KEYS, False)
    for first in range(begin, min(begin + QUERIES, S), KEYS):
        sums, top, total = tile(own, k + head, v + head, sums, top, total, query, first, S, D, KEYS, True)
    tl.store(o + head + place, (sums / total[:, None]).to(tl.float16), query[:, None] < S)
