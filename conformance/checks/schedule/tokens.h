// tokens.h: in which order did a rank issue the schedule nodes?
//
// Neighbouring events of one schedule node, side and microbatch make one token; a node that is
// issued in two runs makes two. Recomputation makes none.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/checks/base/nodes.h"
#include "conformance/checks/schedule/asked.h"
#include "conformance/checks/schedule/exchanges.h"

namespace shardproof::schedule {

struct Token {
  Key key;
  std::vector<int64_t> events;  // compute and all-to-alls, in issue order
  int64_t first() const { return events.front(); }
  int64_t last() const { return events.back(); }
};

// One train_step or eval_step of one rank.
struct Step {
  int32_t rank = 0, instance = 0, call = -1;
  bool train = true;
  bool combined = true;  // two microbatches at a time. Else losses count as part of what follows
                         // the layers: with more than one of them they alternate with heads
  int64_t begin = -1, end = -1;  // events of the call; end: -1 if it did not end well
  // By pass: a microbatch, or in an interleaved pipeline a microbatch in one chunk, microbatch *
  // chunks + chunk. Key::microbatch of a token is the pass.
  std::vector<std::unique_ptr<Nodes>> nodes;
  std::vector<spf_program> programs;  // of the passes
  std::vector<Token> tokens;
  // The first token of this key; null: none.
  const Token* Find(const Key& key) const;
  const Token* At(int64_t event) const;  // the token that an event is part of; null: none
  std::map<int64_t, size_t> token_of;    // by event
};

// What the checks of this family share.
class Facts {
 public:
  explicit Facts(const Analysis& a);
  const Analysis& a() const { return a_; }
  const InstanceSpec& spec(size_t instance) const { return a_.Facts(instance).spec(); }
  const std::vector<std::vector<Exchange>>& exchanges() const { return exchanges_; }  // by rank
  const std::vector<Step>& steps() const { return steps_; }
  // Of which all-to-all it is not known what it moves; empty: of none.
  const std::string& unknown() const { return unknown_; }
  bool Overlaps(size_t instance) const { return schedule::Overlaps(spec(instance)); }
  const spf_program& Program(int32_t rank, int32_t instance, int32_t call,
                             int32_t microbatch) const;
  const spf_model& Tables(int32_t rank, int32_t instance) const;

 private:
  Step Collect(int32_t rank, int64_t begin) const;
  void FindUnknown();
  const Analysis& a_;
  std::vector<std::vector<Exchange>> exchanges_;
  std::vector<Step> steps_;
  std::string unknown_;
};

}  // namespace shardproof::schedule
