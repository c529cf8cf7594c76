#include "conformance/checks/base/published.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "conformance/common/at.h"

namespace shardproof {

bool Assembled::Complete() const { return FirstMissing() < 0; }

int64_t Assembled::FirstMissing() const {
  const auto at = std::find(from.begin(), from.end(), kNobody);
  return at == from.end() ? -1 : at - from.begin();
}

bool SameValue(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::string ValueText(double value, int32_t dtype) {
  char text[64];
  if (dtype == SPF_F64) {
    std::snprintf(text, sizeof text, "%.17g (0x%016llx)", value,
                  static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
  } else if (dtype == SPF_BF16) {
    std::snprintf(text, sizeof text, "%.9g (0x%04x)", value,
                  unsigned{ToBf16(static_cast<float>(value))});
  } else {
    std::snprintf(text, sizeof text, "%.9g (0x%08x)", value,
                  std::bit_cast<uint32_t>(static_cast<float>(value)));
  }
  return text;
}

namespace {

// Puts what event i published into tensor. REQUIRES: it fits.
void Add(const Trace& trace, int64_t i, int32_t rank, Assembled& tensor) {
  const Event& event = At(trace.events, i);
  const bool known = event.values >= 0;
  const double* given = known ? trace.values.data() + event.values : nullptr;
  double* const values = tensor.values.data() + event.offset;
  int32_t* const from = tensor.from.data() + event.offset;
  uint8_t* const was_known = tensor.known.data() + event.offset;
  const auto of_nobody = [](int32_t other) { return other == Assembled::kNobody; };
  if (std::all_of(from, from + event.count, of_nobody)) {
    std::fill_n(from, event.count, rank);
    std::fill_n(was_known, event.count, uint8_t{known});
    if (known) std::copy_n(given, event.count, values);
    return;
  }
  for (int64_t k = 0; k < event.count; ++k) {
    if (from[k] == Assembled::kNobody) {
      from[k] = rank;
      values[k] = known ? given[k] : 0;
      was_known[k] = known;
    } else if (known && was_known[k] != 0 && tensor.conflict.element < 0 &&
               !SameValue(values[k], given[k])) {
      tensor.conflict = {event.offset + k, rank, from[k], i, given[k], values[k]};
    }
  }
}

}  // namespace

Published::Published(const Analysis& a, int instance, uint8_t result) {
  const InstanceFacts& facts = a.Facts(size_t(instance));
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    const Trace& trace = a.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kPublish || event.result != result || event.instance != instance)
        continue;
      const ParamFacts& param = facts.Param(rank, event.id);
      if (event.offset < 0 || event.count < 0 || event.offset + event.count > param.numel) continue;
      Assembled& tensor = calls_[event.call][param.key];
      if (tensor.from.empty()) {
        tensor.from.assign(size_t(param.numel), Assembled::kNobody);
        tensor.values.assign(size_t(param.numel), 0);
        tensor.known.assign(size_t(param.numel), false);
        tensor.dtype = event.dtype;
      }
      if (event.values < 0) has_values_ = false;
      Add(trace, static_cast<int64_t>(i), rank, tensor);
    }
  }
}

const Assembled* Published::Find(int32_t call, int32_t key) const {
  const auto at = calls_.find(call);
  if (at == calls_.end()) return nullptr;
  const auto tensor = at->second.find(key);
  return tensor == at->second.end() ? nullptr : &tensor->second;
}

int32_t VersionMade(const InstanceFacts& facts, const Event& event) {
  if (event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM) return event.call;
  if (event.kind != EventKind::kInit) return -1;
  int32_t call = event.call;
  if (!InitsLater(facts.spec())) return call;
  while (call > 0 && facts.CallAt(call).letter != 'c') --call;
  return call;
}

bool CallCompleted(const Analysis& a, int instance, int32_t call) {
  const InstanceFacts& facts = a.Facts(size_t(instance));
  if (size_t(call) >= facts.calls().size()) return false;
  const char letter = facts.CallAt(call).letter;
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    if (!facts.InGrid(rank)) continue;
    // A run that was cut goes on to destroy: that is not the call of the script.
    if (!a.CallName(rank, instance, call).starts_with(letter)) return false;
    if (!a.CameBack(rank, instance, call)) return false;
  }
  return true;
}

}  // namespace shardproof
