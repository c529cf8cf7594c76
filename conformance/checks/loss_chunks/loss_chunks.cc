#include "conformance/checks/loss_chunks/loss_chunks.h"

#include <map>
#include <tuple>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/common/at.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

// A chunk whose logits, or whose gradient of them, lie in memory.
struct Owner {
  int32_t instance = -1, call = -1, microbatch = -1, chunk = -1;
  auto operator<=>(const Owner&) const = default;
};

// What has run of a chunk's two nodes, the head and the loss.
struct Halves {
  bool forward = false, dgrad = false, wgrad = false;
};
struct Progress {
  const spf_node* node[2] = {nullptr, nullptr};  // loss: 1
  Halves ran[2];
};

bool InChunks(const InstanceFacts& facts) { return facts.spec().model.loss_chunks > 1; }

// The first of its phases, in words, that has not run; empty: all that training, or an evaluation,
// has to run.
std::string Missing(const Progress& chunk, bool trains) {
  if (!chunk.ran[1].forward) return "the loss";
  for (const int of : {1, 0}) {
    const spf_node* node = chunk.node[of];
    if (node == nullptr) return "the head";
    const Halves& ran = chunk.ran[of];
    const bool dgrad = node->uses[SPF_DGRAD].n > 0 && !ran.dgrad;
    const bool wgrad = node->uses[SPF_WGRAD].n > 0 && !ran.wgrad;
    if (trains && (dgrad || wgrad)) return std::string("backward of ") + node->name;
  }
  return "";
}

class OnRank : RankCheck {
 public:
  OnRank(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink) {}

  void Run() {
    const auto n = static_cast<int64_t>(trace_.events.size());
    for (int64_t i = 0; i < n; ++i) Visit(i);
  }
  bool ordered() const { return ordered_; }
  bool followed() const { return followed_; }

 private:
  void Visit(int64_t index) {
    const Event& event = At(trace_.events, index);
    if (GivesBack(event.kind)) {
      live_.EraseBlock(event.alloc);
    } else if (event.kind == EventKind::kCompute) {
      Computed(index, event);
    } else {
      Overwritten(event);
    }
  }

  void Computed(int64_t index, const Event& event) {
    const InstanceFacts& facts = a_.Facts(event.instance);
    if (!InChunks(facts)) return;
    const NodeSpec& spec = facts.model().Graph(facts.Place(rank_)).spec(event.id);
    if (spec.loss_chunks <= 1) return Reused(event, facts.Node(event.id, rank_));
    const spf_node& node = facts.Node(event.id, rank_);
    const bool loss = spec.op == Op::kLoss;
    const Owner owner{static_cast<int32_t>(event.instance), event.call, event.microbatch,
                      spec.loss_chunk};
    auto& chunks = progress_[{owner.instance, owner.call, owner.microbatch}];
    const bool head = !loss && event.phase == SPF_FWD && !event.flag;
    if (head) JudgeOrder(index, facts, chunks, spec.loss_chunk);
    Progress& chunk = chunks[spec.loss_chunk];
    chunk.node[loss ? 1 : 0] = &node;
    Halves& ran = chunk.ran[loss ? 1 : 0];
    ran.forward |= event.phase == SPF_FWD;
    ran.dgrad |= event.phase == SPF_BWD || event.phase == SPF_DGRAD;
    ran.wgrad |= event.phase == SPF_BWD || event.phase == SPF_WGRAD;
    Put(event, node, spec.out[0], loss, owner);
    if (head) JudgeMemory(index, owner);
  }

  // Values of other nodes come to lie where logits were.
  void Reused(const Event& event, const spf_node& node) {
    const spf_uses& uses = node.uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    for (int32_t u = 0; u < uses.n; ++u) {
      if (uses.use[u].access != SPF_WRITE) continue;
      const Range& range = trace_.ranges[event.ranges.begin + static_cast<size_t>(u)];
      live_.Erase(range.alloc, range.offset, range.offset + range.length);
    }
  }

