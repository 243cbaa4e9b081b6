// Operand lists for the wgmma wrappers: inline assembly numbers its operands,
// so the list of r accumulators is the first r of these. Nothing else belongs
// here.
#pragma once
#include <dgx/abi.cuh>

#define DGX_LIST_4 "%0, %1, %2, %3"
#define DGX_BIND_4(d) "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define DGX_LIST_8 DGX_LIST_4 ", " "%4, %5, %6, %7"
#define DGX_BIND_8(d) DGX_BIND_4(d), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define DGX_LIST_12 DGX_LIST_8 ", " "%8, %9, %10, %11"
#define DGX_BIND_12(d) DGX_BIND_8(d), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
#define DGX_LIST_16 DGX_LIST_12 ", " "%12, %13, %14, %15"
#define DGX_BIND_16(d) DGX_BIND_12(d), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define DGX_LIST_20 DGX_LIST_16 ", " "%16, %17, %18, %19"
#define DGX_BIND_20(d) DGX_BIND_16(d), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
#define DGX_LIST_24 DGX_LIST_20 ", " "%20, %21, %22, %23"
#define DGX_BIND_24(d) DGX_BIND_20(d), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
#define DGX_LIST_28 DGX_LIST_24 ", " "%24, %25, %26, %27"
#define DGX_BIND_28(d) DGX_BIND_24(d), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
#define DGX_LIST_32 DGX_LIST_28 ", " "%28, %29, %30, %31"
#define DGX_BIND_32(d) DGX_BIND_28(d), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define DGX_LIST_36 DGX_LIST_32 ", " "%32, %33, %34, %35"
#define DGX_BIND_36(d) DGX_BIND_32(d), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define DGX_LIST_40 DGX_LIST_36 ", " "%36, %37, %38, %39"
#define DGX_BIND_40(d) DGX_BIND_36(d), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define DGX_LIST_44 DGX_LIST_40 ", " "%40, %41, %42, %43"
#define DGX_BIND_44(d) DGX_BIND_40(d), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43])
#define DGX_LIST_48 DGX_LIST_44 ", " "%44, %45, %46, %47"
#define DGX_BIND_48(d) DGX_BIND_44(d), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define DGX_LIST_52 DGX_LIST_48 ", " "%48, %49, %50, %51"
#define DGX_BIND_52(d) DGX_BIND_48(d), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51])
#define DGX_LIST_56 DGX_LIST_52 ", " "%52, %53, %54, %55"
#define DGX_BIND_56(d) DGX_BIND_52(d), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define DGX_LIST_60 DGX_LIST_56 ", " "%56, %57, %58, %59"
#define DGX_BIND_60(d) DGX_BIND_56(d), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59])
#define DGX_LIST_64 DGX_LIST_60 ", " "%60, %61, %62, %63"
#define DGX_BIND_64(d) DGX_BIND_60(d), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define DGX_LIST_68 DGX_LIST_64 ", " "%64, %65, %66, %67"
#define DGX_BIND_68(d) DGX_BIND_64(d), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67])
#define DGX_LIST_72 DGX_LIST_68 ", " "%68, %69, %70, %71"
#define DGX_BIND_72(d) DGX_BIND_68(d), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define DGX_LIST_76 DGX_LIST_72 ", " "%72, %73, %74, %75"
#define DGX_BIND_76(d) DGX_BIND_72(d), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75])
#define DGX_LIST_80 DGX_LIST_76 ", " "%76, %77, %78, %79"
#define DGX_BIND_80(d) DGX_BIND_76(d), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define DGX_LIST_84 DGX_LIST_80 ", " "%80, %81, %82, %83"
#define DGX_BIND_84(d) DGX_BIND_80(d), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83])
#define DGX_LIST_88 DGX_LIST_84 ", " "%84, %85, %86, %87"
#define DGX_BIND_88(d) DGX_BIND_84(d), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define DGX_LIST_92 DGX_LIST_88 ", " "%88, %89, %90, %91"
#define DGX_BIND_92(d) DGX_BIND_88(d), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91])
#define DGX_LIST_96 DGX_LIST_92 ", " "%92, %93, %94, %95"
#define DGX_BIND_96(d) DGX_BIND_92(d), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define DGX_LIST_100 DGX_LIST_96 ", " "%96, %97, %98, %99"
#define DGX_BIND_100(d) DGX_BIND_96(d), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99])
#define DGX_LIST_104 DGX_LIST_100 ", " "%100, %101, %102, %103"
#define DGX_BIND_104(d) DGX_BIND_100(d), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103])
#define DGX_LIST_108 DGX_LIST_104 ", " "%104, %105, %106, %107"
#define DGX_BIND_108(d) DGX_BIND_104(d), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107])
#define DGX_LIST_112 DGX_LIST_108 ", " "%108, %109, %110, %111"
#define DGX_BIND_112(d) DGX_BIND_108(d), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
#define DGX_LIST_116 DGX_LIST_112 ", " "%112, %113, %114, %115"
#define DGX_BIND_116(d) DGX_BIND_112(d), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115])
#define DGX_LIST_120 DGX_LIST_116 ", " "%116, %117, %118, %119"
#define DGX_BIND_120(d) DGX_BIND_116(d), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define DGX_LIST_124 DGX_LIST_120 ", " "%120, %121, %122, %123"
#define DGX_BIND_124(d) DGX_BIND_120(d), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123])
#define DGX_LIST_128 DGX_LIST_124 ", " "%124, %125, %126, %127"
#define DGX_BIND_128(d) DGX_BIND_124(d), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
