#include "conformance/cases/space.h"

#include <array>
#include <iterator>

#include "conformance/cases/bounds.h"

namespace shardproof {
namespace {

// Where in the world the instance lives. Values: all of it, from rank 1, 2 or 4 on, the first half.
const char* const kPlaces[] = {"whole", "from1", "from2", "from4", "half"};

void SetPlace(Case& c, size_t value) {
  const int32_t offsets[] = {0, 1, 2, 4, 0};
  InstanceSpec& spec = c.instances.front();
  spec.offset = offsets[value];
  spec.span = value == 4 ? c.world / 2 : c.world - spec.offset;
}

// Divisibility, cheaply, before anything is built.
bool Divides(const Case& c) {
  const InstanceSpec& spec = c.instances.front();
  if (spec.span < 1 || (spec.span == c.world / 2 && spec.offset == 0 && c.world % 2 != 0))
    return false;
  if (spec.tensor_parallel && spec.tp == 1) return false;  // nothing to split over
  if (spec.sequence_parallel && (!spec.tensor_parallel || spec.model.experts)) return false;
  if (spec.vocab_parallel && (!spec.tensor_parallel || spec.loss_chunks > 1)) return false;
  if (spec.context_parallel && (spec.cp == 1 || spec.model.experts)) return false;
  if (spec.span % (spec.tp * spec.cp * spec.pp) != 0 ||
      spec.span % (spec.tp * spec.ep * spec.pp) != 0)
    return false;
  return DpCpSize(spec) % spec.outer == 0 && DpCpSize(spec) / spec.ep % spec.outer == 0;
}

// The value of reshard_after_forward is legal and means something: there are shards to go back to,
// over more ranks.
bool Reshards(const InstanceSpec& spec, uint8_t strategy, uint8_t reshard) {
  const int32_t ranks = DpCpSize(spec) / spec.outer;
  if (reshard == 0) return true;
  return strategy == 3 && (reshard == 1 ? ranks > 1 : ranks > 2 && ranks % 2 == 0);
}

// Double buffers mean something, and what they are for is given back after forward.
bool DoubleBuffers(uint8_t strategy, uint8_t reshard, uint8_t double_buffer) {
  return double_buffer == 0 || (strategy >= 2 && reshard != 1);
}

// Backward may read copies of its own: parameters are gathered for it, from shards.
bool BackwardCopies(uint8_t strategy, uint8_t reshard) { return strategy == 3 && reshard == 0; }

// Exact whatever the dtypes and the model are, with tokens enough for the chunks of the loss.
bool Exact(InstanceSpec hardest) {
  hardest.model.tied = true;
  hardest.grad_comm_dtype = KnobDtype::kBf16;
  return LongestSequence(hardest) > 0;
}

// Legal with one token. Tuples of one grid follow each other, so that it is derived once.
class Legal {
 public:
  bool operator()(Case c) {
    InstanceSpec& spec = c.instances.front();
    spec.loss_chunks = 1;
    if (c.world != world_ || spec != last_) legal_ = LegalForOneToken(c);
    world_ = c.world;
    last_ = spec;
    return legal_;
  }

 private:
  int32_t world_ = 0;
  InstanceSpec last_;
  bool legal_ = false;
};

// What ranks of a grid hold, and how many samples they have.
std::vector<std::string> GridKnobs() {
  return {"tp",
          "cp",
          "pp",
          "ep",
          "experts",
          "order",
          "num_optimizer_instances",
          "microbatches",
          "tensor_parallel",
          "sequence_parallel",
          "vocab_parallel",
          "context_parallel",
          "loss_chunks"};
}

}  // namespace

CaseSpace::CaseSpace(const std::vector<int32_t>& worlds) : FactorSpace(Space::kDense) {
  AddWorld(worlds);
  AddSetter("place", {std::begin(kPlaces), std::end(kPlaces)}, SetPlace);
  AddKnobs(GridKnobs());
  AddKnobs({"strategy", "outer_strategy", "groups", "create_all_gather_group",
            "reshard_after_forward", "fsdp_double_buffer", "backward_param_copies"});
  AddOtherKnobs();
  RelateGrid();
  Relate({"create_all_gather_group", "schedule"}, CommScheduleGoes);
  Relate({"average_in_collective", "calculate_per_token_loss"}, [](const Case& c) {
    const InstanceSpec& spec = c.instances.front();
    return !spec.average_in_collective || !spec.per_token_loss;
  });
}

void CaseSpace::RelateGrid() {
  std::vector<std::string> grid = GridKnobs();
  grid.insert(grid.begin(), {"world", "place"});
  std::vector<std::string> factors = grid;
  factors.insert(factors.end(), {"strategy", "outer_strategy", "reshard_after_forward",
                                 "fsdp_double_buffer", "backward_param_copies"});
  TupleList tuples;
  Legal legal;
  const auto add = [&](const std::vector<uint8_t>& tuple, const Case& c) {
    const InstanceSpec& spec = c.instances.front();
    if (!Divides(c) || !Exact(spec) || !legal(c)) return;
    for (uint8_t strategy = 0; strategy < 4; ++strategy) {
      for (uint8_t outer_strategy = 0; outer_strategy < 2; ++outer_strategy) {
        if (outer_strategy == 1 && (strategy != 3 || spec.outer == 1)) continue;
        for (uint8_t reshard = 0; reshard < 3; ++reshard) {
          if (!Reshards(spec, strategy, reshard)) continue;
          for (uint8_t buffers = 0; buffers < 2; ++buffers) {
            if (!DoubleBuffers(strategy, reshard, buffers)) continue;
            const bool copies = BackwardCopies(strategy, reshard);
            for (uint8_t copy = 0; copy < (copies ? 2 : 1); ++copy) {
              tuples.Add(tuple, std::array{strategy, outer_strategy, reshard, buffers, copy});
            }
          }
        }
      }
    }
  };
  // A place follows the world.
  ForEachTuple(grid, add,
               [](const Case& c) { return c.instances.front().span == 0 || Divides(c); });
  AddRelation(factors, std::move(tuples));
}

Case CaseSpace::Make(const CoveringRow& row, uint64_t seed) const {
  Case c;
  c.seed = seed;
  SetAll(c, row);
  InstanceSpec& spec = c.instances.front();
  spec.etp = EtpOf(spec);
  spec.model.sequence = LongestSequence(spec);
  Derive(c);
  return c;
}

}  // namespace shardproof
