#include "reference/plan/one_f_one_b.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "reference/core/at.h"
#include "reference/plan/gather_chain.h"
#include "reference/plan/microbatch_pass.h"

namespace reference {
namespace {

// A microbatch between its forward and its backward.
struct InFlight : MicrobatchPass {
  using MicrobatchPass::MicrobatchPass;
  size_t next = 0;                                   // place in order
  std::vector<bool> handed_over = in_other_chunks;   // by bucket group
  std::set<int32_t> entered, registered, returning;  // for marks: modules, units, units
  int32_t reached[2] = {0, 0};                       // the furthest place of needs
};

class OneFOneB {
 public:
  explicit OneFOneB(PlanWriter& write)
      : write_(write),
        facts_(write.facts),
        units_(OrderUnits(facts_)),
        backward_to_come_(facts_.buckets.unit_modules.size()),
        between_(facts_.buckets.unit_modules.size()),
        chain_(write, facts_.config.LayerWise() && facts_.stale),
        complete_(facts_.groups.size()) {
    for (int32_t g = 0; g < Length(complete_); ++g)
      At(complete_, g) = !At(facts_.groups, g).trainable;
  }

  // What a rank's program leaves out is needed by others' collectives.
  void Publish() { chain_.PublishAll(); }

  // Never more than two microbatches at once.
  void WithoutPipeline() {
    Start(units_.forward);
    const int32_t microbatches = facts_.config.microbatches;
    for (const auto& [f, b] : StepsWithoutPipelining(microbatches)) {
      if (b && *b > 0) Close({*b - 1, 0});
      if (f) Open({*f, 0}, false);
      CombinedStep(f ? &InFlightOf({*f, 0}) : nullptr, b ? &InFlightOf({*b, 0}) : nullptr);
    }
    Close({microbatches - 1, 0});
  }

  void Interleaved(bool eval) {
    const PipelineShape shape{facts_.pipeline_ranks, facts_.pipeline_rank, facts_.config.chunks,
                              facts_.config.microbatches, facts_.config.overlap_moe};
    std::vector<PipelineStep> steps;
    if (!eval) steps = PipelineSteps(shape);
    for (const ChunkPass& pass : eval ? ForwardPasses(shape) : std::vector<ChunkPass>{})
      steps.push_back({pass, std::nullopt});
    const auto transfer_after = [&](int32_t s) {  // what arrives has a place
      if (s + 1 < Length(steps) && At(steps, s + 1).forward) Open(*At(steps, s + 1).forward, eval);
      Step& transfer = write_.Add(Do::kTransfer);
      for (const Message& m : MessagesAfter(shape, steps, s))
        transfer.messages.push_back({m, InFlightOf(m.pass).Crossing(facts_, m.backward, m.send)});
    };
    transfer_after(-1);
    Start(InFlightOf(*steps.front().forward).needs[false]);  // other chunks come later
    for (int32_t s = 0; s < Length(steps); ++s) {
      const auto& [f, b] = At(steps, s);
      InFlight* forward = f ? &InFlightOf(*f) : nullptr;
      write_.Add(Do::kArrive);
      if (f && b && !shape.overlap) CombinedStep(std::exchange(forward, nullptr), nullptr);
      CombinedStep(forward, b ? &InFlightOf(*b) : nullptr, [&] { transfer_after(s); });
      if (b) Close(*b);
      if (f && eval) Close(*f);
    }
  }

 private:
  void Start(const GatherOrder& order) {  // H11
    if (!facts_.config.LayerWise()) write_.gathering.Start(order);
  }
  InFlight& InFlightOf(ChunkPass id) { return in_flight_.at({id.microbatch, id.chunk}); }
  void Open(ChunkPass id, bool eval) {
    write_.Open(id, true);
    in_flight_.try_emplace({id.microbatch, id.chunk}, facts_, id, eval);
  }
  void Close(ChunkPass id) {
    write_.Add(Do::kClose, id);
    in_flight_.erase({id.microbatch, id.chunk});
  }

  // NULL: the step has no such side. transfer: in a pipeline, where values are sent on.
  void CombinedStep(InFlight* forward, InFlight* backward,
                    const std::function<void()>& transfer = nullptr) {
    StepShape shape{std::nullopt, std::nullopt, facts_.config.delay_wgrad,
                    facts_.config.early_attn_release, transfer != nullptr};
    if (forward != nullptr) shape.forward_layers = forward->layers();
    if (backward != nullptr) shape.backward_layers = backward->layers();
    for (const ScheduleNode& node : CombinedStepOrder(shape)) {
      if (node.action == Action::kTransfer) {
        transfer();
      } else {
        Issue(node.side == Side::kForward ? *forward : *backward, node);
      }
    }
  }

