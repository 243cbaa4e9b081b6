/*dgx
summary  = "The interleaved K loop behind a ring of TMA stages"
extend   = "interleaved"
round    = 1
claim    = { geomean = 1.5, over = "pipelined[STAGES=1]", why = "loads hidden behind the MMAs; 1.5 to 1.8 pitched" }
params   = { STAGES = [1, 2, 3, 4] }
*/
#include <dgx/sm100/interleaved.cuh>
