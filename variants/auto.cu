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
  { ns = 4.244, of = "1000" },
  { ns = 0.06075, of = "minimum" },
  { ns = 7.37, of = "OCTETS * 100" },
  { ns = 0.2359, of = "sum(n * k) / 1024" },
  { ns = 9.242, of = "sum(m * k) / 1024" },
  { ns = 1.164, of = "ALL_TILES > sms ? 1000 : 0" },
  { ns = 0.647, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * NT * 25" },
  { ns = 0.3334, of = "cdiv(ALL_TILES, sms) * cdiv(K / 128, WARPS) * WARPS * OCTETS * 25" },
  { ns = 0.9782, of = "WARPS > 8 ? 1000 : 0" },
]

[[pick]]
contender = "experts"
when      = "most(m) > 8 ? sum(n) > 64 * sms : most(n) >= 8192 && sum(n) > 224 * sms"
cost      = [
  { ns = 4.023, of = "1000" },
  { ns = 0.5314, of = "minimum" },
  { ns = 14.56, of = "OCTETS * 100" },
  { ns = 0.1729, of = "groups * 100" },
  { ns = 0.001391, of = "sum(n * k) / 1024" },
  { ns = 0.0, of = "cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * MEAN_NT" },
  { ns = 0.6055, of = "NT > 2 ? cdiv(ALL_TILES, sms * TEAM_TILES) * TEAM_TILES * cdiv(most(k), 512) * 100 : 0" },
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
  { ns = 4.196, of = "1000" },
  { ns = 0.3194, of = "minimum" },
  { ns = 0.6453, of = "groups * 100" },
  { ns = 2.57, of = "ALL_TILES" },
  { ns = 8.749, of = "min(OCTETS, 5) * 100" },
  { ns = 0.03283, of = "OCTETS == 5 ? minimum : 0" },
  { ns = 0.08635, of = "sum(n * k) / 1024" },
  { ns = 0.1232, of = "cdiv(ALL_TILES * SPLIT, sms) * cdiv(cdiv(most(k), 512), SPLIT) * (NT > 2 ? 1000 : 0)" },
  { ns = 0.7183, of = "cdiv(ALL_TILES * SPLIT, sms) * cdiv(cdiv(most(k), 512), SPLIT) * NT * 100" },
]

[[pick]]
contender = "token-major"
cost      = [
  { ns = 6.605, of = "1000" },
  { ns = 0.3977, of = "minimum" },
  { ns = 1.565, of = "sum(n * k) / 1024" },
  { ns = 0.0, of = "groups * 100" },
  { ns = 8.116, of = "(WIDE_WAVES * COLUMNS + (WAVES - WIDE_WAVES) * NARROW) * (most(k) / 64 / SPLIT) / 10" },
]

[[pick]]
contender = "swap-ab"
when      = "most(m) > 8 || sum(n * k) > 160000000"
cost      = [
  { ns = 5.849, of = "1000" },
  { ns = 0.4487, of = "minimum" },
  { ns = 0.8561, of = "sum(m * k) / 1024" },
  { ns = 0.06328, of = "sum(n * k) / 1024" },
  { ns = 0.04414, of = "PERSISTENT ? 0 : minimum" },
  { ns = 0.09278, of = "TOKENS > 128 ? minimum : 0" },
  { ns = 1.241, of = "WARPGROUPS == 3 ? 1000 : 0" },
  { ns = 0.3165, of = "groups > 1 ? 1000 : 0" },
  { ns = 1.012, of = "groups > 8 ? 1000 : 0" },
  { ns = 0.7803, of = "sum(m * n) / 1024" },
]
*/
