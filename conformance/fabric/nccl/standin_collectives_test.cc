// The simulator's collectives tests, on NcclFabric over the stand-in.
#include "conformance/fabric/nccl/run_on_standin.h"
//
#include "conformance/fabric/sim/collectives_test.cc"
