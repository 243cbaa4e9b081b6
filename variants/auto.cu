/*dgx
summary = "Whoever of the others is reckoned to be fastest on the shape"
parent  = "swap-ab"
round   = 7
claim   = { geomean = 1.5, over = "cublas", why = "each region has its own design" }
arch    = "sm_90a"

# What a call of each takes, in nanoseconds. `minimum` is in cycles: by it each chooses its
# tiles. What that leaves out is a fixed part, weights or tokens prepared, features stored,
# and what its registers cost decode. The numbers are fitted: `dgx dispatch --fit RUN… --write`.

[[pick]]
contender = "stream"
cost      = [
  { ns = 4.161, of = "1000" },
  { ns = 0.1835, of = "minimum" },
  { ns = 0.2633, of = "sum(n * k) / 1024" },
  { ns = 9.936, of = "sum(n) / 16" },
  { ns = 13.89, of = "most(k) / 64" },
]

[[pick]]
contender = "experts"
cost      = [
  { ns = 5.957, of = "1000" },
  { ns = 0.5012, of = "minimum" },
  { ns = 54.6, of = "most(k) / 64" },
  { ns = 3.581, of = "sum(n) / 16" },
]

[[pick]]
contender = "one-launch"
cost      = [
  { ns = 1.009, of = "1000" },
  { ns = 0.829, of = "minimum" },
]

[[pick]]
contender = "decode"
cost      = [
  { ns = 4.294, of = "1000" },
  { ns = 0.6093, of = "minimum" },
  { ns = 7.732, of = "ALL_TILES" },
  { ns = 3.435, of = "OCTETS > 4 ? 1000 : 0" },
  { ns = 0.11, of = "NT > 2 ? minimum : 0" },
  { ns = 1.284, of = "groups > 1 ? 1000 : 0" },
]

[[pick]]
contender = "token-major"
cost      = [
  { ns = 4.899, of = "1000" },
  { ns = 0.5806, of = "minimum" },
  { ns = 0.859, of = "sum(n * k) / 1024" },
  { ns = 0.0, of = "sum(m * n) / 1024" },
]

[[pick]]
contender = "swap-ab"
cost      = [
  { ns = 5.609, of = "1000" },
  { ns = 0.5488, of = "minimum" },
  { ns = 0.6037, of = "sum(m * k) / 1024" },
  { ns = 1.414, of = "sum(m * n) / 1024" },
]
*/
