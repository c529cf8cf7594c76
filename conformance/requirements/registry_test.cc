#include "conformance/requirements/registry.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace shardproof {
namespace {

std::string Row(const std::string& id, const std::string& extra = "") {
  return "[[requirement]]\nid = \"" + id +
         "\"\nlevel = \"MUST\"\ntext = \"Groups partition.\"\nsince = \"1.0\"\nsource = "
         "\"invariant I1\"\n"
         "check = \"groups\"\n" +
         extra;
}

std::string ErrorOf(const std::string& text) {
  try {
    Registry::Parse({{"a.toml", text}});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Registry, FindsARowById) {
  const Registry registry = Registry::Parse({{"a.toml", Row("PG-02")}, {"b.toml", Row("PG-01")}});
  ASSERT_NE(registry.Find("PG-01"), nullptr);
  EXPECT_EQ(registry.Find("PG-01")->text, "Groups partition.");
  EXPECT_EQ(registry.Find("PG-03"), nullptr);
}

TEST(Registry, SeveralFamiliesMayJudgeARow) {
  std::string text = Row("PG-01");
  text.replace(text.find("\"groups\""), 8, "\"groups, order\"");
  EXPECT_EQ(Registry::Parse({{"a.toml", text}}).Find("PG-01")->checks,
            (std::vector<std::string>{"groups", "order"}));
}

TEST(Registry, ADuplicateIdIsRefusedWithFileAndLine) {
  EXPECT_EQ(ErrorOf(Row("PG-01") + Row("PG-01")),
            "a.toml, line 8: id PG-01 is taken: ids are unique");
}

TEST(Registry, ADuplicateIdInAnotherFileIsRefused) {
  EXPECT_THROW(Registry::Parse({{"a.toml", Row("PG-01")}, {"b.toml", Row("PG-01")}}),
               std::invalid_argument);
}

TEST(Registry, AnUnknownFieldIsRefused) {
  EXPECT_EQ(ErrorOf(Row("PG-01", "colour = \"red\"\n")), "a.toml, line 1: unknown field colour");
}

TEST(Registry, AMissingFieldIsRefused) {
  EXPECT_EQ(ErrorOf("[[requirement]]\nid = \"PG-01\"\n"),
            "a.toml, line 1: field level is missing or no text");
}

TEST(Registry, AnUnknownTableIsRefused) {
  EXPECT_NE(ErrorOf("[requirements]\nid = \"PG-01\"\n"), "");
}

TEST(Registry, AMalformedIdIsRefused) { EXPECT_NE(ErrorOf(Row("PG-1")), ""); }

TEST(Registry, ASyntaxErrorNamesTheLine) {
  EXPECT_TRUE(ErrorOf("[[requirement]\n").starts_with("a.toml, line 1: "));
}

TEST(Registry, AnExplanationEndsWithAStopAndIsNotTooLong) {
  EXPECT_EQ(ErrorOf(Row("PG-01", "why = \"It hangs\"\n")),
            "a.toml, line 1: PG-01: why ends with a full stop");
  EXPECT_EQ(ErrorOf(Row("PG-01", "fix = \"" + std::string(400, 'a') + ".\"\n")),
            "a.toml, line 1: PG-01: fix has 401 letters, at most 400 are read");
}

TEST(Registry, EveryRowSaysWhyAndHowToMendIt) {
  // An issue, a pull request or a commit, and what was wrong.
  const std::regex bug("[\\w-]+/[\\w.-]+(#\\d+|@[0-9a-f]{10})( \\(review\\))?: \\S.*");
  const Registry registry = Registry::Builtin();
  for (const Requirement& row : registry.all()) {
    EXPECT_FALSE(row.why.empty()) << row.id;
    EXPECT_FALSE(row.fix.empty()) << row.id;
    EXPECT_NE(row.bug.empty(), row.reason.empty()) << row.id << ": a bug, or a reason";
    EXPECT_TRUE(row.bug.empty() || std::regex_match(row.bug, bug)) << row.id << ": " << row.bug;
  }
}

TEST(Registry, TheBuiltinRowsLoad) {
  const Registry registry = Registry::Builtin();
  EXPECT_GT(registry.all().size(), 70u);
  EXPECT_NE(registry.Find("FS-01"), nullptr);
}

TEST(Registry, EveryRowOfAFamilyWithInvariantsNamesItsOwn) {
  const Registry registry = Registry::Builtin();
  for (const Requirement& row : registry.all()) {
    static const std::set<std::string> kOthers = {"GE", "EP", "TP", "CP", "KN", "BU"};
    if (kOthers.contains(row.id.substr(0, 2))) continue;
    EXPECT_NE(row.source.find("invariant"), std::string::npos) << row.id << ": " << row.source;
  }
}

// Parts of a source, each between semicolons: invariants of README.md; places in repositories, with
// words about the last one in parentheses; or words without a digit, say "CUDA stream semantics".
bool SaysWhichRepository(const std::string& source) {
  static const std::string kInvariants =
      "invariants? [IL]\\d+(,? (and |to )?([IL]\\d+|its first half))*";
  static const std::string kPlace =
      "[\\w-]+/[\\w-]+(#\\d+|@[0-9a-f]{10}|:[\\w/.]+)?( \\([^();]+\\))?";
  static const std::regex kPart(kInvariants + "|" + kPlace + "(, " + kPlace + ")*|[^0-9#@;]+");
  for (size_t begin = 0; begin <= source.size();) {
    const size_t end = std::min(source.find("; ", begin), source.size());
    if (!std::regex_match(source.substr(begin, end - begin), kPart)) return false;
    begin = end + 2;
  }
  return true;
}

TEST(Registry, ASourceSaysWhichRepository) {
  for (const char* good :
       {"invariant I13", "invariants L39 to L42, L44 and L46", "invariant L4, its first half",
        "plug-in interface; CUDA stream semantics", "NVIDIA/Megatron-LM (option a_b)",
        "invariant I2; NVIDIA/Megatron-LM#3249 (review), deepspeedai/DeepSpeed#8090",
        "NVIDIA/Megatron-LM@c1e938b039; NVIDIA/Megatron-LM:megatron/core/optimizer/optimizer.py (a "
        "b)"}) {
    EXPECT_TRUE(SaysWhichRepository(good)) << good;
  }
  for (const char* bad : {"", "PR 2218", "invariant I21; PR 2218", "issue 2467", "Megatron-LM#2218",
                          "#2218", "NVIDIA/Megatron-LM pull requests 3796 and 3797",
                          "NVIDIA/Megatron-LM@c1e9", "I13; ", "invariants I13 and E3",
                          "commits 7cbbba2e6a, e8fe06865c", "NVIDIA/Megatron-LM#3249 and #3250"}) {
    EXPECT_FALSE(SaysWhichRepository(bad)) << bad;
  }
}

TEST(Registry, EverySourceSaysWhichRepository) {
  const Registry registry = Registry::Builtin();
  for (const Requirement& row : registry.all())
    EXPECT_TRUE(SaysWhichRepository(row.source)) << row.id << ": " << row.source;
}

}  // namespace
}  // namespace shardproof
