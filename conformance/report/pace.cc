#include "conformance/report/pace.h"

#include <algorithm>
#include <cstdio>

namespace shardproof {

void Pace::Ended(double now) {
  ++done_;
  last_ = now;
}

std::optional<double> Pace::Left(double now) const {
  if (done_ == 0) return std::nullopt;
  if (done_ >= total_) return 0;
  const auto done = static_cast<double>(done_), rest = static_cast<double>(total_ - done_);
  const double as_expected = rest * last_ / done - (now - last_);
  // If the one that runs ended now.
  const double at_least = (rest - 1) * now / (done + 1);
  return std::max({as_expected, at_least, 0.0});
}

std::string ClockText(double seconds) {
  const auto whole = static_cast<long long>(std::max(seconds, 0.0));
  const long long hours = whole / 3600, minutes = whole / 60 % 60;
  char text[64];
  if (hours > 0) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", hours, minutes, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", minutes, whole % 60);
  }
  return text;
}

std::string PaceText(const Pace& pace, double now) {
  const std::optional<double> left = pace.Left(now);
  return ClockText(now) + (left && *left > 0 ? ", about " + ClockText(*left + 0.5) + " left" : "");
}

}  // namespace shardproof
