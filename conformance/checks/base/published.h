// published.h: what did all ranks together publish, tensor by tensor?
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

// One logical tensor in one entry call, put together from the ranges that ranks published.
struct Assembled {
  static constexpr int32_t kNobody = -1;
  std::vector<double> values;
  std::vector<int32_t> from;  // rank that published the element, or kNobody
  // Whether the element's value was recorded: not at level order, nor if the work never ran.
  std::vector<uint8_t> known;
  int32_t dtype = 0;
  // The first element that a second rank published with other bits.
  struct Conflict {
    int64_t element = -1;
    int32_t rank = -1, other = -1;
    int64_t event = -1;
    double value = 0, other_value = 0;
  } conflict;
  bool Complete() const;
  int64_t FirstMissing() const;  // -1 if complete
};

class Published {
 public:
  // result: SPF_RESULT_PARAM or SPF_RESULT_GRAD of one instance.
  Published(const Analysis& a, int instance, uint8_t result);
  // Null when nothing was published of it in that call.
  const Assembled* Find(int32_t call, int32_t key) const;
  bool AnyIn(int32_t call) const { return calls_.contains(call); }
  const std::map<int32_t, std::map<int32_t, Assembled>>& calls() const { return calls_; }
  // False when some publish carries no values (level order, or the work never ran).
  bool has_values() const { return has_values_; }

 private:
  std::map<int32_t, std::map<int32_t, Assembled>> calls_;  // call -> key -> tensor
  bool has_values_ = true;
};

// The entry call whose value of a parameter the event shows or brings, a publication or an init;
// -1: it is neither. Initial values are create's, also where init_device = meta leaves them to a
// later call.
int32_t VersionMade(const InstanceFacts& facts, const Event& event);

// Every rank of the instance's grid came back from the entry call with SPF_OK.
bool CallCompleted(const Analysis& a, int instance, int32_t call);

// True if both are the same number: -0 equals +0. A NaN equals a NaN: the oracle has one where a
// case asks for a loss that is not a number (ModelConfig::nan_loss), and nowhere else.
bool SameValue(double a, double b);

// value as text with its bits: "0.5 (0x3f000000)".
std::string ValueText(double value, int32_t dtype);

}  // namespace shardproof
