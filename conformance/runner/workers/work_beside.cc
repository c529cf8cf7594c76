#include "conformance/runner/workers/work_beside.h"

#include <poll.h>

#include <string>
#include <utility>

namespace shardproof {

void WorkBeside::Begin(const std::function<std::string()>& work) {
  // The answer says how long the work took: nobody may look when it is there.
  worker_.Start([&work](const Frame&, WorkerSide&) {
    const auto began = std::chrono::steady_clock::now();
    std::string blob = work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return Frame{std::move(blob), std::to_string(took.count())};
  });
  worker_.Ask({"work"});
  said_ = Worker::Said::kNothing;
  began_ = std::chrono::steady_clock::now();
  under_way_ = true;
}

bool WorkBeside::Ended() {
  if (said_ == Worker::Said::kNothing) said_ = worker_.Listen(&answer_);
  return said_ != Worker::Said::kNothing;
}

WorkResult WorkBeside::Await(double limit_seconds) {
  WorkResult result;
  std::chrono::duration<double> waited{0};
  while (!Ended() && waited.count() <= limit_seconds) {
    pollfd socket{worker_.socket(), POLLIN, 0};
    poll(&socket, 1, 100);
    waited = std::chrono::steady_clock::now() - began_;
  }
  if (said_ == Worker::Said::kAnswer && answer_.size() == 2) {
    result.done = true;
    result.blob = std::move(answer_[0]);
    result.seconds = std::stod(answer_[1]);
  } else {
    result.death = said_ == Worker::Said::kNothing ? "not ended after " + SecondsText(limit_seconds)
                   : said_ == Worker::Said::kAnswer ? "its answer is not whole"
                                                    : worker_.Death();
    result.seconds = waited.count();
  }
  worker_.Kill();
  under_way_ = false;
  return result;
}

}  // namespace shardproof
