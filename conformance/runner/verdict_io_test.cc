#include "conformance/runner/verdict_io.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "conformance/common/frame.h"

namespace shardproof {
namespace {

Verdict Sample() {
  Verdict verdict;
  verdict.outcome = Outcome::kFail;
  verdict.reason = "why";
  Finding finding;
  finding.requirement = "FS-14";
  finding.rank = 3;
  finding.event = 70;
  finding.begins = 60;
  finding.step = 1;
  finding.ended = 2;
  finding.stream = "main";
  finding.seen = std::string("a\0b", 3);
  verdict.result.findings.push_back(finding);
  verdict.result.judged = {"FS-14", "GE-01"};
  verdict.result.not_checkable.push_back({"GE-02", "no marks"});
  verdict.result.notes = {"k* = 2"};
  verdict.timings = {~uint64_t{0}, 1};
  verdict.drawings = {{0, "{}"}};
  verdict.partners = {{0, "w2.zero3"}};
  return verdict;
}

// The packed fields, to be changed.
Frame Fields() {
  std::string packed = PackVerdict(Sample());
  bool bad = false;
  return TakeFrame(&packed, &bad).value();
}

TEST(VerdictIo, ComesBack) {
  const Verdict back = UnpackVerdict(PackVerdict(Sample()));
  EXPECT_EQ(back.outcome, Outcome::kFail);
  EXPECT_EQ(back.reason, "why");
  ASSERT_EQ(back.result.findings.size(), 1u);
  EXPECT_EQ(back.result.findings[0].rank, 3);
  EXPECT_EQ(back.result.findings[0].begins, 60);
  EXPECT_EQ(back.result.findings[0].ended, 2);
  EXPECT_EQ(back.result.findings[0].follows, -1);
  EXPECT_EQ(back.result.findings[0].seen, std::string("a\0b", 3));
  EXPECT_EQ(back.drawings, Sample().drawings);
  EXPECT_EQ(back.partners, Sample().partners);
  EXPECT_EQ(back.result.judged.size(), 2u);
  EXPECT_EQ(back.result.not_checkable.at(0).why, "no marks");
  EXPECT_EQ(back.result.notes.at(0), "k* = 2");
  EXPECT_EQ(back.timings.at(0), ~uint64_t{0});
}

TEST(VerdictIo, WhatIsCutOffOrLongerIsRefused) {
  const std::string packed = PackVerdict(Sample());
  for (size_t size = 0; size < packed.size(); ++size)
    EXPECT_THROW(UnpackVerdict(packed.substr(0, size)), std::runtime_error) << size;
  EXPECT_THROW(UnpackVerdict(packed + "x"), std::runtime_error);
  Frame fields = Fields();
  fields.push_back("more");
  EXPECT_THROW(UnpackVerdict(PackFrame(fields)), std::runtime_error);
}

TEST(VerdictIo, NumbersOutOfRangeAreRefused) {
  const std::string beyond = std::to_string(static_cast<int>(Outcome::kSuiteError) + 1);
  for (const std::string& outcome : {std::string("-1"), beyond, std::string("x"), std::string()}) {
    Frame fields = Fields();
    fields[0] = outcome;
    EXPECT_THROW(UnpackVerdict(PackFrame(fields)), std::runtime_error) << outcome;
  }
  for (const char* follows : {"-2", "0", "1"}) {  // there is no finding before it
    Frame fields = Fields();
    fields[9] = follows;
    EXPECT_THROW(UnpackVerdict(PackFrame(fields)), std::runtime_error) << follows;
  }
  for (const char* count : {"-1", "2", "9999999999"}) {
    Frame fields = Fields();
    fields[2] = count;  // of findings
    EXPECT_THROW(UnpackVerdict(PackFrame(fields)), std::runtime_error) << count;
  }
}

}  // namespace
}  // namespace shardproof