  void Issue(InFlight& m, const ScheduleNode& node) {
    if (m.next == m.order.size() || m.order[m.next].planned.node != node)
      throw std::logic_error("microbatch " + std::to_string(m.id.microbatch) + " is not at " +
                             Name(node));
    const MicrobatchPass::PassNode& planned = m.order[m.next++];
    switch (node.action) {
      case Action::kRootPreBackward:
        return RootPreBackward(m);
      case Action::kRootPostBackward:
        return RootPostBackward(m);
      case Action::kJoinStart:
        if (node.side == Side::kForward && m.id.chunk == 0) Mark(m, SPF_HOOK_FORWARD, 0);  // H0
        write_.Add(Do::kChainRecord, m.id);
        return;
      case Action::kJoinEnd:
        write_.Add(Do::kChainWait, m.id);
        return;
      default:
        RunNode(m, planned);
        AfterNode(m, planned);
    }
  }

  // Waits for the node before, and lets the next one wait for it. Without overlap there is nothing
  // to hide behind.
  void RunNode(InFlight& m, const MicrobatchPass::PassNode& node) {
    const PlannedNode& planned = node.planned;
    if (planned.operations.empty()) return;
    const bool on_a2a = planned.on_a2a() && facts_.config.overlap_moe;
    if (planned.chained()) write_.Add(Do::kChainWait, m.id, on_a2a);
    for (size_t i = 0; i < planned.operations.size(); ++i) {
      const Operation& operation = planned.operations[i];
      Acquire(m, operation, planned.backward());
      planned.backward() ? EnterBackward(m, operation) : EnterForward(m, operation);
      write_.Run(m, node.begin + i, on_a2a).schedule_node = NodeName(planned.node);
    }
    if (planned.chained()) write_.Add(Do::kChainRecord, m.id, on_a2a);
  }

  // Behind what comes again (the final norm's bucket group) stands what was read before: it is
  // gathered ahead only if backward reads it, too.
  void Acquire(InFlight& m, const Operation& operation, bool backward) {
    if (facts_.config.LayerWise()) return chain_.Need(operation);
    const GatherOrder& order = m.needs[backward];
    int32_t& reached = m.reached[backward];
    std::vector<int32_t> groups = GroupsOf(facts_, operation, SPF_IN_PARAM);
    // A unit that comes as a whole comes when it is entered, be it by an exchange.
    const int32_t unit = facts_.UnitOf(operation);
    if (!facts_.config.GathersByModule() && unit != kNoUnit) {
      const std::vector<int32_t> whole =
          backward ? GroupsNeededInBackward(facts_, unit) : At(facts_.buckets.unit_groups, unit);
      groups.insert(groups.end(), whole.begin(), whole.end());
    }
    for (int32_t g : groups) {
      const int32_t place = PlaceWith(order, g);
      if (place == Length(order)) continue;
      if (facts_.config.backward_copies && place < reached) {
        write_.gathering.Need(operation);
      } else {
        write_.gathering.Acquire(order, place);
      }
      reached = std::max(reached, place);
    }
  }

  void EnterForward(InFlight& m, const Operation& operation) {
    if (facts_.config.LayerWise()) return;  // there are no units whose parameters come
    const int32_t place = At(units_.place_of, operation.node->module);
    if (place < 0) return;
    const Place& here = At(units_.forward, place);
    if (!m.entered.insert(here.module).second) return;
    Mark(m, SPF_HOOK_PRE_FORWARD, here.module);  // H1
    if (!m.eval && here.unit != kNoUnit && m.registered.insert(here.unit).second)
      Mark(m, SPF_HOOK_REGISTER_BACKWARD, here.module);  // H2
  }

  void EnterBackward(InFlight& m, const Operation& operation) {
    const int32_t unit = facts_.UnitOf(operation);
    if (unit != kNoUnit && m.returning.insert(unit).second)
      Mark(m, SPF_HOOK_PRE_BACKWARD, facts_.ModuleOf(unit));  // H5
    write_.reducing.Begin(GroupsOf(facts_, operation, SPF_IN_GRAD));
  }

  void AfterNode(InFlight& m, const MicrobatchPass::PassNode& done) {
    for (int32_t g : done.complete) HandOver(m, g);
    for (int32_t unit : done.left) Release(m, unit, done.planned.backward());
    const ScheduleNode& node = done.planned.node;
    if (node.layer < 0) return;
    const LayerNodes& layer = At(m.nodes.layers, node.layer);
    const int32_t unit = facts_.UnitOf(layer.module);
    const bool delayed = facts_.config.delay_wgrad;
    const LayerNode last = layer.moe ? LayerNode::kCombine : LayerNode::kMlp;
    const bool forward_ends = node.action == Action::kForward && node.layer_node == last;
    const bool backward_ends =
        node.action == (delayed ? Action::kWeightGrads : Action::kBackward) &&
        node.layer_node == LayerNode::kPreDispatch;
    if (unit != kNoUnit && (forward_ends || backward_ends)) Release(m, unit, backward_ends);
  }

