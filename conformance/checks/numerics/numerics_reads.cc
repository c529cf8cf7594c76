// Parameters as compute nodes read them: each must equal what was published for it before, cast to
// its dtype.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/cases/real_text.h"
#include "conformance/checks/base/published.h"
#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/numerics/wrong_values.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/oracle/oracle.h"
#include "conformance/trace/digest.h"

namespace shardproof {

namespace {

uint64_t DigestOf(const std::vector<float>& values, int32_t dtype) {
  if (dtype != SPF_BF16)
    return DigestValues(values.data(), SPF_F32, 0, static_cast<int64_t>(values.size()));
  std::vector<uint16_t> narrow(values.size());
  std::transform(values.begin(), values.end(), narrow.begin(), ToBf16);
  return DigestValues(narrow.data(), SPF_BF16, 0, static_cast<int64_t>(narrow.size()));
}

// Whether a parameter was read that nobody wrote: fresh and freed memory is all ones.
bool IsPoison(const ParamRead& read, const ParamFacts& param) {
  const auto bytes = static_cast<size_t>(param.numel) * DtypeBytes(param.dtype);
  const std::vector<unsigned char> poison(bytes, 0xFF);
  return DigestValues(poison.data(), param.dtype, 0, param.numel) == read.digest;
}

class Reads {
 public:
  Reads(const Analysis& a, int instance, CheckResult& result)
      : a_(a),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        oracle_(*At(a.run().oracles, instance)),
        published_(a, instance, SPF_RESULT_PARAM),
        sink_(result) {}

  void JudgeRank(int32_t rank) {
    const Trace& trace = a_.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kCompute || event.instance != instance_) continue;
      if (a_.has_flow() && !a_.flow().At(rank, static_cast<int64_t>(i)).ran) continue;
      for (uint32_t k = event.reads.begin; k < event.reads.end; ++k) {
        const ParamRead& read = trace.reads[k];
        if (read.param < 0 || read.param >= facts_.n_params(rank) || read.digest == 0)
          continue;  // never ran
        JudgeRead(rank, static_cast<int64_t>(i), event, read);
      }
    }
  }

 private:
  // Value of a parameter after an entry call: as published if all of it was, else as the oracle
  // says; the oracle's too where the recorder sets it so after the publish (bounded updates). Null:
  // unchanged.
  const std::vector<float>* ValueAfter(int32_t call, const ParamFacts& param) {
    const auto [at, added] = values_.try_emplace({call, param.key});
    if (!added) return at->second.empty() ? nullptr : &at->second;
    if (size_t(call) >= oracle_.calls.size()) return nullptr;
    const OracleCall& want = At(oracle_.calls, call);
    const bool changes = want.letter == 'c' || want.letter == 'l' || want.updated;
    const auto weights = want.weights.find(param.name);
    if (!changes || weights == want.weights.end()) return nullptr;
    at->second = weights->second;
    if (want.letter == 't' && a_.bounded_updates()) return &at->second;
    const Assembled* seen = published_.Find(call, param.key);
    if (seen != nullptr && published_.has_values() && seen->Complete() && seen->dtype == SPF_F32) {
      std::transform(seen->values.begin(), seen->values.end(), at->second.begin(),
                     [](double value) { return static_cast<float>(value); });
    }
    return &at->second;
  }

  uint64_t DigestAfter(int32_t call, const ParamFacts& param, const std::vector<float>& values) {
    const auto [at, added] = digests_.try_emplace({call, param.key}, 0);
    if (added) at->second = DigestOf(values, param.dtype);
    return at->second;
  }

  void JudgeRead(int32_t rank, int64_t index, const Event& event, const ParamRead& read) {
    const ParamFacts& param = facts_.Param(rank, read.param);
    int32_t call = event.call - 1;
    const std::vector<float>* expected = nullptr;
    for (; call >= 0 && expected == nullptr; --call) expected = ValueAfter(call, param);
    ++call;
    if (expected == nullptr || DigestAfter(call, param, *expected) == read.digest) return;
    const Diagnosis diagnosis = Diagnose(rank, index, event, read, param, call);
    Finding finding = a_.At(diagnosis.requirement, rank, index);
    const std::string from = a_.CallName(rank, instance_, call);
    finding.expected = param.name + " as of " + from;
    finding.seen = diagnosis.what;
    finding.message =
        param.name + " as read is not what was published in " + from + ": " + diagnosis.what;
    DescribeFirst(rank, read, param, *expected, finding);
    sink_.Add(std::move(finding));
  }

  struct Diagnosis {
    const char* requirement = "FS-01";
    std::string what;
  };

