// Hand-written traces of engines whose loss is in chunks, good and with one departure each.
#include "conformance/checks/loss_chunks/loss_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/written_run.h"
#include "conformance/common/at.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

Case Chunks(int32_t n) {
  return MiniCase(2, [&](InstanceSpec& spec) {
    spec.loss_chunks = n;
    spec.script = "te";
  });
}

struct Departs {
  bool all_forward_first = false;   // then all backward
  bool head_backward_late = false;  // the heads' weight gradients behind the last chunk
  int32_t gives_back = 0;           // so many chunks later; -1: never
  bool in_one_block = false;        // no fault: the next chunk's logits lie where this one's did
  bool nowhere = false;             // events do not say where anything lies
  bool without_chunks = false;      // nothing of them is in the trace
  bool loss_alone = false;          // in the evaluation the first chunk's head does not run
};

class Writer {
 public:
  Writer(const Case& c, const InstanceFacts& facts, int32_t rank, const Departs& departs)
      : facts_(facts), rank_(rank), f_(departs), t_(rank, c.world) {}

  Trace Write() {
    s_ = t_.Stream("s");
    block_ = t_.Alloc(s_, 4096);
    Call("create", -1, [] {});
    Call("train_step", 0, [&] { Microbatch(true); });
    Call("eval_step", 1, [&] { Microbatch(false); });
    return t_.Done();
  }

 private:
  template <class F>
  void Call(const char* name, int step, F&& body) {
    t_.CallBegin(name, step);
    body();
    t_.CallEnd(name, step);
  }

  void Microbatch(bool train) {
    const spf_program& p = facts_.model().Program(0, 0, facts_.Place(rank_));
    const int32_t first = p.n_nodes - 2 * facts_.spec().loss_chunks;
    std::vector<int> blocks;
    if (f_.without_chunks) return;
    const auto backward = [&](int32_t i) {
      Run(p.nodes[i + 1], SPF_BWD, blocks[size_t(i - first) / 2]);
      Run(p.nodes[i], f_.head_backward_late ? SPF_DGRAD : SPF_BWD, blocks[size_t(i - first) / 2]);
    };
    for (int32_t i = first; i < p.n_nodes; i += 2) {
      blocks.push_back(f_.in_one_block ? block_ : t_.Alloc(s_, 8192));
      Forward(p.nodes + i, f_.loss_alone && !train && i == first, blocks.back());
      if (train && !f_.all_forward_first) backward(i);
      const int32_t done = (i - first) / 2 - f_.gives_back;
      if (f_.gives_back >= 0 && done >= 0 && !f_.in_one_block)
        t_.Free(s_, blocks[static_cast<size_t>(done)]);
    }
    for (int32_t i = p.n_nodes - 2; train && f_.all_forward_first && i >= first; i -= 2)
      backward(i);
    for (int32_t i = first; train && f_.head_backward_late && i < p.n_nodes; i += 2)
      Run(p.nodes[i], SPF_WGRAD, blocks[size_t(i - first) / 2]);
    const auto left = std::min(blocks.size(), static_cast<size_t>(std::max(f_.gives_back, 0)));
    for (size_t i = blocks.size() - left; i < blocks.size() && !f_.in_one_block; ++i)
      t_.Free(s_, blocks[i]);
  }

  void Forward(const spf_node* pair, bool loss_alone, int block) {
    if (!loss_alone) Run(pair[0], SPF_FWD, block);
    Run(pair[1], SPF_FWD, block);
  }

  // Logits, then their gradient; all else lies elsewhere.
  void Run(const spf_node& node, int phase, int block) {
    std::vector<Range> ranges;
    const int32_t logits = facts_.model().Graph(facts_.Place(rank_)).spec(node.id).in[0];
    const bool head = std::string_view(node.name).starts_with("head");
    for (int32_t i = 0; i < node.uses[phase].n && !f_.nowhere; ++i) {
      const spf_use& use = node.uses[phase].use[i];
      const bool here = head ? use.access == SPF_WRITE : use.id == logits;
      Range range =
          here ? Writes(block, use.table == SPF_IN_DACT ? 2048 : 0, 1024) : Reads(block_, 2048, 64);
      range.access = use.access;
      ranges.push_back(range);
    }
    t_.Compute(s_, node.id, phase, 0, ranges);
  }

