// up_to_last.h: which reports count, when cases that run at once end in any order?
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "conformance/report/report.h"

namespace shardproof {

// Whether no case behind this one is wanted.
using IsLast = std::function<bool(const CaseReport& report)>;

// Reports of cases that begin in order, up to the first, in that order, which is the last one.
class UpToLast {
 public:
  // last: null is never true.
  UpToLast(size_t cases, IsLast last) : last_(std::move(last)), reports_(cases), end_(cases) {}

  void Add(size_t place, CaseReport report) {
    if (last_ && last_(report)) end_ = std::min(end_, place + 1);
    reports_[place] = std::move(report);
  }
  // No further case need begin: those that did may still end, and may come before it.
  bool Enough() const { return end_ < reports_.size(); }
  // REQUIRES: each case before the last one has ended.
  std::vector<CaseReport> Take() {
    reports_.resize(end_);
    return std::move(reports_);
  }

 private:
  IsLast last_;
  std::vector<CaseReport> reports_;
  size_t end_;
};

}  // namespace shardproof
