/*dgx
summary = "Whoever of the others is reckoned to be fastest on the shape"
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
  { ns = 5.192, of = "1000" },
  { ns = 0.1978, of = "minimum" },
  { ns = 7.619, of = "OCTETS * 100" },
  { ns = 0.1711, of = "sum(n * k) / 1024" },
  { ns = 12.76, of = "sum(m * k) / 1024" },
  { ns = 0.7883, of = "ALL_TILES > sms ? 1000 : 0" },
  { ns = 0.4163, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * NT * 25" },
  { ns = 0.4175, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * OCTETS * 25" },
]

[[pick]]
contender = "experts"
cost      = [
  { ns = 7.008, of = "1000" },
  { ns = 0.2039, of = "minimum" },
  { ns = 9.183, of = "OCTETS * 100" },
  { ns = 0.9963, of = "groups * 100" },
  { ns = 0.1418, of = "sum(n * k) / 1024" },
  { ns = 1.302, of = "cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * MEAN_NT" },
  { ns = 0.4545, of = "NT > 2 ? cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * 100 : 0" },
  { ns = 0.152, of = "cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * 100 / OCTETS" },
]

[[pick]]
contender = "one-launch"
cost      = [
  { ns = 4.387, of = "1000" },
  { ns = 0.4586, of = "minimum" },
  { ns = 1.809, of = "TOKENS * 10" },
  { ns = 0.3831, of = "sum(n * k) / 1024" },
]

[[pick]]
contender = "decode"
cost      = [
  { ns = 4.954, of = "1000" },
  { ns = 0.3127, of = "minimum" },
  { ns = 1.182, of = "groups > 1 ? 1000 : 0" },
  { ns = 1.019, of = "groups * 100" },
  { ns = 3.755, of = "ALL_TILES" },
  { ns = 6.778, of = "min(OCTETS, 5) * 100" },
  { ns = 0.02614, of = "OCTETS == 5 ? minimum : 0" },
  { ns = 0.09254, of = "sum(n * k) / 1024" },
  { ns = 0.061, of = "NT > 2 ? minimum : 0" },
  { ns = 0.7552, of = "cdiv(ALL_TILES * SPLIT, sms) * cdiv(cdiv(most(k), 512), SPLIT) * NT * 100" },
]

[[pick]]
contender = "token-major"
cost      = [
  { ns = 6.535, of = "1000" },
  { ns = 0.4688, of = "minimum" },
  { ns = 1.428, of = "sum(n * k) / 1024" },
  { ns = 2.016, of = "groups * 100" },
  { ns = 5.029, of = "cdiv(ALL_TILES, sms) * (most(k) / 64 / SPLIT) * COLUMNS / 10" },
]

[[pick]]
contender = "swap-ab"
cost      = [
  { ns = 6.767, of = "1000" },
  { ns = 0.4459, of = "minimum" },
  { ns = 0.7567, of = "sum(m * k) / 1024" },
  { ns = 0.06061, of = "sum(n * k) / 1024" },
  { ns = 0.04032, of = "PERSISTENT ? 0 : minimum" },
  { ns = 0.118, of = "TOKENS > 128 ? minimum : 0" },
  { ns = 1.106, of = "WARPGROUPS == 3 ? 1000 : 0" },
  { ns = 1.215, of = "groups > 1 ? 1000 : 0" },
  { ns = 1.025, of = "groups > 8 ? 1000 : 0" },
  { ns = 0.4363, of = "sum(m * n) / 1024" },
]
*/
