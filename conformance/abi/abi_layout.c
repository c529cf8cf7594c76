/* Compiled as C99 and as C11: the header is valid in both, and the layout is what C++ sees. */
#include "conformance/abi/shardproof.h"
#include "conformance/abi/shardproof_util.h"

#if __STDC_VERSION__ != SHARDPROOF_EXPECTED_STDC
#error "not compiled with the C standard that this target is for"
#endif

#define SHARDPROOF_JOIN2(a, b) a##b
#define SHARDPROOF_JOIN(a, b) SHARDPROOF_JOIN2(a, b)
#define SHARDPROOF_ASSERT(condition) \
  typedef char SHARDPROOF_JOIN(assert_line_, __LINE__)[(condition) ? 1 : -1] __attribute__((unused))
#define SHARDPROOF_SIZE(type, bytes) SHARDPROOF_ASSERT(sizeof(type) == bytes);
#define SHARDPROOF_OFFSET(type, member, bytes) SHARDPROOF_ASSERT(offsetof(type, member) == bytes);
#include "conformance/abi/abi_layout.inc"

int main(void) { return spf_dtype_bytes(SPF_BF16) == 2 ? 0 : 1; }
