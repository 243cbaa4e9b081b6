/*dgx
summary = "Whoever of the others is fastest on the shape"
parent  = "swap-ab"
round   = 7
claim   = { geomean = 1.5, over = "cublas", why = "each region has its own design" }
arch    = "sm_90a"

# A single wave that is over before a ring pays, or whose tiles decode could not spread over the SMs.
[[pick]]
contender = "stream"
when      = """
  groups == 1 && most(m) <= 8 && most(n) >= 1024 && most(n) <= 2560
  && (most(n) < 1792 || most(n) > 2048 || most(k) >= 16384)
"""

# Few tokens for each of many experts, and tiles enough for all SMs.
[[pick]]
contender = "experts"
when      = "groups > 1 && most(m) <= 17 && sum(n) >= 96 * sms"

# So few features that up to eight CTAs share a tile's K, a K long enough for that, and more
# tokens than decode likes (whose tiles fit 512 features).
[[pick]]
contender = "one-launch"
when      = """
  groups == 1 && most(m) > 16 && most(m) <= 64 && most(k) >= 4096
  && most(n) >= 256 && most(n) <= 896 && (most(n) != 512 || most(m) <= 32)
"""

# Few tokens, or so few features that swap-ab's tiles leave SMs idle.
[[pick]]
contender = "decode"
when      = """
  most(m) <= (groups == 1 ? 16 : 8)
  || groups > 1 && most(m) <= 24 && sum(n) <= 32 * sms
  || groups == 1 && (most(m) <= 24 && most(n) >= 3072 && most(k) >= 7168
    || most(m) <= 32 && most(n) <= 2560 && most(k) >= 1024
    || most(m) <= 64 && most(n) <= 1024)
"""

# Tokens outnumber both weights' rows: prepare the weights.
[[pick]]
contender = "token-major"
when      = "least(m - 2 * n) >= 0"

[[pick]]
contender = "swap-ab"
*/
