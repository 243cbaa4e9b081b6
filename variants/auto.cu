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
  { ns = 4.486, of = "1000" },
  { ns = 0.02639, of = "minimum" },
  { ns = 7.64, of = "OCTETS * 100" },
  { ns = 0.2376, of = "sum(n * k) / 1024" },
  { ns = 8.12, of = "sum(m * k) / 1024" },
  { ns = 1.266, of = "ALL_TILES > sms ? 1000 : 0" },
  { ns = 0.7012, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * NT * 25" },
  { ns = 0.3775, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * OCTETS * 25" },
  { ns = 0.7958, of = "WARPS > 8 ? 1000 : 0" },
]

[[pick]]
contender = "experts"
when      = "most(m) > 8 ? sum(n) > 64 * sms : most(n) >= 8192 && sum(n) > 224 * sms"
cost      = [
  { ns = 3.687, of = "1000" },
  { ns = 0.5151, of = "minimum" },
  { ns = 16.31, of = "OCTETS * 100" },
  { ns = 0.1817, of = "groups * 100" },
  { ns = 0.006648, of = "sum(n * k) / 1024" },
  { ns = 0.0, of = "cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * MEAN_NT" },
  { ns = 0.6507, of = "NT > 2 ? cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * 100 : 0" },
]

[[pick]]
contender = "one-launch"
when      = "most(k) >= 4096 && most(n) <= 896"
cost      = [
  { ns = 3.198, of = "1000" },
  { ns = 0.5672, of = "minimum" },
  { ns = 3.738, of = "TOKENS * 10" },
  { ns = 0.2363, of = "sum(n * k) / 1024" },
]

[[pick]]
contender = "decode"
cost      = [
  { ns = 4.316, of = "1000" },
  { ns = 0.2961, of = "minimum" },
  { ns = 0.4063, of = "groups * 100" },
  { ns = 2.934, of = "ALL_TILES" },
  { ns = 8.605, of = "min(OCTETS, 5) * 100" },
  { ns = 0.01456, of = "OCTETS == 5 ? minimum : 0" },
  { ns = 0.0979, of = "sum(n * k) / 1024" },
  { ns = 0.09206, of = "NT > 2 ? minimum : 0" },
  { ns = 0.7485, of = "cdiv(ALL_TILES * SPLIT, sms) * cdiv(cdiv(most(k), 512), SPLIT) * NT * 100" },
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
  { ns = 5.95, of = "1000" },
  { ns = 0.442, of = "minimum" },
  { ns = 0.8735, of = "sum(m * k) / 1024" },
  { ns = 0.06285, of = "sum(n * k) / 1024" },
  { ns = 0.04643, of = "PERSISTENT ? 0 : minimum" },
  { ns = 0.06886, of = "TOKENS > 128 ? minimum : 0" },
  { ns = 2.058, of = "WARPGROUPS == 3 ? 1000 : 0" },
  { ns = 0.6406, of = "groups > 1 ? 1000 : 0" },
  { ns = 0.537, of = "groups > 8 ? 1000 : 0" },
  { ns = 1.532, of = "sum(m * n) / 1024" },
]
*/
