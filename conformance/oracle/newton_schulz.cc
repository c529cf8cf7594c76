#include "conformance/oracle/newton_schulz.h"

#include <algorithm>
#include <stdexcept>

#include "conformance/abi/shardproof.h"
#include "conformance/common/dtype.h"
#include "conformance/oracle/muon_launch.h"

namespace shardproof {
namespace {

struct Abc {
  double a, b, c;
};

constexpr Abc kSimple{3.4445, -4.7750, 2.0315};

// What step i uses: lists of five begin again or stay at their last, as KNOBS.md says.
Abc CoefficientsAt(const std::string& name, size_t i) {
  static constexpr Abc kQuintic[] = {{4.0848, -6.8946, 2.9270},
                                     {3.9505, -6.3029, 2.6377},
                                     {3.7418, -5.5913, 2.3037},
                                     {2.8769, -3.1427, 1.2046},
                                     {2.8366, -3.0525, 1.2012}};
  static constexpr Abc kPolar[] = {{8.2051, -22.9019, 16.4607}, {4.0664, -2.8612, 0.5184},
                                   {3.9096, -2.8234, 0.5250},   {3.2856, -2.4153, 0.4853},
                                   {2.2779, -1.6198, 0.3985},   {1.8726, -1.2307, 0.3585},
                                   {1.8564, -1.2132, 0.3568},   {1.8750, -1.2500, 0.3750}};
  static constexpr Abc kCans[] = {{8.4703, -25.1081, 18.6293},
                                  {4.1828, -3.1087, 0.5806},
                                  {3.9619, -2.9541, 0.5630},
                                  {3.2866, -2.4647, 0.5074},
                                  {2.2737, -1.6447, 0.4162}};
  static constexpr Abc kCubic[] = {{3.3656576, -3.3420992, 0},
                                   {2.5744352, -1.4957376, 0},
                                   {2.5368962, -1.4312570, 0},
                                   {2.4418906, -1.276404, 0},
                                   {2.2230472, -0.963065, 0}};
  if (name == "simple") return kSimple;
  if (name == "quintic") return kQuintic[i % 5];
  if (name == "polar_express") return kPolar[std::min<size_t>(i, 7)];
  if (name == "cans") return kCans[std::min<size_t>(i, 4)];
  if (name == "deepseekv4") return i < 8 ? kSimple : Abc{2, -1.5, 0.5};
  if (name == "cubic5") return kCubic[std::min<size_t>(i, 4)];
  throw std::invalid_argument("muon_coefficient_type = " + name);
}

// A matrix, or a number of an F64 accumulator, in host memory.
class Block {
 public:
  Block(int64_t count, int32_t dtype)
      : count_(static_cast<uint64_t>(count)), dtype_(dtype), bytes_(count_ * DtypeBytes(dtype)) {}
  SpanData Read() { return {bytes_.data(), count_, dtype_, SPF_READ}; }
  SpanData Write() { return {bytes_.data(), count_, dtype_, SPF_WRITE}; }
  SpanData Add() { return {bytes_.data(), count_, dtype_, SPF_ADD}; }

 private:
  uint64_t count_;
  int32_t dtype_;
  std::vector<std::byte> bytes_;
};

// What one rank has of the matrix, step by step.
class Shard {
 public:
  // tall: X^T X is contracted, else X X^T.
  Shard(int64_t rows, int64_t cols, bool tall, int32_t dtype, const std::vector<float>& u)
      : tall_(tall),
        rows_(static_cast<double>(rows)),
        cols_(static_cast<double>(cols)),
        side_(tall ? cols_ : rows_),
        u_(u),
        squares_(1, SPF_F64),
        x_(rows * cols, dtype),
        y_(rows * cols, dtype),
        gram_((tall ? cols : rows) * (tall ? cols : rows), dtype),
        mixed_((tall ? cols : rows) * (tall ? cols : rows), dtype) {
    LaunchHere(SPF_K_SUM_SQUARES, {Input(), squares_.Add()});
  }

