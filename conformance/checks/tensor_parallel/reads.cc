#include "conformance/checks/tensor_parallel/reads.h"

#include <algorithm>

namespace shardproof {

std::optional<Misread> ReadOfMet::Judge(const HeldBytes& held, const RankSets& ranks) const {
  std::vector<int32_t> all = wanted;
  std::sort(all.begin(), all.end());
  // What a collective gave to one rank, whole, messages may bring to the others.
  const bool once = whole && held.least == 1 && held.most == 1, sole = once && held.of.size() == 1;
  std::vector<int32_t> met_by;
  if (sole) {
    met_by = ranks.Ranks(held.of.begin()->first);
  } else if (once || (whole && held.most == 0)) {
    met_by = MetByMessages(held, once || met.gathered, all, ranks);
  }
  if (met_by == all) return std::nullopt;
  const bool strange = std::any_of(met_by.begin(), met_by.end(), [&](int32_t other) {
    return std::find(all.begin(), all.end(), other) == all.end();
  });
  if (strange) {
    return Misread{GroupId(met), met.node + ": over the ranks " + ListText(wanted),
                   "over " + ListText(met_by),
                   "it did not come from the ranks that hold the other " +
                       std::string(met.axis == Axis::kTp ? "shards" : "parts of the sequence")};
  }
  if (sole) return std::nullopt;
  return met.gathered ? Gathered(held, met_by) : Summed(held, met_by);
}

std::string ReadOfMet::Own(const HeldBytes& held, const std::vector<int32_t>& met_by) const {
  if (held.stale > 0) return "what another microbatch or step has left there";
  if (!whole) return "memory that nothing has written";
  const bool others =
      std::any_of(met_by.begin(), met_by.end(), [&](int32_t other) { return other != rank; });
  if (others || (!met.gathered && met_by.size() > 1))
    return (met.gathered ? "the parts of the ranks " : "the summands of the ranks ") +
           ListText(met_by);
  return met.gathered ? "the part of this rank" : "the summand of this rank";
}

Misread ReadOfMet::Gathered(const HeldBytes& held, const std::vector<int32_t>& met_by) const {
  const char* id = MeetingId(met, !value);
  const std::string ranks = ListText(wanted), own = Own(held, met_by);
  if (met.of == Meets::kLoss) {
    return {id, met.node + ": the maxima of the ranks " + ranks, own,
            "the loss is computed without the largest logits of the other ranges of the "
            "vocabulary"};
  }
  return {id, met.node + ": the parts of the ranks " + ranks, own,
          std::string(value ? "a value" : "a gradient") +
              " of parts of the sequence is read without those of the other ranks of " +
              NameOf(met.axis)};
}

Misread ReadOfMet::Summed(const HeldBytes& held, const std::vector<int32_t>& met_by) const {
  const bool lacks = std::any_of(wanted.begin(), wanted.end(), [&](int32_t one) {
    return std::find(met_by.begin(), met_by.end(), one) == met_by.end();
  });
  const bool missing = !whole || (met_by.empty() ? held.least == 0 : lacks);
  const std::string axis = NameOf(met.axis), own = Own(held, met_by);
  const char* what = met.of == Meets::kRows ? "what each rank of tp has looked up in its range"
                     : met.of == Meets::kLoss
                         ? "the sum of exponentials, with the label's logit, of a range"
                     : met.axis == Axis::kCp ? "the gradient of keys and values that ranks share"
                     : value                 ? "the output of a layer that is split over tp"
                             : "the gradient of the input of a layer that is split over tp";
  return {MeetingId(met, !value), met.node + ": one sum over the ranks " + ListText(wanted),
          missing || !met_by.empty() ? own : std::to_string(held.most) + " sums",
          std::string(what) + " is read " +
              (missing ? "before it is summed over " + axis
                       : "after it was summed over " + axis + " again")};
}

}  // namespace shardproof
