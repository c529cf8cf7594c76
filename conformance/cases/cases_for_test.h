// cases_for_test.h: what do several tests ask of ids and of the rows of spaces?
#pragma once
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "conformance/cases/case.h"
#include "conformance/cases/covering.h"

namespace shardproof {

// Why the id is no case; empty: it is one.
inline std::string ErrorOf(const std::string& id) {
  try {
    ParseId(id);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// The row of this seed is a legal case, which gives back the row, and whose id gives back the case.
template <typename Space>
Case ExpectRowIsACase(const Space& space, uint64_t seed) {
  const CoveringRow row = RandomRow(space.problem(), seed);
  Case c = space.Make(row, 1);
  EXPECT_EQ(space.RowOf(c), row) << Id(c);
  EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
  EXPECT_EQ(c.illegal, "");
  return c;
}

}  // namespace shardproof
