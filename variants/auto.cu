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
  { ns = 5.369, of = "1000" },
  { ns = 0.08795, of = "minimum" },
  { ns = 6.619, of = "OCTETS * 100" },
  { ns = 0.2407, of = "sum(n * k) / 1024" },
  { ns = 16.79, of = "sum(m * k) / 1024" },
  { ns = 1.184, of = "ALL_TILES > sms ? 1000 : 0" },
  { ns = 0.5391, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * NT * 25" },
  { ns = 0.2933, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * OCTETS * 25" },
]

[[pick]]
contender = "experts"
when      = "most(m) > 8 ? sum(n) > 64 * sms : most(n) >= 8192 && sum(n) > 224 * sms"
cost      = [
  { ns = 4.522, of = "1000" },
  { ns = 0.4921, of = "minimum" },
  { ns = 14.99, of = "OCTETS * 100" },
  { ns = 0.1076, of = "groups * 100" },
  { ns = 0.02155, of = "sum(n * k) / 1024" },
  { ns = 0.0, of = "cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * MEAN_NT" },
  { ns = 0.6048, of = "NT > 2 ? cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * 100 : 0" },
]

[[pick]]
contender = "one-launch"
when      = "most(k) >= 4096 && most(n) <= 896"
cost      = [
  { ns = 4.348, of = "1000" },
  { ns = 0.465, of = "minimum" },
  { ns = 1.826, of = "TOKENS * 10" },
  { ns = 0.3715, of = "sum(n * k) / 1024" },
]

[[pick]]
contender = "decode"
cost      = [
  { ns = 4.6, of = "1000" },
  { ns = 0.3619, of = "minimum" },
  { ns = 0.2098, of = "groups * 100" },
  { ns = 1.591, of = "ALL_TILES" },
  { ns = 8.482, of = "min(OCTETS, 5) * 100" },
  { ns = 0.007124, of = "OCTETS == 5 ? minimum : 0" },
  { ns = 0.07281, of = "sum(n * k) / 1024" },
  { ns = 0.09072, of = "NT > 2 ? minimum : 0" },
  { ns = 0.6417, of = "cdiv(ALL_TILES * SPLIT, sms) * cdiv(cdiv(most(k), 512), SPLIT) * NT * 100" },
]

[[pick]]
contender = "token-major"
cost      = [
  { ns = 6.568, of = "1000" },
  { ns = 0.5355, of = "minimum" },
  { ns = 1.239, of = "sum(n * k) / 1024" },
  { ns = 3.599, of = "groups * 100" },
  { ns = 2.486, of = "(WIDE_WAVES * COLUMNS + (WAVES - WIDE_WAVES) * NARROW) * (most(k) / 64 / SPLIT) / 10" },
]

[[pick]]
contender = "swap-ab"
when      = "most(m) > 8 || sum(n * k) > 160000000"
cost      = [
  { ns = 7.081, of = "1000" },
  { ns = 0.4003, of = "minimum" },
  { ns = 0.9046, of = "sum(m * k) / 1024" },
  { ns = 0.09008, of = "sum(n * k) / 1024" },
  { ns = 0.0311, of = "PERSISTENT ? 0 : minimum" },
  { ns = 0.1101, of = "TOKENS > 128 ? minimum : 0" },
  { ns = 1.091, of = "WARPGROUPS == 3 ? 1000 : 0" },
  { ns = 0.8034, of = "groups > 1 ? 1000 : 0" },
  { ns = 0.05875, of = "groups > 8 ? 1000 : 0" },
  { ns = 1.053, of = "sum(m * n) / 1024" },
]
*/
