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
  { ns = 5.128, of = "1000" },
  { ns = 0.2317, of = "minimum" },
  { ns = 7.593, of = "OCTETS * 100" },
  { ns = 0.1703, of = "sum(n * k) / 1024" },
  { ns = 13.3, of = "sum(m * k) / 1024" },
  { ns = 0.7209, of = "ALL_TILES > sms ? 1000 : 0" },
  { ns = 0.3677, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * NT * 25" },
  { ns = 0.3638, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * OCTETS * 25" },
]

[[pick]]
contender = "experts"
cost      = [
  { ns = 5.292, of = "1000" },
  { ns = 0.1308, of = "minimum" },
  { ns = 8.205, of = "OCTETS * 100" },
  { ns = 0.5092, of = "groups * 100" },
  { ns = 0.1617, of = "sum(n * k) / 1024" },
  { ns = 2.078, of = "cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * MEAN_NT" },
  { ns = 0.7068, of = "NT > 2 ? cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * 100 : 0" },
]

[[pick]]
contender = "one-launch"
cost      = [
  { ns = 4.348, of = "1000" },
  { ns = 0.465, of = "minimum" },
  { ns = 1.826, of = "TOKENS * 10" },
  { ns = 0.3715, of = "sum(n * k) / 1024" },
]

[[pick]]
contender = "decode"
cost      = [
  { ns = 5.012, of = "1000" },
  { ns = 0.3214, of = "minimum" },
  { ns = 0.3336, of = "groups * 100" },
  { ns = 4.082, of = "ALL_TILES" },
  { ns = 6.642, of = "min(OCTETS, 5) * 100" },
  { ns = 0.03403, of = "OCTETS == 5 ? minimum : 0" },
  { ns = 0.08213, of = "sum(n * k) / 1024" },
  { ns = 0.06421, of = "NT > 2 ? minimum : 0" },
  { ns = 0.7848, of = "cdiv(ALL_TILES * SPLIT, sms) * cdiv(cdiv(most(k), 512), SPLIT) * NT * 100" },
]

[[pick]]
contender = "token-major"
cost      = [
  { ns = 6.846, of = "1000" },
  { ns = 0.4191, of = "minimum" },
  { ns = 1.336, of = "sum(n * k) / 1024" },
  { ns = 2.223, of = "groups * 100" },
  { ns = 7.36, of = "(WIDE_WAVES * COLUMNS + (WAVES - WIDE_WAVES) * NARROW) * (most(k) / 64 / SPLIT) / 10" },
]

[[pick]]
contender = "swap-ab"
cost      = [
  { ns = 6.728, of = "1000" },
  { ns = 0.4428, of = "minimum" },
  { ns = 0.8619, of = "sum(m * k) / 1024" },
  { ns = 0.06812, of = "sum(n * k) / 1024" },
  { ns = 0.04174, of = "PERSISTENT ? 0 : minimum" },
  { ns = 0.09772, of = "TOKENS > 128 ? minimum : 0" },
  { ns = 0.8649, of = "WARPGROUPS == 3 ? 1000 : 0" },
  { ns = 1.032, of = "groups > 1 ? 1000 : 0" },
  { ns = 1.28, of = "groups > 8 ? 1000 : 0" },
  { ns = 0.4501, of = "sum(m * n) / 1024" },
]
*/