  const InstanceFacts& facts_;
  const int32_t rank_;
  const Departs f_;
  TraceBuilder t_;
  int s_ = -1, block_ = -1;
};

CheckResult Of(const Departs& departs, int32_t n = 4, int32_t departing_rank = 1) {
  const WrittenRun made =
      WriteRun(Chunks(n), [&](const Case& c, const InstanceFacts& facts, int32_t rank) {
        return Writer(c, facts, rank,
                      rank == departing_rank || departing_rank < 0 ? departs : Departs{})
            .Write();
      });
  return CheckLossChunks(made.run);
}

TEST(LossChunks, OneAfterTheOtherIsGood) {
  for (const int32_t n : {2, 4}) {
    Departs in_one_block, late;
    in_one_block.in_one_block = true;
    late.gives_back = 1;  // when the next one's exist
    for (const Departs& departs : {Departs{}, in_one_block, late}) {
      const CheckResult result = Of(departs, n, -1);
      EXPECT_EQ(FoundIn(result), "") << n;
      EXPECT_TRUE(result.judged.contains("FS-46") && result.judged.contains("FS-47"));
      EXPECT_EQ(result.not_checkable.size(), 0u);
    }
  }
}

TEST(LossChunks, ALossInOnePieceIsNotAsked) {
  const CheckResult result = CheckLossChunks(RunMini(Chunks(1)).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.empty());
}

TEST(LossChunks, AllForwardBeforeAllBackwardIsFound) {
  Departs departs;
  departs.all_forward_first = true;
  departs.in_one_block = true;
  const CheckResult result = Of(departs, 2);
  EXPECT_EQ(FoundIn(result), "FS-46");
  EXPECT_EQ(result.findings.at(0).rank, 1);
  EXPECT_EQ(result.findings.at(0).seen, "backward of loss.0 has not been issued");
}

TEST(LossChunks, AWeightGradientThatIsLeftForLaterIsFound) {
  Departs departs;
  departs.head_backward_late = true;
  const CheckResult result = Of(departs);
  EXPECT_EQ(FoundIn(result), "FS-46");
  EXPECT_EQ(result.findings.at(0).seen, "backward of head.0 has not been issued");
}

TEST(LossChunks, LogitsThatAreKeptAreFound) {
  for (const int32_t later : {-1, 2}) {
    Departs departs;
    departs.gives_back = later;
    const CheckResult result = Of(departs);
    EXPECT_EQ(FoundIn(result), "FS-47") << later;
  }
}

// Of two chunks the evaluation shows it: those of the step before lie there, too.
TEST(LossChunks, TwoChunksThatAreKeptAreFoundInTheNextCall) {
  Departs departs;
  departs.gives_back = -1;
  const CheckResult result = Of(departs, 2);
  EXPECT_EQ(FoundIn(result), "FS-47");
  EXPECT_EQ(result.findings.at(0).step, 1);
}

TEST(LossChunks, ALossWhoseHeadHasNotRunIsFound) {
  Departs departs;
  departs.loss_alone = true;
  const CheckResult result = Of(departs);
  EXPECT_EQ(FoundIn(result), "FS-46");
  EXPECT_EQ(result.findings.at(0).seen, "the head has not been issued");
}

TEST(LossChunks, WithoutEvidenceNothingIsSaid) {
  Departs nowhere, nothing;
  nowhere.nowhere = true;
  nothing.without_chunks = true;
  CheckResult result = Of(nowhere, 4, -1);
  EXPECT_TRUE(result.judged.contains("FS-46"));
  EXPECT_FALSE(result.judged.contains("FS-47"));
  EXPECT_EQ(NotCheckableIn(result), (std::set<std::string>{"FS-47"}));
  result = Of(nothing, 4, -1);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_EQ(NotCheckableIn(result), (std::set<std::string>{"FS-46", "FS-47"}));
}

// The evidence of one rank does not stand for that of the other.
TEST(LossChunks, WhatOneRankDoesNotShowIsMissing) {
  Departs nowhere, nothing;
  nowhere.nowhere = true;
  nothing.without_chunks = true;
  EXPECT_EQ(NotCheckableIn(Of(nowhere)), (std::set<std::string>{"FS-47"}));
  EXPECT_EQ(NotCheckableIn(Of(nothing)), (std::set<std::string>{"FS-46", "FS-47"}));
}

}  // namespace
}  // namespace shardproof
