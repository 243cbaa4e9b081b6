/*dgx
summary = "Whoever of the others is fastest on the shape"
parent  = "swap-ab"
round   = 7
claim   = { geomean = 1.5, over = "cublas", why = "each region has its own design" }
arch    = "sm_90a"

# Few tokens: the bytes of the weights bound.
[[pick]]
contender = "decode[PER_SM=1,WARPS=14]"
when      = "most(m) <= 16"

# Tokens outnumber both weights' rows: prepare the weights.
[[pick]]
contender = "token-major"
when      = "least(m - 2 * n) >= 0"

[[pick]]
contender = "swap-ab"
*/
