#include "conformance/cases/knob_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "conformance/cases/knob.h"

namespace shardproof {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The lines of the table that begins with this header.
std::string TableIn(const std::string& document, const std::string& header) {
  const size_t begin = document.find(header);
  if (begin == std::string::npos) return "";
  const size_t end = document.find("\n\n", begin);
  return document.substr(begin, end == std::string::npos ? end : end + 1 - begin);
}

TEST(KnobTextTest, KnobsMdHoldsTheTable) {
  EXPECT_EQ(TableIn(Contents("conformance/abi/KNOBS.md"), "| knob |"), KnobLines())
      << "put into KNOBS.md what `shardproof list knobs` prints";
}

TEST(KnobTextTest, ReadmeHoldsTheTokens) {
  EXPECT_EQ(TableIn(Contents("conformance/cases/README.md"), "| token |"), TokenLines())
      << "put into README.md what `shardproof list tokens` prints";
}

TEST(KnobTextTest, EachKnobIsSaidInFull) {
  std::set<std::string> names;
  for (const Knob& knob : KnobTable()) {
    EXPECT_TRUE(names.insert(knob.name).second) << knob.name << " stands there twice";
    EXPECT_FALSE(knob.meaning.empty()) << knob.name;
    EXPECT_EQ(knob.told != Told::kNever && knob.values.empty(), false) << knob.name;
    EXPECT_EQ(knob.token.empty(), knob.read == nullptr) << knob.name;
    EXPECT_EQ(knob.token.empty(), knob.write == nullptr) << knob.name;
    EXPECT_EQ((knob.name + knob.values + knob.meaning).find('|'), std::string::npos) << knob.name;
  }
}

}  // namespace
}  // namespace shardproof
