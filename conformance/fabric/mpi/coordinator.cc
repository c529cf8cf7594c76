#include "conformance/fabric/mpi/coordinator.h"

#include <algorithm>

namespace shardproof {

const char* ToText(RankEnd::Kind kind) {
  constexpr const char* kNames[] = {"returned", "exception", "signal", "exit", "hung", "aborted"};
  return kNames[kind];
}

}  // namespace shardproof

namespace shardproof::mpi {
namespace {

std::string RankText(size_t rank) { return "rank " + std::to_string(rank); }

// Follows one wait of each rank from start until a rank comes again (then only the cycle is told)
// or waits for nobody.
std::string Chain(const std::vector<RankReport>& reports, size_t start) {
  std::vector<size_t> path{start};
  while (!reports[path.back()].waits.empty()) {
    const auto next = static_cast<size_t>(reports[path.back()].waits.front());
    const auto seen = std::find(path.begin(), path.end(), next);
    const bool again = seen != path.end();
    if (again) path.erase(path.begin(), seen);
    path.push_back(next);
    if (again) break;
  }
  std::string text = RankText(path[0]);
  for (size_t i = 1; i < path.size(); ++i)
    text += (i > 1 ? ", which waits for " : " waits for ") + RankText(path[i]);
  const RankReport& last = reports[path.back()];
  if (path.size() > 1 && last.waits.empty()) {
    text +=
        last.end.kind == RankEnd::kReturned ? ", which has returned" : ", which waits for nobody";
  }
  return text;
}

}  // namespace

std::string PackReport(const RankReport& report) {
  Packer packer;
  packer.Number(static_cast<uint64_t>(report.end.kind));
  packer.Text(report.end.detail);
  packer.Number(report.end.returned);
  packer.Text(report.end.blob);
  packer.Text(report.end.left);
  packer.Text(report.end.printed);
  packer.Text(report.end.where);
  packer.Number(report.waits.size());
  for (const int32_t rank : report.waits) packer.Number(static_cast<uint64_t>(rank));
  packer.Number(report.mismatches.size());
  for (const std::string& text : report.mismatches) packer.Text(text);
  packer.Number(report.sent.size());
  for (const uint64_t count : report.sent) packer.Number(count);
  return packer.Take();
}

RankReport UnpackReport(std::string_view packed) {
  Unpacker unpacker(packed);
  RankReport report;
  report.end.kind = static_cast<RankEnd::Kind>(unpacker.Number());
  report.end.detail = unpacker.Text();
  report.end.returned = unpacker.Number() != 0;
  report.end.blob = unpacker.Text();
  report.end.left = unpacker.Text();
  report.end.printed = unpacker.Text();
  report.end.where = unpacker.Text();
  for (uint64_t n = unpacker.Number(); n > 0; --n)
    report.waits.push_back(static_cast<int32_t>(unpacker.Number()));
  for (uint64_t n = unpacker.Number(); n > 0; --n) report.mismatches.push_back(unpacker.Text());
  for (uint64_t n = unpacker.Number(); n > 0; --n) report.sent.push_back(unpacker.Number());
  return report;
}

std::string HangReport(const std::vector<RankReport>& reports, const std::string& reason) {
  std::string text = reason;
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    if (reports[rank].waits.empty()) continue;
    text += ": " + Chain(reports, rank);
    break;
  }
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    const RankEnd& end = reports[rank].end;
    text += "\n" + RankText(rank) + ": " +
            (end.kind == RankEnd::kReturned ? "has returned" : end.detail);
  }
  return text;
}

Coordinator::Coordinator(int world)
    : ranks_(static_cast<size_t>(world)), reports_(static_cast<size_t>(world)) {}

void Coordinator::On(const ControlMessage& message) {
  Rank& rank = ranks_[static_cast<size_t>(message.from)];
  switch (message.kind) {
    case ControlKind::kStatus:
      rank.level = static_cast<Level>(message.numbers[0]);
      break;
    case ControlKind::kFailed:
      if (failure_.empty())
        failure_ = RankText(static_cast<size_t>(message.from)) + ": " + message.text;
      break;
    case ControlKind::kAnswer:
      if (!probing_ || message.numbers[0] != wave_) break;
      rank.answered = true;
      rank.quiet = message.numbers[1] != 0;
      rank.sent = message.numbers[2];
      rank.received = message.numbers[3];
      break;
    case ControlKind::kResult:
      rank.ended = true;
      reports_[static_cast<size_t>(message.from)] = UnpackReport(message.text);
      break;
    default:
      break;
  }
}

bool Coordinator::over() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ended; });
}

std::optional<ControlMessage> Coordinator::Abort(AbortCause cause, const std::string& reason) {
  aborted_ = true;
  hang_ = cause == AbortCause::kHang;
  reason_ = reason;
  ControlMessage message;
  message.kind = ControlKind::kAbort;
  message.numbers = {static_cast<uint64_t>(cause)};
  message.text = reason;
  return message;
}

std::string Coordinator::Deaths() const {
  std::string text;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankEnd& end = reports_[rank].end;
    if (!ranks_[rank].ended || end.kind == RankEnd::kReturned) continue;
    text += (text.empty() ? "" : "; ") + RankText(rank) + ": " + end.detail;
  }
  return text;
}

std::optional<ControlMessage> Coordinator::Next() {
  if (aborted_ || over()) return std::nullopt;
  if (!given_up_.empty()) return Abort(AbortCause::kHang, given_up_);
  if (!failure_.empty()) return Abort(AbortCause::kFailure, failure_);
  bool stalled = false;
  for (const Rank& rank : ranks_) {
    if (!rank.ended && rank.level == Level::kRunning) {
      probing_ = false;
      return std::nullopt;
    }
    stalled = stalled || (!rank.ended && rank.level == Level::kStalled);
  }
  if (!stalled && !certain_) {
    if (auto probe = Probe()) return probe;
    if (!certain_) return std::nullopt;
  }
  const std::string deaths = Deaths();
  if (!deaths.empty()) return Abort(AbortCause::kDeath, deaths);
  return Abort(AbortCause::kHang,
               stalled ? "no rank makes progress" : "deadlock: no rank can go on");
}

// Asks everybody twice. Returns the question to ask, if it is time for one; sets certain_.
std::optional<ControlMessage> Coordinator::Probe() {
  if (probing_) {
    uint64_t sent = 0, received = 0;
    bool quiet = true;
    for (const Rank& rank : ranks_) {
      if (!rank.answered) return std::nullopt;
      quiet = quiet && rank.quiet;
      sent += rank.sent;
      received += rank.received;
    }
    if (quiet && second_ && sent == first_received_) {
      certain_ = true;
      return std::nullopt;
    }
    second_ = quiet && !second_;
    first_received_ = received;
  } else {
    second_ = false;
  }
  probing_ = true;
  for (Rank& rank : ranks_) rank.answered = false;
  ControlMessage message;
  message.kind = ControlKind::kProbe;
  message.numbers = {++wave_};
  return message;
}

}  // namespace shardproof::mpi
