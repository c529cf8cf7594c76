// collection.h: which communicators does this rank use, and for what?
//
// An explicit process-group collection: groups by name, either handed in by the caller or built
// from a grid. Nothing falls back to global state (NVIDIA/Megatron-LM#3249). What a name must mean
// is verified locally, before any collective.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/abi/spf.hpp"
#include "reference/groups/training_grid.h"

namespace reference {

// A group is missing or is not what its name says: what() has expected and given members.
struct GroupError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A communicator as its member sees it. Absent: handle is NULL.
struct Communicator {
  std::string name;
  spf_group handle = nullptr;
  int32_t rank = 0;
  RankList members;

  int32_t size() const { return static_cast<int32_t>(members.size()); }
  explicit operator bool() const { return handle != nullptr; }
};

// The declared names; any other is an error, a declared one that was not provided is absent.
class GroupCollection {
 public:
  static const std::vector<std::string>& Names();

  // Throws GroupError on an undeclared name, and on one that is there already (PG-17).
  void Set(Communicator communicator);
  // Absent if not provided; throws if undeclared.
  const Communicator& Get(const std::string& name) const;
  const Communicator& Require(const std::string& name) const;  // throws GroupError if absent

 private:
  std::map<std::string, Communicator> groups_;
};

// What one kind of parameter (dense, or expert) communicates over.
struct DataParallelGroups {
  Communicator reduce;  // shards and reduces gradients: the inner group under HSDP
  Communicator gather;  // gathers parameters: the kind's twin if there is one, else as reduce
  Communicator part;    // dense, reshard_after_forward > 1: gathers them again for backward
  Communicator outer;   // HSDP: reduces the shards, and with outer_strategy optim gathers them
  int32_t total = 1;    // data-parallel size with outer ranks, all of dp_cp or expt_dp
};

// What an engine needs to know before it picks.
struct GroupDemand {
  bool experts = false;
  bool dense_twins = false, expert_twins = false;
  int32_t optimizer_instances = 1;
  int32_t reshard_after_forward = 1;
  bool pipeline = false;
  bool split_params = false;   // over tensor-parallel ranks
  bool split_samples = false;  // over context-parallel ranks
};

struct EngineGroups {
  Communicator dp_cp;  // which samples are ours
  DataParallelGroups dense;
  std::optional<DataParallelGroups> expert;  // set where the model has expert parameters
  Communicator ep;                           // with experts: ranks that hold different experts
  Communicator pp;                           // in a pipeline: ranks that hold different stages
  // With split parameters: ranks that hold the other shards, of dense ones and of experts.
  Communicator tp, expert_tp;
  Communicator cp;  // with split samples: ranks that have the other parts of the sequence
  // Groups whose product is every rank of this engine: one of all, or one per axis.
  std::vector<Communicator> all;
};

// How a rank sees a group that it was given. Absent if the group is NULL.
Communicator Describe(const spf::Host& host, const std::string& name, spf_group group);

// Picks and verifies: twins have the very members, in the very order, of the group that reduces the
// same buffer; inner and outer groups split the full one, and dp_cp_reshard splits the inner one.
// Throws GroupError.
EngineGroups PickGroups(const GroupCollection& collection, const GroupDemand& demand);

// The collection that the caller provides by name. Asks only for what the demand needs: twins are
// opt-in.
GroupCollection AskForGroups(spf::Host& host, const GroupDemand& demand);

// Builds the collection from a grid. Collective over "world": every rank makes the same calls in
// the same order, and ranks outside the grid join none. Groups made are appended to created; they
// are to be destroyed in that order.
GroupCollection CreateGroups(spf::Host& host, const std::vector<GroupFamily>& families,
                             std::vector<spf_group>& created);

std::string Listed(const RankList& ranks);

}  // namespace reference
