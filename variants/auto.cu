/*dgx
summary = "Whoever of the others is reckoned to be fastest on the shape"
parent  = "swap-ab"
round   = 7
claim   = { geomean = 1.5, over = "cublas", why = "each region has its own design" }
arch    = "sm_90a"

# What a call of each takes, in nanoseconds. `minimum` is in cycles: by it each chooses its
# tiles. It leaves out the launch, looking up groups, weights that come from memory, tokens
# or weights that are prepared, features that are stored, and tiles of five octets and more
# or of more than two octets of tokens, for which registers are short. The numbers are
# fitted: `dgx dispatch --fit RUN… --write`.

[[pick]]
contender = "stream"
cost      = [
  { ns = 4.161, of = "1000" },
  { ns = 0.1824, of = "minimum" },
  { ns = 0.2636, of = "sum(n * k) / 1024" },
  { ns = 9.94, of = "sum(n) / 16" },
  { ns = 13.97, of = "most(k) / 64" },
]

[[pick]]
contender = "experts"
cost      = [
  { ns = 6.399, of = "1000" },
  { ns = 0.5436, of = "minimum" },
  { ns = 35.67, of = "most(k) / 64" },
  { ns = 0.8292, of = "groups * 100" },
  { ns = 2.44, of = "OCTETS > 4 ? 1000 : 0" },
  { ns = 0.05892, of = "NT > 2 ? minimum : 0" },
]

[[pick]]
contender = "one-launch"
cost      = [
  { ns = 0.9913, of = "1000" },
  { ns = 0.8313, of = "minimum" },
]

[[pick]]
contender = "decode"
cost      = [
  { ns = 4.896, of = "1000" },
  { ns = 0.3994, of = "minimum" },
  { ns = 0.1271, of = "sum(n * k) / 1024" },
  { ns = 6.792, of = "ALL_TILES" },
  { ns = 1.295, of = "groups > 1 ? 1000 : 0" },
  { ns = 2.848, of = "OCTETS > 4 ? 1000 : 0" },
  { ns = 0.1805, of = "NT > 2 ? minimum : 0" },
]

[[pick]]
contender = "token-major"
cost      = [
  { ns = 4.915, of = "1000" },
  { ns = 0.5807, of = "minimum" },
  { ns = 0.854, of = "sum(n * k) / 1024" },
  { ns = 0.0, of = "sum(m * n) / 1024" },
]

[[pick]]
contender = "swap-ab"
cost      = [
  { ns = 5.628, of = "1000" },
  { ns = 0.5473, of = "minimum" },
  { ns = 0.6203, of = "sum(m * k) / 1024" },
  { ns = 1.414, of = "sum(m * n) / 1024" },
]
*/
