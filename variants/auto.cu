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
  { ns = 4.437, of = "1000" },
  { ns = 0.4583, of = "minimum" },
  { ns = 8.206, of = "OCTETS * 100" },
  { ns = 0.1661, of = "sum(n * k) / 1024" },
  { ns = 22.06, of = "sum(m * k) / 1024" },
  { ns = 0.6254, of = "ALL_TILES > sms ? 1000 : 0" },
]

[[pick]]
contender = "experts"
cost      = [
  { ns = 6.04, of = "1000" },
  { ns = 0.5034, of = "minimum" },
  { ns = 1.811, of = "NT > 2 ? 1000 : 0" },
  { ns = 9.606, of = "OCTETS * 100" },
  { ns = 0.6818, of = "groups * 100" },
  { ns = 0.04472, of = "sum(n * k) / 1024" },
]

[[pick]]
contender = "one-launch"
cost      = [
  { ns = 3.237, of = "1000" },
  { ns = 0.6754, of = "minimum" },
  { ns = 1.052, of = "TOKENS * 10" },
]

[[pick]]
contender = "decode"
cost      = [
  { ns = 5.277, of = "1000" },
  { ns = 0.4899, of = "minimum" },
  { ns = 1.517, of = "OCTETS * NT * 100" },
  { ns = 1.412, of = "groups > 1 ? 1000 : 0" },
  { ns = 9.106, of = "ALL_TILES" },
  { ns = 1.856, of = "OCTETS == 5 ? 1000 : 0" },
  { ns = 0.09278, of = "NT > 2 ? minimum : 0" },
  { ns = 0.0468, of = "OCTETS <= 4 ? sum(n * k) / 1024 : 0" },
]

[[pick]]
contender = "token-major"
cost      = [
  { ns = 5.586, of = "1000" },
  { ns = 0.5741, of = "minimum" },
  { ns = 1.78, of = "sum(n * k) / 1024" },
  { ns = 0.02009, of = "COLUMNS == 256 ? minimum : 0" },
]

[[pick]]
contender = "swap-ab"
cost      = [
  { ns = 5.136, of = "1000" },
  { ns = 0.5254, of = "minimum" },
  { ns = 0.7671, of = "sum(m * k) / 1024" },
  { ns = 0.061, of = "TOKENS > 128 ? minimum : 0" },
  { ns = 2.035, of = "WARPGROUPS > 1 ? 1000 : 0" },
  { ns = 0.1345, of = "WARPGROUPS == 1 ? minimum : 0" },
  { ns = 1.634, of = "groups > 8 ? 1000 : 0" },
  { ns = 1.095, of = "WARPGROUPS == 3 ? 1000 : 0" },
]
*/
