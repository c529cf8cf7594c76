// The simulator's random programs tests, on NcclFabric over the stand-in.
#define SHARDPROOF_COMMUNICATORS_AT_OPEN  // these programs come to their first uses in any order
#include "conformance/fabric/nccl/run_on_standin.h"
//
#include "conformance/fabric/sim/random_programs_test.cc"
