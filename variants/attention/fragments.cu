/*dgx
operator = "attention"
summary  = "A warp for 16 queries, mma.sync on what it loads from memory itself"
arch     = "sm_90a"
requires = ["d % 16 == 0", "d <= 128"]

[const]
LENGTH = "s"
DEPTH  = "d"
AHEAD  = 0   # keys after its own that a query sees

[[launch]]
kernel = "attention"
grid   = ["cdiv(s, 16)", "b * h"]
block  = 32
*/
#include "fragments.cuh"
