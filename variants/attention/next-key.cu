/*dgx
extend  = "fragments"
summary = "The mask is off by one: a query sees the key after its own"
expect  = "wrong"
const   = { AHEAD = 1 }
*/
#include "fragments.cuh"
