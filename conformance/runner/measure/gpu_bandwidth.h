// gpu_bandwidth.h: which bus bandwidth do collectives have that go through the nccl fabric?
//
// To be read beside NCCL's own tests (github NVIDIA/nccl-tests, doc/PERFORMANCE.md): the size of a
// collective is that of its larger side, bytes of float; the bus bandwidth is size / time * (n - 1)
// / n for n ranks. The clocks differ: here it is the device's, between time stamps in the stream
// around several collectives in a row, and the slowest rank counts; there it is the host's, with
// launches, and the mean of the ranks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/runner/nccl/kit.h"

namespace shardproof {

struct BandwidthOptions {
  int ranks = 2;
  std::vector<uint64_t> sizes = {uint64_t{1} << 20, uint64_t{8} << 20, uint64_t{64} << 20};
  int rounds = 3;                // a figure is the median of rounds
  int in_a_row = 5, warmup = 2;  // collectives of a round, and those before them
  double case_seconds = 30;
};

struct BandwidthRow {
  std::string collective;            // all_gather, reduce_scatter
  uint64_t size = 0;                 // bytes
  std::vector<double> milliseconds;  // of one collective; one of each round
};

// GB/s (1e9 bytes). REQUIRES: ranks > 1, milliseconds > 0.
double BusBandwidth(uint64_t size, int ranks, double milliseconds);

std::string BandwidthTable(const BandwidthOptions& options, const std::vector<BandwidthRow>& rows);

// Runs it in rank processes. Throws std::invalid_argument where a size is not a multiple of a float
// for each rank, std::runtime_error with the rank and what it said. facts: of the machine.
std::vector<BandwidthRow> RunBandwidth(const BandwidthOptions& options, const NcclKit& kit,
                                       std::vector<std::string>* facts);

}  // namespace shardproof