  // The head writes logits, the loss their gradient.
  void Put(const Event& event, const spf_node& node, int32_t logits, bool loss,
           const Owner& owner) {
    const spf_uses& uses = node.uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    for (int32_t u = 0; u < uses.n; ++u) {
      const spf_use& use = uses.use[u];
      const bool written = loss ? use.table == SPF_IN_DACT : use.id == logits;
      const bool value = use.table == SPF_IN_ACT || use.table == SPF_IN_DACT;
      if (!value || !written || use.access != SPF_WRITE) continue;
      const Range& range = trace_.ranges[event.ranges.begin + static_cast<size_t>(u)];
      live_.Put(range.alloc, range.offset, range.offset + range.length, owner);
      followed_ |= range.length > 0;
    }
  }

  // What is copied or received over them, cleared, or said to be dead. Other kernels work on them.
  void Overwritten(const Event& event) {
    const bool moves = event.kind == EventKind::kCollective || event.kind == EventKind::kCopy;
    const bool clears =
        event.kind == EventKind::kLaunch && (event.id == SPF_K_DISCARD || event.id == SPF_K_FILL);
    if (!moves && !clears) return;
    for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r) {
      const Range& range = trace_.ranges[r];
      if ((range.access & kWrite) != 0)
        live_.Erase(range.alloc, range.offset, range.offset + range.length);
    }
  }

  void JudgeOrder(int64_t index, const InstanceFacts& facts,
                  const std::map<int32_t, Progress>& chunks, int32_t chunk) {
    ordered_ = true;
    const int32_t call = At(trace_.events, index).call;
    const bool trains = facts.CallAt(call).letter == 't';
    for (const auto& [other, progress] : chunks) {
      if (other == chunk) continue;
      const std::string missing = Missing(progress, trains);
      if (missing.empty()) continue;
      Add("FS-46", index,
          trains ? "forward and backward of chunk " + std::to_string(other) + " before"
                 : "the loss of chunk " + std::to_string(other) + " before",
          missing + " has not been issued",
          "logits of a second chunk are computed before those of chunk " + std::to_string(other) +
              " are done with");
      return;
    }
  }

  // An engine that gives a chunk's logits back when it has the next one's has two; no more.
  void JudgeMemory(int64_t index, const Owner& at_work) {
    std::string others;
    int32_t n = 0;
    for (const auto& [owner, bytes] : live_.bytes()) {
      if (owner == at_work || owner.instance != at_work.instance || bytes == 0) continue;
      others += (n++ == 0 ? "" : " and ") + std::to_string(owner.chunk) + " of microbatch " +
                std::to_string(owner.microbatch);
    }
    if (n <= 1) return;
    Add("FS-47", index, "at most one other chunk's logits", "those of chunks " + others,
        "logits, or their gradients, are kept when their chunk is done: memory is that of a loss "
        "in one piece");
  }

  ByteMap<Owner> live_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::map<int32_t, Progress>>
      progress_;  // by instance, call and microbatch; by chunk
  bool ordered_ = false, followed_ = false;
};

// The rank is in the grid of an instance whose loss is in chunks.
bool ComputesChunks(const Analysis& a, int32_t rank) {
  for (size_t i = 0; i < a.n_instances(); ++i) {
    if (InChunks(a.Facts(i)) && a.Facts(i).InGrid(rank)) return true;
  }
  return false;
}

}  // namespace

CheckResult CheckLossChunks(const Analysis& a) {
  CheckResult result;
  if (!a.has_case() || !a.legal()) return result;
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    if (!ComputesChunks(a, rank)) continue;
    OnRank on_rank(a, rank, result, sink);
    on_rank.Run();
    const std::string of_rank = " on rank " + std::to_string(rank);
    if (on_rank.ordered()) {
      Judge(result, {"FS-46"});
    } else {
      CannotJudge(result, {"FS-46"}, "no head of a chunk was computed" + of_rank);
    }
    if (on_rank.followed()) {
      Judge(result, {"FS-47"});
    } else {
      CannotJudge(result, {"FS-47"}, "no event says where logits of a chunk lie" + of_rank);
    }
  }
  return result;
}

std::set<std::string> ShownWithLossChunks(const InstanceFacts& facts) {
  if (!InChunks(facts)) return {};
  return {"FS-46", "FS-47"};
}

}  // namespace shardproof
