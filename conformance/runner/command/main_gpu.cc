// shardproof_gpu: the command, with CUDA and NCCL, without MPI.
#include "conformance/runner/command/command_line.h"

int main(int argc, char** argv) {
  return shardproof::Main(argc, argv, {nullptr, nullptr, shardproof::CudaKit()});
}
