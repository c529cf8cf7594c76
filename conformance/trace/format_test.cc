// What FORMAT.md shows can be read, and what it lists is what the reader knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/trace/digest.h"
#include "conformance/trace/event_keys.h"
#include "conformance/trace/names.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

using testing::HasSubstr;

std::string Document() {
  std::ifstream file("conformance/trace/FORMAT.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Example() {
  const std::string document = Document(), fence = "```jsonl\n";
  const size_t begin = document.find(fence) + fence.size();
  return document.substr(begin, document.find("```", begin) - begin);
}

TEST(Format, TheExampleIsRead) {
  const Trace trace = ReadTrace(Example(), "FORMAT.md");
  ASSERT_EQ(trace.events.size(), 13u);
  EXPECT_EQ(trace.case_id, "by-hand");
  const Event& gather = trace.events[5];
  EXPECT_EQ(gather.kind, EventKind::kCollective);
  EXPECT_EQ(At(trace.groups, gather.group).world_ranks, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(At(trace.streams, gather.stream), "gather");
  ASSERT_EQ(gather.ranges.size(), 2u);
  EXPECT_EQ(trace.ranges[gather.ranges.begin + 1].access, kWrite);
  EXPECT_EQ(trace.reads[trace.events[9].reads.begin].digest, 0x9f86d081884c7d65u);
}

TEST(Format, TheExampleComesBackAsWritten) {
  const Trace trace = ReadTrace(Example(), "FORMAT.md");
  const std::string text = TraceToText(trace);
  EXPECT_EQ(TraceToText(ReadTrace(text, "written")), text);
}

TEST(Format, EveryNameIsListed) {
  const std::string document = Document();
  for (std::string_view name : trace_names::kKinds)
    EXPECT_THAT(document, HasSubstr("`" + std::string(name) + "`"));
  const auto expect_listed = [&](const auto& names) {
    for (std::string_view name : names) EXPECT_THAT(document, HasSubstr(std::string(name)));
  };
  expect_listed(trace_names::kDtypes);
  expect_listed(trace_names::kCollectives);
  expect_listed(trace_names::kForeignCollectives);
  expect_listed(trace_names::kResults);
  expect_listed(trace_names::kStatuses);
  expect_listed(trace_names::kPurposes);
  expect_listed(trace_names::kEnds);
  for (const trace_names::ProvidesField& field : trace_names::kProvides) {
    EXPECT_THAT(document, HasSubstr("`" + std::string(field.name) + "`"));
  }
}

// The keys that the table of kinds asks for: those in backticks and not in brackets, sorted.
std::set<std::string> KeysListedFor(const std::string& kind) {
  std::istringstream document(Document());
  for (std::string line; std::getline(document, line);) {
    std::istringstream row(line);
    std::string empty, kinds, keys;
    std::getline(row, empty, '|');
    std::getline(row, kinds, '|');
    std::getline(row, keys, '|');
    if (!line.starts_with("|") || kinds.find("`" + kind + "`") == std::string::npos) continue;
    std::set<std::string> found;
    bool optional = false;
    std::string word;
    for (const char c : keys) {
      if (c == '[' || c == ']') optional = c == '[';
      if (!optional && c >= 'a' && c <= 'z') {
        word += c;
      } else if (!word.empty()) {
        found.insert(std::exchange(word, ""));
      }
    }
    return found;
  }
  return {"no row"};
}

TEST(Format, TheKeysThatEachKindNeedsAreThoseOfTheReader) {
  for (size_t kind = 0; kind < trace_names::kKinds.size(); ++kind) {
    std::set<std::string> needed;
    for (uint64_t keys = kRequiredKeys[kind]; keys != 0; keys &= keys - 1)
      needed.emplace(KeyOfBit(keys));
    EXPECT_EQ(KeysListedFor(std::string(trace_names::kKinds[kind])), needed)
        << trace_names::kKinds[kind];
  }
}

TEST(Format, TheDigestOfTheDocumentIsRight) {
  const unsigned char bytes[] = {0, 1, 2, 3, 4, 5, 6, 7};
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx",
                static_cast<unsigned long long>(DigestValues(bytes, 1, 0, 8)));
  EXPECT_THAT(Document(), HasSubstr(hex));
}

}  // namespace
}  // namespace shardproof
