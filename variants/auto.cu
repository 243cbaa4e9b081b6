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
  { ns = 5.213, of = "1000" },
  { ns = 0.1931, of = "minimum" },
  { ns = 7.576, of = "OCTETS * 100" },
  { ns = 0.174, of = "sum(n * k) / 1024" },
  { ns = 12.65, of = "sum(m * k) / 1024" },
  { ns = 0.7874, of = "ALL_TILES > sms ? 1000 : 0" },
  { ns = 0.4232, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * NT * 25" },
  { ns = 0.4136, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * OCTETS * 25" },
]

[[pick]]
contender = "experts"
cost      = [
  { ns = 6.949, of = "1000" },
  { ns = 0.1912, of = "minimum" },
  { ns = 9.237, of = "OCTETS * 100" },
  { ns = 0.9713, of = "groups * 100" },
  { ns = 0.1474, of = "sum(n * k) / 1024" },
  { ns = 1.269, of = "cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * MEAN_NT" },
  { ns = 0.5284, of = "NT > 2 ? cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * 100 : 0" },
  { ns = 0.7147, of = "cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * 100 / OCTETS" },
]

[[pick]]
contender = "one-launch"
cost      = [
  { ns = 6.601, of = "1000" },
  { ns = 6.924, of = "cdiv(most(k), 512 * SPLIT) * 100" },
  { ns = 21.3, of = "cdiv(most(k), 512 * SPLIT) * TOKENS" },
  { ns = 0.6021, of = "sum(n * k) / 1024" },
]

[[pick]]
contender = "decode"
cost      = [
  { ns = 4.916, of = "1000" },
  { ns = 0.3182, of = "minimum" },
  { ns = 1.164, of = "groups > 1 ? 1000 : 0" },
  { ns = 1.021, of = "groups * 100" },
  { ns = 3.574, of = "ALL_TILES" },
  { ns = 6.96, of = "min(OCTETS, 5) * 100" },
  { ns = 0.02245, of = "OCTETS == 5 ? minimum : 0" },
  { ns = 0.08991, of = "sum(n * k) / 1024" },
  { ns = 0.0625, of = "NT > 2 ? minimum : 0" },
  { ns = 0.7557, of = "cdiv(ALL_TILES * SPLIT, sms) * cdiv(cdiv(most(k), 512), SPLIT) * NT * 100" },
]

[[pick]]
contender = "token-major"
cost      = [
  { ns = 6.475, of = "1000" },
  { ns = 0.4797, of = "minimum" },
  { ns = 1.414, of = "sum(n * k) / 1024" },
  { ns = 2.054, of = "groups * 100" },
  { ns = 4.642, of = "cdiv(ALL_TILES, sms) * (most(k) / 64 / SPLIT) * COLUMNS / 10" },
]

[[pick]]
contender = "swap-ab"
cost      = [
  { ns = 6.821, of = "1000" },
  { ns = 0.4503, of = "minimum" },
  { ns = 0.7705, of = "sum(m * k) / 1024" },
  { ns = 0.05767, of = "sum(n * k) / 1024" },
  { ns = 0.03723, of = "PERSISTENT ? 0 : minimum" },
  { ns = 0.1299, of = "TOKENS > 128 ? minimum : 0" },
  { ns = 1.116, of = "WARPGROUPS == 3 ? 1000 : 0" },
  { ns = 1.192, of = "groups > 1 ? 1000 : 0" },
  { ns = 1.018, of = "groups > 8 ? 1000 : 0" },
]
*/
