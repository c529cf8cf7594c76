// What ranks hand back is judged as what it is: whole, and of the rank and the case that were
// asked.
#include "conformance/runner/rank_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "conformance/runner/judge_on_sim.h"
#include "conformance/runner/rank_output.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCase = "w2.zero2";

std::vector<std::string> BlobsOf(const std::string& id) {
  const Case c = ParseId(id);
  SimRunOptions options;
  options.rank.folder = ::testing::TempDir() + "/rank_ends_test";
  RunData data = RunHere(Plugin("builtin:reference"))(c, options);
  std::vector<std::string> blobs;
  for (size_t rank = 0; rank < data.run.traces.size(); ++rank)
    blobs.push_back(Pack({std::move(data.run.traces[rank]), data.run.outcomes[rank], {}, ""}));
  return blobs;
}

const std::vector<std::string>& GoodBlobs() {
  static const std::vector<std::string> blobs = BlobsOf(kCase);
  return blobs;
}

CaseEnd EndWith(const std::vector<std::string>& blobs) {
  CaseEnd end;
  for (const std::string& blob : blobs) {
    RankEnd rank;
    rank.returned = true;
    rank.blob = blob;
    end.ranks.push_back(rank);
  }
  return end;
}

Verdict Judged(const CaseEnd& end) { return JudgeEnd(ParseId(kCase), end, Options{}); }

void ExpectRefused(const CaseEnd& end, const std::string& words) {
  const Verdict verdict = Judged(end);
  EXPECT_EQ(verdict.outcome, Outcome::kSuiteError);
  EXPECT_THAT(verdict.reason, HasSubstr(words));
}

TEST(RankEnds, AGoodRunPasses) { EXPECT_EQ(Judged(EndWith(GoodBlobs())).outcome, Outcome::kPass); }

TEST(RankEnds, EvidenceOfAnotherRankOrCaseIsRefused) {
  const std::vector<std::string>& good = GoodBlobs();
  ExpectRefused(EndWith({good[1], good[0]}),
                "the evidence of rank 0 of w2.zero2 is of rank 1 of 2");
  ExpectRefused(EndWith({good[0], good[0]}),
                "the evidence of rank 1 of w2.zero2 is of rank 0 of 2");
  const std::vector<std::string> other = BlobsOf("w2.zero3"), larger = BlobsOf("w4.zero2");
  ExpectRefused(EndWith({good[0], other[1]}), "is of rank 1 of 2 of \"w2.zero3\"");
  ExpectRefused(EndWith({good[0], larger[1]}), "is of rank 1 of 4 of \"w4.zero2\"");
}

TEST(RankEnds, EvidenceThatIsCutOrLongerIsRefused) {
  const std::vector<std::string>& good = GoodBlobs();
  for (size_t size = 0; size < good[1].size(); size += 1 + good[1].size() / 50)
    ExpectRefused(EndWith({good[0], good[1].substr(0, size)}), "rank 1 of w2.zero2 is not whole");
  ExpectRefused(EndWith({good[0], good[1] + "x"}), "rank 1 of w2.zero2 is not whole");
}

// The frame is whole, the trace in it is not.
TEST(RankEnds, ATraceThatIsCutIsRefused) {
  RankOutput output = Unpack(GoodBlobs()[1], 1, ParseId(kCase));
  Frame fields = FieldsOf(output.trace, output.outcome, "");
  const std::string whole = fields[3];
  for (size_t size = 1; size < whole.size(); size += 1 + whole.size() / 50) {
    fields[3] = whole.substr(0, size);
    ExpectRefused(EndWith({GoodBlobs()[0], PackFrame(fields)}), "the evidence of rank 1 of");
  }
}

TEST(RankEnds, ACrashNamesTheEntryCall) {
  CaseEnd end = EndWith(GoodBlobs());
  end.ranks[1] = {RankEnd::kSignal, "ended by SIGABRT", false, ""};
  for (const std::string where : {"", "destroy, after launch"}) {
    end.ranks[1].where = where;
    const Verdict verdict = Judged(end);
    ASSERT_FALSE(verdict.result.findings.empty());
    EXPECT_EQ(verdict.result.findings[0].requirement, "GE-26");
    EXPECT_EQ(verdict.result.findings[0].operation, where.empty() ? "the run" : where);
  }
}

TEST(RankEnds, AReturnWithoutEvidenceIsNoPass) {
  CaseEnd end = EndWith(GoodBlobs());
  end.ranks[1].returned = false;
  ExpectRefused(end, "rank 1 has returned without evidence");
  const std::string no_trace = Pack(RankOutput{});
  const Verdict one = Judged(EndWith({GoodBlobs()[0], no_trace}));
  EXPECT_NE(one.outcome, Outcome::kPass);
  const Verdict all = Judged(EndWith({no_trace, no_trace}));
  EXPECT_NE(all.outcome, Outcome::kPass);
  EXPECT_NE(all.outcome, Outcome::kUnsupported);
}

}  // namespace
}  // namespace shardproof