  Diagnosis Diagnose(int32_t rank, int64_t index, const Event& event, const ParamRead& read,
                     const ParamFacts& param, int32_t call) {
    // First: what is published from such memory later would look too new.
    if (IsPoison(read, param))
      return {"FS-01", "poison: memory that was never written, or was freed or discarded"};
    for (int32_t other = static_cast<int32_t>(oracle_.calls.size()) - 1; other >= 0; --other) {
      const std::vector<float>* values = other == call ? nullptr : ValueAfter(other, param);
      if (values == nullptr || DigestAfter(other, param, *values) != read.digest) continue;
      const std::string name = a_.CallName(rank, instance_, other);
      if (other < call) return {"FS-23", "stale: it equals the value of " + name};
      return {"FS-01", "too new: it equals the value that " + name + " publishes"};
    }
    const auto bytes = static_cast<size_t>(param.numel) * DtypeBytes(param.dtype);
    const std::vector<unsigned char> zero(bytes, 0);
    if (DigestValues(zero.data(), param.dtype, 0, param.numel) == read.digest)
      return {"FS-01", "all zero"};
    for (int32_t id = 0; id < facts_.n_params(rank); ++id) {
      const ParamFacts& other = facts_.Param(rank, id);
      if (other.key == param.key || other.numel != param.numel || other.dtype != param.dtype)
        continue;
      const std::vector<float>* values = ValueAfter(call, other);
      if (values != nullptr && DigestAfter(call, other, *values) == read.digest) {
        return {"FS-01", "another tensor: it equals " + other.name};
      }
    }
    if (const std::string skipped = SkippedSince(rank, call, event.call); !skipped.empty())
      return {"GE-34", skipped};
    return {"FS-01", Sources(rank, index, event, read.param)};
  }

  // A step that should have left the parameter as that call did.
  std::string SkippedSince(int32_t rank, int32_t call, int32_t now) const {
    for (int32_t step = call + 1; facts_.spec().skip_norm > 0 && step < now; ++step) {
      const OracleCall& want = At(oracle_.calls, step);
      if (want.letter != 't' || want.updated) continue;
      return "other values, though " + a_.CallName(rank, instance_, step) +
             " is to be skipped: its gradient norm " + RealText(want.grad_norm) +
             " is above grad_norm_skip_threshold = " + RealText(facts_.spec().skip_norm);
    }
    return "";
  }

  // What the bytes are by their origin, when their values say nothing.
  std::string Sources(int32_t rank, int64_t index, const Event& event, int32_t local) const {
    if (!a_.has_flow()) return "other values";
    const EventFlow& flow = a_.flow().At(rank, index);
    const spf_uses& uses = facts_.Node(event.id, rank).uses[event.phase];
    std::set<std::string> origins;
    for (int32_t i = 0; i < uses.n && size_t(i) < flow.before.size(); ++i) {
      if (uses.use[i].table != SPF_IN_PARAM || uses.use[i].id != local) continue;
      for (const Chunk& chunk : At(flow.before, i)) {
        if (origins.size() < 4) origins.insert(a_.ContentText(chunk.content));
      }
    }
    std::string text = "other values; its bytes are";
    for (const std::string& origin : origins)
      text += (origin == *origins.begin() ? " " : ", ") + origin;
    return origins.empty() ? "other values" : text;
  }

  void DescribeFirst(int32_t rank, const ParamRead& read, const ParamFacts& param,
                     const std::vector<float>& expected, Finding& finding) const {
    if (read.values < 0) {
      finding.message += "; record bytes to see the first differing element";
      return;
    }
    const Trace& trace = a_.trace(rank);
    for (int64_t i = 0; i < std::min<int64_t>(read.count, static_cast<int64_t>(expected.size()));
         ++i) {
      const double seen = At(trace.values, read.values + i),
                   want = CastTo(At(expected, i), param.dtype);
      if (SameValue(seen, want)) continue;
      finding.expected =
          param.name + "[" + std::to_string(i) + "] = " + ValueText(want, param.dtype);
      finding.seen = ValueText(seen, param.dtype) + ", " + finding.seen;
      return;
    }
  }

  const Analysis& a_;
  const int instance_;
  const InstanceFacts& facts_;
  const OracleRun& oracle_;
  Published published_;
  FindingSink sink_;
  std::map<std::pair<int32_t, int32_t>, std::vector<float>>
      values_;  // (call, key); empty: unchanged
  std::map<std::pair<int32_t, int32_t>, uint64_t> digests_;
};

}  // namespace

CheckResult CheckReads(const Analysis& a) {
  CheckResult result;
  for (const Trace& trace : a.traces()) {
    if (trace.provides.digests && trace.provides.work) continue;
    CannotJudge(result, {"FS-01", "FS-23"},
                "rank " + std::to_string(trace.rank) +
                    "'s trace has no digests of parameter reads: record digests");
    return result;
  }
  Judge(result, {"FS-01", "FS-23"});
  for (size_t i = 0; i < a.n_instances(); ++i) {
    if (a.Facts(i).spec().skip_norm > 0) Judge(result, {"GE-34"});
    Reads reads(a, static_cast<int>(i), result);
    for (int32_t rank = 0; rank < a.ranks(); ++rank) reads.JudgeRank(rank);
  }
  return result;
}

}  // namespace shardproof
