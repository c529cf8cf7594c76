// The simulator's order tests, on NcclFabric over the stand-in.
#include "conformance/fabric/nccl/run_on_standin.h"
//
#include "conformance/fabric/sim/order_test.cc"
