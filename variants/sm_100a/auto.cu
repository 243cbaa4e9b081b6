/*dgx
summary = "The contender with the lowest predicted cost on the shape"
parent  = "swap-ab"
round   = 7

# The specialists for few and for many tokens have no form for this chip.
[[pick]]
contender = "swap-ab"
*/
