/*dgx
summary = "Whoever of the others is fastest on the shape"
parent  = "swap-ab"
round   = 7
claim   = { geomean = 1.5, over = "cublas", why = "each region has its own design" }
arch    = "sm_90a"

# Few tokens, or so few features that swap-ab's tiles leave SMs idle.
[[pick]]
contender = "decode"
when      = "most(m) <= (groups == 1 ? 16 : 8) || groups == 1 && (most(m) <= 40 && most(n) <= 1024 || most(m) <= 48 && most(n) <= 512)"

# Tokens outnumber both weights' rows: prepare the weights.
[[pick]]
contender = "token-major"
when      = "least(m - 2 * n) >= 0"

[[pick]]
contender = "swap-ab"
*/