  void Release(InFlight& m, int32_t unit, bool after_backward) {
    const int32_t module = facts_.ModuleOf(unit);
    const bool backward_comes = !m.eval && At(facts_.buckets.unit_in_backward, unit);
    At(between_, unit) += after_backward ? -1 : backward_comes;
    if (after_backward) {
      if (m.returning.erase(unit) > 0) Mark(m, SPF_HOOK_POST_BACKWARD, module);  // H6
      At(backward_to_come_, unit) = false;
    } else {
      Mark(m, SPF_HOOK_POST_FORWARD, module);  // H3
      m.entered.erase(module);
    }
    const bool stays = facts_.config.reshard_after_forward == 0 && At(between_, unit) > 0;
    if (stays) return;
    // A whole unit goes when the forward of another microbatch that is in it has ended, too.
    const bool beside = !facts_.config.GathersByModule() && IsEntered(module);
    const auto after = !after_backward ? Gathering::Pass::kForward
                       : beside        ? Gathering::Pass::kBackwardBeside
                                       : Gathering::Pass::kBackward;
    if (At(backward_to_come_, unit)) {
      write_.gathering.ReleaseLazily(unit, after);
    } else {
      write_.gathering.Release(unit, after);
    }
  }

  bool IsEntered(int32_t module) const {
    return std::ranges::any_of(
        in_flight_, [&](const auto& other) { return other.second.entered.contains(module); });
  }

  void HandOver(InFlight& m, int32_t group) {
    At(m.handed_over, group) = true;
    const int32_t unit = At(facts_.buckets.groups, group).unit;
    const auto done = [&](int32_t g) { return At(m.handed_over, g); };
    if (unit != kNoUnit && std::ranges::all_of(At(facts_.buckets.unit_groups, unit), done))
      Mark(m, SPF_HOOK_ACCUMULATE, facts_.ModuleOf(unit));  // H7
    // Backward goes through the chunks from the last to the first: only the first is the end.
    const bool last = !At(m.in_earlier_chunks, group);
    HandOver(group, last && facts_.IsLast(m.id.microbatch));
  }

  // Whole parameters are dealt in buckets that know no units: they are reduced in their order,
  // which is that of the other ranks, whatever a rank's program completes first.
  void HandOver(int32_t group, bool last) {
    if (!facts_.config.LayerWise() || !last) return write_.reducing.HandOver({group}, last);
    At(complete_, group) = true;
    for (; reduced_ < Length(complete_) && At(complete_, reduced_); ++reduced_)
      write_.reducing.HandOver({reduced_}, true);
  }

  // In a pipeline a microbatch comes by once per chunk: forward from the first on, backward from
  // the last on. Root hooks are announced for the first and last time.
  void RootPreBackward(const InFlight& m) {  // H4
    if (m.id.chunk == facts_.config.chunks - 1) Mark(m, SPF_HOOK_ROOT_PRE_BACKWARD, 0);
    std::fill(backward_to_come_.begin(), backward_to_come_.end(), true);
    if (facts_.config.LayerWise()) return chain_.PublishAll();  // see layer_wise.h
    write_.gathering.Prefetch(m.needs[true]);
  }

  // What nobody added to comes in the order of bucket groups, the same on all ranks.
  void RootPostBackward(InFlight& m) {  // H8
    if (m.id.chunk == 0) Mark(m, SPF_HOOK_ROOT_POST_BACKWARD, 0);
    for (int32_t g = 0; g < Length(facts_.groups) && m.id.chunk == 0; ++g) {
      if (At(m.handed_over, g) || At(facts_.buckets.groups, g).for_backward) continue;
      write_.reducing.Begin({g});
      HandOver(m, g);
    }
    std::fill(backward_to_come_.begin(), backward_to_come_.end(), false);
  }

  void Mark(const InFlight& m, spf_hook hook, int32_t module) {
    write_.Mark(hook, module, m.id.microbatch);
  }

  PlanWriter& write_;
  const PlanFacts& facts_;
  const UnitOrder units_;
  std::map<std::pair<int32_t, int32_t>, InFlight> in_flight_;
  std::vector<bool> backward_to_come_;  // by unit: in the combined step that is being planned
  std::vector<int32_t> between_;        // by unit: microbatches between its forward and backward
  // Layer-wise.
  GatherChain chain_;
  std::vector<bool> complete_;  // by bucket: the step's last gradient was added, or none will be
  int32_t reduced_ = 0;         // buckets
};

}  // namespace

void PlanOneFOneBTraining(PlanWriter& write) {
  write.BeginStep();
  OneFOneB schedule(write);
  if (write.facts.pipeline_ranks > 1) {
    schedule.Interleaved(false);
  } else {
    schedule.WithoutPipeline();
  }
  write.EndStep();
}

void PlanPipelineEval(PlanWriter& write) {
  write.Mark(SPF_HOOK_START_PARAM_SYNC, 0, 0);
  OneFOneB schedule(write);
  schedule.Interleaved(true);
  schedule.Publish();
  write.gathering.ReleaseAll();
}

}  // namespace reference
