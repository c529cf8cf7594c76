// shardproof_gpu_mpi: the command, with CUDA, NCCL and MPI.
#include "conformance/runner/command/command_line.h"
#include "conformance/runner/command/run_mpi.h"

int main(int argc, char** argv) {
  return shardproof::Main(
      argc, argv, {shardproof::RunMpiCommand, shardproof::RunNcclUnderMpi, shardproof::CudaKit()});
}
