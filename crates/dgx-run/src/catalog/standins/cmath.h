#include <math.h>
namespace std {
using ::abs; using ::acos; using ::asin; using ::atan; using ::atan2; using ::cbrt; using ::ceil;
using ::copysign; using ::cos; using ::cosh; using ::erf; using ::exp; using ::exp2; using ::expm1;
using ::fabs; using ::floor; using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::hypot;
using ::isfinite; using ::isinf; using ::isnan; using ::ldexp; using ::log; using ::log10;
using ::log1p; using ::log2; using ::lround; using ::pow; using ::rint; using ::round; using ::sin;
using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::trunc;
}
