/*dgx
summary = "Whoever of the others is reckoned to be fastest on the shape"
parent  = "swap-ab"
round   = 7

# The specialists for few and for many tokens have no form for this chip.
[[pick]]
contender = "swap-ab"
*/
