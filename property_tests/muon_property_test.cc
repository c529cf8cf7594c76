// Newton-Schulz twice: the engine's plan of launches and the oracle, two programs from one rule,
// give the same bits for any matrix.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "conformance/model/launch_kernels.h"
#include "conformance/oracle/muon.h"
#include "property_tests/property.h"
#include "reference/muon/newton_schulz.h"

namespace shardproof {
namespace {

using reference::Coefficients;
using reference::Operand;

struct Named {
  const char* name;
  Coefficients type;
};
constexpr Named kTypes[] = {{"quintic", Coefficients::kQuintic},
                            {"simple", Coefficients::kSimple},
                            {"polar_express", Coefficients::kPolarExpress},
                            {"cans", Coefficients::kCans},
                            {"deepseekv4", Coefficients::kDeepSeekV4},
                            {"cubic5", Coefficients::kCubic5}};

// Runs a plan on host memory.
class PlanRunner {
 public:
  PlanRunner(const reference::NewtonSchulzPlan& plan, const std::vector<float>& u) : plan_(plan) {
    const int64_t matrix = plan.rows * plan.cols, square = plan.side * plan.side;
    Make(Operand::kInput, matrix, SPF_F32);
    Make(Operand::kSquares, 1, SPF_F64);
    Make(Operand::kInverse, 1, SPF_F64);
    Make(Operand::kX, matrix, plan.dtype);
    Make(Operand::kY, matrix, plan.dtype);
    Make(Operand::kGram, square, plan.dtype);
    Make(Operand::kMixed, square, plan.dtype);
    std::memcpy(blocks_[Operand::kInput].bytes.data(), u.data(), u.size() * sizeof(float));
  }

  std::vector<float> Run() {
    Launch({SPF_K_SUM_SQUARES, {{Operand::kInput}, {Operand::kSquares, SPF_ADD}}, {}});
    Launch(plan_.norm);
    Launch(plan_.normalise);
    for (const reference::PlannedLaunch& launch : plan_.iterate) Launch(launch);
    std::vector<float> out(static_cast<size_t>(plan_.rows * plan_.cols));
    RunLaunch(SPF_K_AXPBY,
              {SpanOf({plan_.result}),
               {reinterpret_cast<std::byte*>(out.data()), out.size(), SPF_F32, SPF_WRITE}},
              {1, 0});
    return out;
  }

 private:
  struct Block {
    uint64_t count = 0;
    int32_t dtype = 0;
    std::vector<std::byte> bytes;
  };
  void Make(Operand operand, int64_t count, int32_t dtype) {
    const auto n = static_cast<uint64_t>(count);
    blocks_[operand] = {n, dtype, std::vector<std::byte>(n * 8)};
  }
  SpanData SpanOf(const reference::PlannedSpan& span) {
    Block& block = blocks_.at(span.operand);
    return {block.bytes.data(), block.count, block.dtype, span.access};
  }
  void Launch(const reference::PlannedLaunch& launch) {
    std::vector<SpanData> spans;
    for (const reference::PlannedSpan& span : launch.spans) spans.push_back(SpanOf(span));
    RC_ASSERT(ValidateLaunch(launch.kernel, spans, launch.scalars) == "");
    RunLaunch(launch.kernel, spans, launch.scalars);
  }

  const reference::NewtonSchulzPlan& plan_;
  std::map<Operand, Block> blocks_;
};

TEST(MuonPropertyTest, PlanAndOracleHaveTheSameBits) {
  PropertyOptions options;
  options.evaluations = 200;
  EXPECT_TRUE(CheckProperty(
      "plan and oracle have the same bits",
      [] {
        const Named type = kTypes[*rc::gen::inRange<size_t>(0, std::size(kTypes))];
        const int64_t rows = *rc::gen::inRange<int64_t>(1, 13),
                      cols = *rc::gen::inRange<int64_t>(1, 13);
        MuonRule rule;
        rule.coefficients = type.name;
        rule.ns_steps = *rc::gen::inRange(0, 12);
        rule.eps = *rc::gen::element(0.0, 0.0078125, 1.0);
        rule.bf16 = *rc::gen::arbitrary<bool>();
        std::vector<float> u;
        for (int64_t i = 0; i < rows * cols; ++i)
          u.push_back(static_cast<float>(*rc::gen::inRange(-1000, 1001)) / 64);
        const reference::NewtonSchulzPlan plan =
            PlanNewtonSchulz(rows, cols, reference::StepsOf(type.type, rule.ns_steps), rule.eps,
                             rule.bf16 ? SPF_BF16 : SPF_F32);
        RC_ASSERT(PlanRunner(plan, u).Run() == NewtonSchulz(rule, rows, cols, u));
      },
      options));
}

}  // namespace
}  // namespace shardproof
