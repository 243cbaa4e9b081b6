/*dgx
summary = "The contender with the lowest predicted cost on the shape"
parent  = "swap-ab"
round   = 7
claim   = { geomean = 1.5, over = "cublas", why = "each region has its own design" }
arch    = "sm_90a"

# What a call of each takes, in nanoseconds. `minimum` is in cycles: by it each chooses its
# tiles. It leaves out the launch, looking up groups, weights that come from memory, tokens
# or weights that are prepared, and more octets than registers hold well. The numbers are
# fitted: `dgx dispatch --fit RUN… --write`.

[[pick]]
contender = "stream"
cost      = [
  { ns = 3.48, of = "1000" },
  { ns = 0.2039, of = "minimum" },
  { ns = 8.797, of = "OCTETS * 100" },
  { ns = 0.1951, of = "sum(n * k) / 1024" },
  { ns = 14.08, of = "sum(m * k) / 1024" },
  { ns = 0.7333, of = "ALL_TILES > sms ? 1000 : 0" },
  { ns = 0.4189, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * NT * 25" },
  { ns = 0.3206, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * OCTETS * 25" },
  { ns = 1.027, of = "WARPS > 8 ? 1000 : 0" },
]

[[pick]]
contender = "experts"
when      = "most(m) > 8 ? sum(n) > 32 * sms : most(n) >= 8192 && sum(n) > 224 * sms"
cost      = [
  { ns = 4.651, of = "1000" },
  { ns = 0.5086, of = "minimum" },
  { ns = 12.96, of = "OCTETS * 100" },
  { ns = 0.03491, of = "groups * 100" },
  { ns = 0.0, of = "sum(n * k) / 1024" },
  { ns = 0.1597, of = "cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * MEAN_NT" },
  { ns = 1.097, of = "NT > 2 ? cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * 100 : 0" },
]

[[pick]]
contender = "one-launch"
when      = "most(k) >= 4096 && most(n) <= 896"
cost      = [
  { ns = 3.614, of = "1000" },
  { ns = 0.4928, of = "minimum" },
  { ns = 1.583, of = "TOKENS * 10" },
  { ns = 0.4381, of = "sum(n * k) / 1024" },
]

[[pick]]
contender = "decode"
cost      = [
  { ns = 3.70, of = "1000" },
  { ns = 0.4771, of = "minimum" },
  { ns = 0.5911, of = "groups * 100" },
  { ns = 2.615, of = "ALL_TILES" },
  { ns = 6.906, of = "min(OCTETS, 5) * 100" },
  { ns = 0.02243, of = "OCTETS == 5 ? minimum : 0" },
  { ns = 0.01334, of = "sum(n * k) / 1024" },
  { ns = 0.1126, of = "cdiv(ALL_TILES * SPLIT, sms) * cdiv(cdiv(most(k), 512), SPLIT) * (NT > 2 ? 1000 : 0)" },
  { ns = 0.5358, of = "cdiv(ALL_TILES * SPLIT, sms) * cdiv(cdiv(most(k), 512), SPLIT) * NT * 100" },
]

[[pick]]
contender = "token-major"
cost      = [
  { ns = 6.503, of = "1000" },
  { ns = 0.4888, of = "minimum" },
  { ns = 1.808, of = "sum(n * k) / 1024" },
  { ns = 0.0, of = "groups * 100" },
  { ns = 3.671, of = "(WIDE_WAVES * COLUMNS + (WAVES - WIDE_WAVES) * NARROW) * (most(k) / 64 / SPLIT) / 10" },
]

[[pick]]
contender = "swap-ab"
when      = "most(m) > 8 || sum(n * k) > 160000000"
cost      = [
  { ns = 6.266, of = "1000" },
  { ns = 0.4052, of = "minimum" },
  { ns = 0.9119, of = "sum(m * k) / 1024" },
  { ns = 0.09127, of = "sum(n * k) / 1024" },
  { ns = 0.04135, of = "PERSISTENT ? 0 : minimum" },
  { ns = 0.1174, of = "TOKENS > 128 ? minimum : 0" },
  { ns = 0.2706, of = "WARPGROUPS == 3 ? 1000 : 0" },
  { ns = 0.9713, of = "groups > 1 ? 1000 : 0" },
  { ns = 0.237, of = "groups > 8 ? 1000 : 0" },
  { ns = 0.9047, of = "sum(m * n) / 1024" },
]
*/
