// facts.h: which collectives of a layer-wise engine brought parameters or summed gradients, who
// owns what, and to which step does a gather belong?
//
// By bytes (flow.h): a gather is what brought parameter elements, a reduction what summed
// gradients, an update what changed parameter elements in place. Owners are those who publish.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/layer_wise/versions.h"

namespace shardproof::layer_wise {

// Elements of one parameter that a gather brought.
struct Share {
  int32_t key = -1;
  int64_t element = 0, elements = 0;
  int32_t from = -1;           // world rank in whose slot they came
  int32_t version = -1;        // entry call that made these values
  int64_t begin = 0, end = 0;  // bytes of the block that received them
};

struct Gather {
  int64_t event = -1;
  int32_t instance = 0, call = -1;
  int32_t epoch =
      -1;  // the train_step or load whose values are to be gathered; -1: there was none yet
  int32_t round =
      -1;  // gathers of one bucket after one step have the same; broadcasts only are several
  const GroupInfo* group = nullptr;
  Range to;
  bool in_place = false;
  bool stays = false;   // the root of a broadcast receives nothing
  bool expert = false;  // of the first share
  std::vector<int64_t>
      slots;                  // elements by member of the group; of a broadcast: 0 but for the root
  std::vector<Share> shares;  // in order of place
};

struct Reduction {
  int64_t event = -1;
  int32_t instance = 0, call = -1;
  const GroupInfo* group = nullptr;
  std::vector<Chunk> grads;  // as sent: gradient elements that are this rank's own sums
};

// Parameter elements that were changed in place.
struct Update {
  int64_t event = -1;
  int32_t instance = 0, call = -1, key = -1;
  int64_t elements = 0;
  int32_t kernel = -1;       // spf_kernel
  bool of_gradient = false;  // a gradient goes into it, not only what was computed from one
};

struct RankFacts {
  std::vector<Gather> gathers;  // in issue order; groups of one rank too
  std::vector<Reduction> reductions;
  std::vector<Update> updates;
  // By (instance, call): first and last backward compute event; absent if there is none.
  std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>> backward;
};

class Facts {
 public:
  // REQUIRES: a.has_flow().
  explicit Facts(const Analysis& a);
  const Analysis& a() const { return a_; }
  const InstanceFacts& Of(int32_t instance) const { return a_.Facts(size_t(instance)); }
  const InstanceSpec& spec(int32_t instance) const { return Of(instance).spec(); }
  bool LayerWise(int32_t instance) const {
    return spec(instance).strategy == ShardingStrategy::kLayerWise;
  }
  bool Aligned(int32_t instance) const {
    return spec(instance).layer_wise.layout == LayerWiseLayout::kAligned;
  }
  const RankFacts& At(int32_t rank) const { return ranks_[size_t(rank)]; }
  char Letter(int32_t instance, int32_t call) const;  // of the script; '?' if it has no such call
  std::string ModuleOf(int32_t instance, int32_t rank, int32_t key) const;

  // The ranks among which the parameter is dealt, as seen from this rank; null: none.
  const std::vector<int32_t>* List(int32_t instance, int32_t rank, int32_t key) const;
  // Some parameter is dealt to several ranks: there is something to gather.
  bool Deals(int32_t instance) const;
  bool Deals() const;  // in some layer-wise instance
  // Some layer-wise instance has a step that must update: then updates and gathers are to be seen.
  bool Updates() const;
  // Some layer-wise instance must gather what it has updated: at once, or with overlapped gathers
  // in a later train step of the same engine, or evaluation. in_train_step: those do not count.
  bool Gathers(bool in_train_step = false) const;
  // Elements that each rank of the list published of the parameter in the call.
  const std::map<int32_t, int64_t>& Publishers(int32_t instance, int32_t rank, int32_t key,
                                               int32_t call) const;
  // World rank that owns it, by the first entry call in which one rank alone published it; -1: not
  // known.
  int32_t Owner(int32_t instance, int32_t rank, int32_t key) const;
  bool Owns(int32_t instance, int32_t rank, int32_t key) const {
    return Owner(instance, rank, key) == rank;
  }
  // The last entry call before this one that published a parameter; -1: none.
  int32_t VersionBefore(int32_t instance, int32_t key, int32_t call) const;
  bool Publishes(int32_t instance, int32_t key, int32_t call) const;
  const Versions& versions() const { return values_; }

 private:
  using Place = std::tuple<int32_t, int32_t, int32_t>;  // instance, key, first rank of the list
  void CollectPublished(const Trace& trace);
  void CollectRank(const Trace& trace);
  void AddCollective(const Trace& trace, int64_t index, RankFacts& of);
  void AddReduction(const Trace& trace, int64_t index, RankFacts& of);
  void AddGather(const Trace& trace, int64_t index, RankFacts& of);
  void AddUpdates(const Trace& trace, int64_t index, RankFacts& of);
  void SetRounds(const Trace& trace, RankFacts& of) const;
  int32_t EpochOf(const RankFacts& of, const Event& event, int64_t index) const;

  const Analysis& a_;
  const Versions values_;
  std::vector<RankFacts> ranks_;
  std::map<Place, std::map<int32_t, std::map<int32_t, int64_t>>>
      published_;                                                      // call -> rank -> elements
  std::map<std::pair<int32_t, int32_t>, std::set<int32_t>> versions_;  // (instance, key) -> calls
};

// Is the kind one that can bring parameters?
bool Brings(uint8_t collective);

// The alignment that an engine's gathers show: the largest power of two, of at most so many
// elements, of which the parts of all members are multiples. REQUIRES: most is a power of two.
int64_t AlignmentShown(const RankFacts& of, int32_t instance, int64_t most);

}  // namespace shardproof::layer_wise
