// pace.h: how long has a run gone on, and how long will it?
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace shardproof {

// Times are seconds since the run began.
class Pace {
 public:
  explicit Pace(size_t total) : total_(total) {}
  void Ended(double now);  // one more case
  // What is left by the pace of the cases so far: it counts down while one runs, and goes up when
  // one runs longer than they did. Nothing is known before the first has ended.
  std::optional<double> Left(double now) const;

 private:
  size_t total_, done_ = 0;
  double last_ = 0;  // when the last one ended
};

// "0:07", "12:05", "1:02:03"
std::string ClockText(double seconds);
// "0:12, about 1:40 left"
std::string PaceText(const Pace& pace, double now);

}  // namespace shardproof