  Block& squares() { return squares_; }
  Block& gram() { return gram_; }

  void Normalise(double eps) {
    Block inverse(1, SPF_F64);
    LaunchHere(SPF_K_NORM_SCALE, {squares_.Read(), inverse.Write()}, {1, eps, 1e15});
    LaunchHere(SPF_K_AXPBY, {Input(), x_.Write(), inverse.Read()}, {1, 0});
  }
  void MakeGram() {
    const double inner = tall_ ? rows_ : cols_;
    LaunchHere(SPF_K_GEMM, {x_.Read(), x_.Read(), gram_.Write()},
               {side_, side_, inner, tall_ ? 1.0 : 0.0, tall_ ? 0.0 : 1.0, 1, 0});
  }
  void Step(const Abc& f) {
    if (f.c != 0) {
      Mix(1, gram_.Read(), 0, mixed_.Write());
      LaunchHere(SPF_K_GEMM, {gram_.Read(), gram_.Read(), mixed_.Add()},
                 {side_, side_, side_, 0, 0, f.c, f.b});
    }
    Block& b = f.c == 0 ? gram_ : mixed_;
    Mix(1, x_.Read(), 0, y_.Write());
    LaunchHere(SPF_K_GEMM, {tall_ ? x_.Read() : b.Read(), tall_ ? b.Read() : x_.Read(), y_.Add()},
               {rows_, cols_, side_, 0, 0, f.c == 0 ? f.b : 1.0, f.a});
    std::swap(x_, y_);
  }
  std::vector<float> Result() {
    std::vector<float> out(u_.size());
    Mix(1, x_.Read(), 0, SpanOf(out.data(), out.size(), SPF_WRITE));
    return out;
  }

 private:
  SpanData Input() const { return SpanOf(u_.data(), u_.size(), SPF_READ); }

  const bool tall_;
  const double rows_, cols_, side_;
  const std::vector<float>& u_;
  Block squares_, x_, y_, gram_, mixed_;
};

// What an all-reduce leaves on each rank.
void AddUp(std::vector<Shard>& shards, Block& (Shard::*part)()) {
  Block& sum = (shards.front().*part)();
  for (size_t i = 1; i < shards.size(); ++i) Mix(1, (shards[i].*part)().Read(), 1, sum.Add());
  for (size_t i = 1; i < shards.size(); ++i) Mix(1, sum.Read(), 0, (shards[i].*part)().Write());
}

std::vector<std::vector<float>> Iterate(const MuonRule& rule, int64_t rows, int64_t cols, bool tall,
                                        const std::vector<std::vector<float>>& of) {
  std::vector<Shard> shards;
  shards.reserve(of.size());
  for (const std::vector<float>& u : of)
    shards.emplace_back(rows, cols, tall, rule.bf16 ? SPF_BF16 : SPF_F32, u);
  AddUp(shards, &Shard::squares);
  for (Shard& shard : shards) shard.Normalise(rule.eps);
  for (int32_t step = 0; step < rule.ns_steps; ++step) {
    for (Shard& shard : shards) shard.MakeGram();
    AddUp(shards, &Shard::gram);
    const Abc factors = CoefficientsAt(rule.coefficients, static_cast<size_t>(step));
    for (Shard& shard : shards) shard.Step(factors);
  }
  std::vector<std::vector<float>> results;
  for (Shard& shard : shards) results.push_back(shard.Result());
  return results;
}

}  // namespace

std::vector<float> NewtonSchulz(const MuonRule& rule, int64_t rows, int64_t cols,
                                const std::vector<float>& u) {
  return Iterate(rule, rows, cols, rows > cols, {u}).front();
}

std::vector<std::vector<float>> NewtonSchulzOfShards(
    const MuonRule& rule, int64_t rows, int64_t cols, int32_t dim,
    const std::vector<std::vector<float>>& shards) {
  return Iterate(rule, rows, cols, dim == 0, shards);
}

}  // namespace shardproof
