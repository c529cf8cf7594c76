#include "conformance/runner/verdict_io.h"

#include <stdexcept>

#include "conformance/common/frame.h"

namespace shardproof {

namespace {

// Fields of a frame in order; numbers are fields too.
class Out {
 public:
  void Put(const std::string& field) { fields_.push_back(field); }
  void Put(int64_t number) { Put(std::to_string(number)); }
  std::string Take() { return PackFrame(fields_); }

 private:
  Frame fields_;
};

class In {
 public:
  explicit In(std::string packed) {
    bool bad = false;
    fields_ = TakeFrame(&packed, &bad).value_or(Frame{});
    if (!packed.empty()) throw std::runtime_error("a verdict arrived with more behind it");
  }
  std::string Text() {
    if (next_ >= fields_.size()) throw std::runtime_error("a verdict arrived incomplete");
    return fields_[next_++];
  }
  int64_t Number(int64_t lowest = INT64_MIN, int64_t highest = INT64_MAX) {
    return NumberOf(Text(), lowest, highest);
  }
  int64_t Count() { return Number(0, static_cast<int64_t>(fields_.size() - next_)); }
  void End() const {
    if (next_ != fields_.size()) throw std::runtime_error("a verdict arrived with more behind it");
  }

 private:
  Frame fields_;
  size_t next_ = 0;
};

}  // namespace

std::string PackVerdict(const Verdict& verdict) {
  Out out;
  out.Put(static_cast<int64_t>(verdict.outcome));
  out.Put(verdict.reason);
  out.Put(static_cast<int64_t>(verdict.result.findings.size()));
  for (const Finding& f : verdict.result.findings) {
    out.Put(f.requirement);
    out.Put(f.rank);
    out.Put(f.event);
    out.Put(f.begins);
    out.Put(f.step);
    out.Put(f.ended);
    out.Put(f.follows);
    for (const std::string* text : {&f.stream, &f.operation, &f.expected, &f.seen, &f.message})
      out.Put(*text);
  }
  out.Put(static_cast<int64_t>(verdict.result.judged.size()));
  for (const std::string& id : verdict.result.judged) out.Put(id);
  out.Put(static_cast<int64_t>(verdict.result.not_checkable.size()));
  for (const NotCheckable& row : verdict.result.not_checkable) {
    out.Put(row.requirement);
    out.Put(row.why);
    out.Put(static_cast<int64_t>(row.kind));
  }
  out.Put(static_cast<int64_t>(verdict.result.notes.size()));
  for (const std::string& note : verdict.result.notes) out.Put(note);
  out.Put(static_cast<int64_t>(verdict.timings.size()));
  for (const uint64_t hash : verdict.timings) out.Put(static_cast<int64_t>(hash));
  out.Put(static_cast<int64_t>(verdict.printed.size()));
  for (const auto& [rank, text] : verdict.printed) {
    out.Put(rank);
    out.Put(text);
  }
  for (const auto* of_findings : {&verdict.drawings, &verdict.partners}) {
    out.Put(static_cast<int64_t>(of_findings->size()));
    for (const auto& [place, text] : *of_findings) {
      out.Put(static_cast<int64_t>(place));
      out.Put(text);
    }
  }
  return out.Take();
}

Verdict UnpackVerdict(const std::string& packed) {
  In in(packed);
  Verdict verdict;
  verdict.outcome = static_cast<Outcome>(in.Number(0, static_cast<int64_t>(Outcome::kSuiteError)));
  verdict.reason = in.Text();
  for (int64_t n = in.Count(); n > 0; --n) {
    Finding& f = verdict.result.findings.emplace_back();
    f.requirement = in.Text();
    f.rank = static_cast<int>(in.Number(INT32_MIN, INT32_MAX));
    f.event = in.Number();
    f.begins = in.Number();
    f.step = static_cast<int>(in.Number(INT32_MIN, INT32_MAX));
    f.ended = static_cast<int32_t>(in.Number(INT32_MIN, INT32_MAX));
    // Of an earlier one, if any.
    f.follows = static_cast<int32_t>(
        in.Number(-1, static_cast<int64_t>(verdict.result.findings.size()) - 2));
    for (std::string* text : {&f.stream, &f.operation, &f.expected, &f.seen, &f.message})
      *text = in.Text();
  }
  for (int64_t n = in.Count(); n > 0; --n) verdict.result.judged.insert(in.Text());
  for (int64_t n = in.Count(); n > 0; --n) {
    NotCheckable& row = verdict.result.not_checkable.emplace_back();
    row.requirement = in.Text();
    row.why = in.Text();
    row.kind = static_cast<NotCheckable::Kind>(
        in.Number(0, static_cast<int64_t>(NotCheckable::Kind::kNotAsked)));
  }
  for (int64_t n = in.Count(); n > 0; --n) verdict.result.notes.push_back(in.Text());
  for (int64_t n = in.Count(); n > 0; --n)
    verdict.timings.push_back(static_cast<uint64_t>(in.Number()));
  for (int64_t n = in.Count(); n > 0; --n) {
    const auto rank = static_cast<int32_t>(in.Number(INT32_MIN, INT32_MAX));
    verdict.printed[rank] = in.Text();
  }
  for (auto* of_findings : {&verdict.drawings, &verdict.partners}) {
    for (int64_t n = in.Count(); n > 0; --n) {
      const int64_t last = static_cast<int64_t>(verdict.result.findings.size()) - 1;
      const auto place = static_cast<size_t>(in.Number(0, last));
      (*of_findings)[place] = in.Text();
    }
  }
  in.End();
  return verdict;
}

Verdict VerdictOfWorker(const WorkResult& result) {
  std::string problem = result.death;
  try {
    if (result.done) return UnpackVerdict(result.blob);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  Verdict verdict;
  verdict.outcome = Outcome::kSuiteError;
  verdict.reason = "the process that judged the case: " + problem;
  return verdict;
}

}  // namespace shardproof
