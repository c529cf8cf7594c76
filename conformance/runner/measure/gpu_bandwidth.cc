#include "conformance/runner/measure/gpu_bandwidth.h"

#include <cstdio>
#include <numeric>
#include <stdexcept>

#include "conformance/runner/measure/spread.h"
#include "conformance/runner/measure/timed_ranks.h"

namespace shardproof {
namespace {

struct Item {
  spf_collective_kind kind;
  uint64_t size;
};

std::vector<Item> ItemsOf(const BandwidthOptions& options) {
  std::vector<Item> items;
  for (const spf_collective_kind kind : {SPF_ALL_GATHER, SPF_REDUCE_SCATTER})
    for (const uint64_t size : options.sizes) items.push_back({kind, size});
  return items;
}

std::string NameOf(spf_collective_kind kind) {
  return kind == SPF_ALL_GATHER ? "all_gather" : "reduce_scatter";
}

// One rank's measurement of one item.
class Measurement {
 public:
  Measurement(CaseMachine& machine, const BandwidthOptions& options, const Item& item)
      : machine_(machine), fabric_(machine.fabric()), options_(options) {
    std::vector<int32_t> all(static_cast<size_t>(fabric_.world()));
    std::iota(all.begin(), all.end(), 0);
    const uint64_t part = item.size / all.size();
    stream_ = fabric_.CreateStream("comm", 0);
    whole_ = fabric_.Alloc(stream_, item.size, false);
    part_ = fabric_.Alloc(stream_, part, false);
    const bool gathers = item.kind == SPF_ALL_GATHER;
    op_.kind = item.kind;
    op_.dtype = SPF_F32;
    op_.reduction = SPF_SUM;
    op_.group = fabric_.OpenGroup("all", all);
    op_.stream = stream_;
    op_.send = gathers ? part_.host : whole_.host;
    op_.recv = gathers ? whole_.host : part_.host;
    op_.count = part / sizeof(float);
    op_.what = NameOf(item.kind);
  }

  // Milliseconds of one collective, for each round.
  std::vector<double> Run() {
    InARow(options_.warmup);
    fabric_.Drain();
    std::vector<double> rounds;
    for (int round = 0; round < options_.rounds && !fabric_.aborted(); ++round) {
      // The first of a row meets the others: what one rank is late by counts for nobody.
      InARow(1);
      const int32_t start = machine_.Stamp(stream_);
      InARow(options_.in_a_row);
      const int32_t stop = machine_.Stamp(stream_);
      fabric_.Drain();
      rounds.push_back(machine_.MillisecondsBetween(start, stop) / options_.in_a_row);
    }
    fabric_.Free(stream_, whole_);
    fabric_.Free(stream_, part_);
    fabric_.Drain();
    return rounds;
  }

 private:
  void InARow(int times) {
    for (int i = 0; i < times; ++i) fabric_.Communicate({op_});
  }
  CaseMachine& machine_;
  Fabric& fabric_;
  const BandwidthOptions& options_;
  int32_t stream_ = -1;
  Block whole_, part_;
  CommOp op_;
};

}  // namespace

double BusBandwidth(uint64_t size, int ranks, double milliseconds) {
  return static_cast<double>(size) / milliseconds / 1e6 * (ranks - 1) / ranks;
}

std::string BandwidthTable(const BandwidthOptions& options, const std::vector<BandwidthRow>& rows) {
  std::string table = std::to_string(options.ranks) +
                      " ranks, bus bandwidth through the fabric: median of " +
                      std::to_string(options.rounds) + " rounds (least to most)\n";
  for (const BandwidthRow& row : rows) {
    const Spread ms = SpreadOf(row.milliseconds);
    const auto gbs = [&](double time) { return BusBandwidth(row.size, options.ranks, time); };
    char line[160];
    std::snprintf(line, sizeof line, "%-14s %10llu bytes %10.3f ms %8.2f GB/s (%.2f to %.2f)\n",
                  row.collective.c_str(), static_cast<unsigned long long>(row.size), ms.median,
                  gbs(ms.median), gbs(ms.most), gbs(ms.least));
    table += line;
  }
  return table;
}

std::vector<BandwidthRow> RunBandwidth(const BandwidthOptions& options, const NcclKit& kit,
                                       std::vector<std::string>* facts) {
  for (const uint64_t size : options.sizes) {
    if (size == 0 || size % (sizeof(float) * static_cast<uint64_t>(options.ranks)) != 0)
      throw std::invalid_argument("size " + std::to_string(size) +
                                  " is no number of floats for each of " +
                                  std::to_string(options.ranks) + " ranks");
  }
  const std::vector<Item> items = ItemsOf(options);
  TimedRanks ranks({options.ranks, "fp32", options.case_seconds, nullptr}, kit,
                   [&](CaseMachine& machine, Rendezvous&, const RankSide&, size_t number) {
                     return RankTimes{{Measurement(machine, options, items[number]).Run()}, ""};
                   });
  std::vector<BandwidthRow> rows;
  for (size_t i = 0; i < items.size(); ++i)
    rows.push_back({NameOf(items[i].kind), items[i].size, ranks.Run(i)[0]});
  *facts = ranks.facts();
  return rows;
}

}  // namespace shardproof
