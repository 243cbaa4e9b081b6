#ifndef NULL
#define NULL 0
#endif
typedef decltype(sizeof(0)) size_t;
typedef decltype((char*)0 - (char*)0) ptrdiff_t;
namespace std { using ::size_t; using ::ptrdiff_t; using nullptr_t = decltype(nullptr); }
