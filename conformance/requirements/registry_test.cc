#include "conformance/requirements/registry.h"

#include <gtest/gtest.h>

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

TEST(Registry, TheBuiltinRowsLoad) {
  const Registry registry = Registry::Builtin();
  EXPECT_GT(registry.all().size(), 70u);
  EXPECT_NE(registry.Find("FS-01"), nullptr);
}

TEST(Registry, EveryGroupAndFsdpRowNamesItsInvariant) {
  const Registry registry = Registry::Builtin();
  for (const Requirement& row : registry.all()) {
    if (row.id.starts_with("GE")) continue;
    EXPECT_NE(row.source.find("invariant"), std::string::npos) << row.id << ": " << row.source;
  }
}

}  // namespace
}  // namespace shardproof
