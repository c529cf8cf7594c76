// compute(): one phase of one node of the model, on the engine's memory.
#include <charconv>
#include <cmath>
#include <memory>

#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/host/host_internal.h"

namespace shardproof {

// What the enqueued body needs; shared so that std::function stays copyable.
struct Host::ComputePlan {
  struct Read {
    int32_t param = -1;
    const std::byte* data = nullptr;
    int32_t dtype = 0;
    int64_t count = 0;
    Recorder::Slot* slot = nullptr;
  };
  struct Written {
    const std::byte* data = nullptr;
    int32_t dtype = 0;
    int64_t count = 0;
  };
  std::shared_ptr<Executor> executor;
  int32_t stream = -1;
  NodeArgs args;
  const Model* model = nullptr;
  ModelRank rank;
  bool bytes = false;
  std::vector<const void*> param;
  std::vector<void*> grad, act, dact;
  std::vector<int64_t> rows;  // by value id; -1 where the node uses none
  std::unique_ptr<std::byte[]> nothing{new std::byte[0]};  // where values without rows lie
  std::vector<Read> reads;
  std::vector<Written> written;
  std::vector<Range> ranges;
  Recorder::Slot* slot = nullptr;

  void Run();
};

void Host::ComputePlan::Run() {
  for (const Read& read : reads) {
    if (read.slot == nullptr) continue;
    executor->Digest(stream, read.data, read.dtype, 0, read.count, &read.slot->digest);
    if (bytes) executor->Values(stream, read.data, read.dtype, read.count, &read.slot->values);
    executor->Done(stream, &read.slot->done);
  }
  args.param = param.data();
  args.grad = grad.data();
  args.act = act.data();
  args.dact = dact.data();
  args.rows = rows.data();
  executor->Compute(stream, *model, args, rank);
  if (slot == nullptr) return;
  for (const Written& out : written)
    executor->Digest(stream, out.data, out.dtype, 0, out.count, &slot->digest);
  executor->Done(stream, &slot->done);
}

namespace {

constexpr const char* kPhaseNames[] = {"FWD", "BWD", "DGRAD", "WGRAD"};
constexpr uint8_t kForwardDone = 1, kDgradDone = 2, kWgradDone = 4;

std::string Title(const spf_compute& compute, const spf_node& node) {
  return std::string(node.name) + " " + kPhaseNames[compute.phase] + " of microbatch " +
         std::to_string(compute.microbatch);
}

const char* TableName(uint8_t table) {
  static constexpr const char* kNames[] = {"param", "grad", "act", "dact"};
  return kNames[table];
}

}  // namespace

bool Host::InProgram(int32_t node, int32_t microbatch) {
  const spf_program& program = ProgramOf(step_ < 0 ? 0 : step_, microbatch);
  auto [at, added] = program_nodes_.try_emplace(&program);
  if (added) {
    for (int32_t i = 0; i < program.n_nodes; ++i) at->second.insert(program.nodes[i].id);
  }
  return at->second.contains(node);
}

void Host::CheckPhase(const spf_compute& compute, const spf_node& node) const {
  const auto at = phases_.find({compute.node, compute.microbatch});
  const uint8_t done = at == phases_.end() ? 0 : at->second;
  const auto title = [&] { return Title(compute, node); };
  if (compute.phase == SPF_FWD) {
    const bool again = (done & kForwardDone) != 0,
               recompute = (compute.flags & SPF_COMPUTE_RECOMPUTE) != 0;
    RefuseUnless(
        !again || recompute,
        title() +
            " ran before in this call: pass SPF_COMPUTE_RECOMPUTE to run it again for backward");
    RefuseUnless(again || !recompute,
                 title() + " is flagged RECOMPUTE, but its forward has not run in this call");
    return;
  }
  RefuseUnless((done & kForwardDone) != 0,
               title() + " before its forward: run FWD first in this call");
  const bool dgrad = compute.phase != SPF_WGRAD, wgrad = compute.phase != SPF_DGRAD;
  RefuseUnless(!(dgrad && (done & kDgradDone)),
               title() + ": its DGRAD ran before in this call: run each half once");
  RefuseUnless(!(wgrad && (done & kWgradDone)),
               title() + ": its WGRAD ran before in this call: run each half once");
}

// Rows of a value in this call: fixed by the tables, or passed by the engine.
int64_t Host::RowsOf(const spf_compute& compute, int32_t id) const {
  const spf_value& value = model_.Tables(config_.model_rank).values[id];
  if ((value.flags & SPF_VALUE_DYNAMIC) == 0) return value.max_rows;
  const auto entry = [&] { return "rows[" + std::to_string(id) + "] (" + value.name + ")"; };
  RefuseUnless(compute.rows != nullptr,
               "table rows is NULL, the node uses " + entry() +
                   ": a dynamic value's number of rows is the sum of the counts it follows");
  const int64_t rows = compute.rows[id];
  RefuseUnless(
      rows >= 0 && rows <= value.max_rows,
      entry() + " is " + std::to_string(rows) + ", allowed 0.." + std::to_string(value.max_rows));
  return rows;
}

Resolved Host::ResolveUse(const spf_compute& compute, const spf_use& use, ComputePlan& plan) const {
  const spf_model& tables = model_.Tables(config_.model_rank);
  const bool of_param = use.table == SPF_IN_PARAM || use.table == SPF_IN_GRAD;
  const char* name = of_param ? tables.params[use.id].name : tables.values[use.id].name;
  const auto what = [&] {
    return std::string(TableName(use.table)) + "[" + std::to_string(use.id) + "] (" + name + ")";
  };
  const spf_addr* const tables_by_kind[] = {compute.param, compute.grad, compute.act, compute.dact};
  const spf_addr* table = tables_by_kind[use.table];
  RefuseUnless(table != nullptr,
               std::string("table ") + TableName(use.table) + " is NULL, the node uses " + what());
  uint64_t elements = 0;
  int32_t dtype = 0;
  if (of_param) {
    const spf_param& param = tables.params[use.id];
    elements = static_cast<uint64_t>(param.numel);
    const int32_t grad_dtype = compute.grad_dtype == 0 ? SPF_F32 : compute.grad_dtype;
    dtype = use.table == SPF_IN_PARAM ? static_cast<int32_t>(param.dtype) : grad_dtype;
  } else {
    const spf_value& value = tables.values[use.id];
    const int64_t rows = RowsOf(compute, use.id);
    if ((value.flags & SPF_VALUE_DYNAMIC) != 0) At(plan.rows, use.id) = rows;
    elements = static_cast<uint64_t>(rows * value.row_elems);
    dtype = static_cast<int32_t>(value.dtype);
  }
  if (elements > 0) {
    const uint64_t bytes = elements * DtypeBytes(dtype);
    const std::optional<Resolved> at = memory_.Find(table[use.id], bytes, use.access);
    const bool right = at.has_value() && table[use.id] % DtypeBytes(dtype) == 0;
    return right ? *at : ResolveElements(table[use.id], elements, dtype, use.access, what());
  }
  Resolved nothing;  // its address is not looked at: mem_alloc answers 0 for no bytes
  nothing.range.access = use.access;
  nothing.host = plan.nothing.get();
  return nothing;
}

void Host::ResolveUses(const spf_compute& compute, const spf_node& node, ComputePlan& plan) {
  const spf_model& tables = model_.Tables(config_.model_rank);
  plan.param.resize(static_cast<size_t>(tables.n_params));
  plan.grad.resize(static_cast<size_t>(tables.n_params));
  plan.act.resize(static_cast<size_t>(tables.n_values));
  plan.dact.resize(static_cast<size_t>(tables.n_values));
  plan.rows.assign(static_cast<size_t>(tables.n_values), -1);
  const spf_uses& uses = node.uses[compute.phase];
  for (int32_t i = 0; i < uses.n; ++i) {
    const spf_use& use = uses.use[i];
    const auto id = static_cast<size_t>(use.id);
    const Resolved at = ResolveUse(compute, use, plan);
    plan.ranges.push_back(at.range);
    if (use.table == SPF_IN_PARAM) {
      plan.param[id] = at.host;
      plan.reads.push_back({use.id, at.host, static_cast<int32_t>(tables.params[id].dtype),
                            tables.params[id].numel, nullptr});
      continue;
    }
    (use.table == SPF_IN_GRAD  ? plan.grad
     : use.table == SPF_IN_ACT ? plan.act
                               : plan.dact)[id] = at.host;
    if (use.table != SPF_IN_GRAD && use.access == SPF_WRITE) {
      const auto dtype = static_cast<int32_t>(tables.values[id].dtype);
      plan.written.push_back(
          {at.host, dtype, at.range.length / static_cast<int64_t>(DtypeBytes(dtype))});
    }
  }
}

namespace {

// A node whose backward makes a gradient out of none: a loss.
bool OriginatesGradient(const spf_node& node) {
  const spf_uses& backward = node.uses[SPF_BWD];
  bool reads = false, writes = false;
  for (int32_t i = 0; i < backward.n; ++i) {
    if (backward.use[i].table != SPF_IN_DACT) continue;
    reads = reads || backward.use[i].access == SPF_READ;
    writes = writes || backward.use[i].access != SPF_READ;
  }
  return writes && !reads;
}

// Reading it gives the same number.
std::string ScaleText(double scale) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, scale).ptr);
}

double PowerOfTwo(const spf_compute& compute) {
  const double scale = compute.scale == 0 ? 1 : compute.scale;
  int exponent = 0;
  RefuseUnless(std::frexp(scale, &exponent) == 0.5 && exponent >= -39 && exponent <= 41,
               "scale " + std::to_string(scale) +
                   " is no power of two in 2^-40..2^40: divide after the sum instead");
  return scale;
}

}  // namespace

// Gradients lie on grids that are relative to the loss scale: what a loss node was given holds for
// the whole backward of the microbatch, so a second loss cannot have another one. The auxiliary
// losses of a router have a scale of their own: a wrong one makes wrong gradients, on the grid.
void Host::SetScales(const spf_compute& compute, const spf_node& node, NodeArgs* args) {
  if (compute.phase != SPF_FWD && OriginatesGradient(node)) {
    const double scale = PowerOfTwo(compute);
    const auto [given, first] =
        loss_scale_.try_emplace(compute.microbatch, GivenScale{scale, node.id});
    RefuseUnless(given->second.scale == scale,
                 Title(compute, node) + ": scale " + std::to_string(scale) + ", but " +
                     model_.Node(given->second.node, config_.model_rank).name + " was given " +
                     std::to_string(given->second.scale) +
                     " in this microbatch: all its losses have one scale");
  }
  const auto given = loss_scale_.find(compute.microbatch);
  args->scale = given == loss_scale_.end() ? config_.loss_scale : given->second.scale;
  if (IsRouter(node) && compute.phase != SPF_FWD) args->aux_scale = PowerOfTwo(compute);
}

bool Host::IsRouter(const spf_node& node) const {
  return std::string_view(model_.Tables(config_.model_rank).modules[node.module].type) == "Router";
}

// The node, if it may be computed now at all.
const spf_node& Host::ComputedNode(const spf_compute& compute) {
  RefuseUnless(inside_call_ && step_ >= 0,
               "compute outside train_step and eval_step: nodes belong to a step");
  RefuseUnless(compute.node >= 0 && compute.node < model_.node_count(config_.model_rank),
               "node " + std::to_string(compute.node) + " is no id of spf_program.nodes");
  RefuseUnless(compute.phase >= SPF_FWD && compute.phase <= SPF_WGRAD,
               "phase " + std::to_string(compute.phase) + " is no spf_phase");
  RefuseUnless(compute.microbatch >= 0 && compute.microbatch < config_.microbatches,
               "microbatch " + std::to_string(compute.microbatch) + " is not in 0.." +
                   std::to_string(config_.microbatches - 1));
  const spf_node& node = model_.Node(compute.node, config_.model_rank);
  RefuseUnless(InProgram(compute.node, compute.microbatch),
               std::string(node.name) + " is not in the program of step " + std::to_string(step_) +
                   ", microbatch " + std::to_string(compute.microbatch) +
                   ": run the nodes of program(step, microbatch)");
  RefuseUnless(node.kind != SPF_NODE_EXCHANGE,
               std::string(node.name) + " is an EXCHANGE node: move its value with communicate");
  RefuseUnless(node.kind != SPF_NODE_ALL_REDUCE,
               std::string(node.name) + " is an ALL_REDUCE node: sum its value with communicate");
  RefuseUnless(node.kind == SPF_NODE_COMPUTE || node.kind == SPF_NODE_INPUT,
               std::string(node.name) + " is " +
                   (node.kind == SPF_NODE_ALL_GATHER      ? "an ALL_GATHER"
                    : node.kind == SPF_NODE_ALL_GATHER_CP ? "an ALL_GATHER_CP"
                                                          : "a REDUCE_SCATTER") +
                   " node: move its value with communicate");
  RefuseUnless(node.uses[compute.phase].n > 0,
               Title(compute, node) + " does nothing: skip phases without uses");
  return node;
}

void Host::CheckSampleAndDtype(const spf_compute& compute, const spf_node& node) const {
  const int64_t samples = static_cast<int64_t>(config_.microbatches) * config_.data_ranks;
  RefuseUnless(node.kind != SPF_NODE_INPUT || (compute.sample >= 0 && compute.sample < samples),
               "sample " + std::to_string(compute.sample) +
                   " is not in the step's global batch 0.." + std::to_string(samples - 1));
  RefuseUnless(
      compute.grad_dtype == 0 || compute.grad_dtype == SPF_F32 || compute.grad_dtype == SPF_BF16,
      "grad_dtype " + DtypeText(compute.grad_dtype) + ": SPF_F32, or the parameter's dtype");
}

void Host::AddComputeRow(const spf_compute& compute, const spf_node& node, ComputePlan& plan) {
  Event& row = Add(EventKind::kCompute);
  row.stream = plan.stream;
  row.id = compute.node;
  row.phase = static_cast<uint8_t>(compute.phase);
  row.microbatch = compute.microbatch;
  row.module = node.module;
  row.flag = (compute.flags & SPF_COMPUTE_RECOMPUTE) != 0;
  const bool scaled = compute.phase != SPF_FWD && (OriginatesGradient(node) || IsRouter(node));
  if (scaled && compute.scale != 0 && compute.scale != 1)
    recorder_.SetText(ScaleText(compute.scale));
  if (node.kind == SPF_NODE_INPUT) row.sample = compute.sample;
  for (const Range& range : plan.ranges) recorder_.AddRange(range);
  for (ComputePlan::Read& read : plan.reads) {
    if (recorder_.digests()) read.slot = recorder_.NewSlot();
    recorder_.AddRead(read.param, read.count, read.slot);
  }
  if (recorder_.digests()) {
    plan.slot = recorder_.NewSlot();
    recorder_.LinkSlot(plan.slot);
  }
}

spf_status Host::Compute(spf_stream stream, const spf_compute& compute) {
  const StreamHandle& on = Stream(stream, "stream");
  const spf_node& node = ComputedNode(compute);
  CheckPhase(compute, node);
  CheckSampleAndDtype(compute, node);

  auto plan = std::make_shared<ComputePlan>();
  ResolveUses(compute, node, *plan);
  plan->executor = config_.executor;
  plan->stream = on.id;
  plan->model = &model_;
  plan->rank = config_.model_rank;
  plan->bytes = recorder_.bytes();
  plan->args.node = compute.node;
  plan->args.phase = compute.phase;
  plan->args.step = step_;
  plan->args.sample = compute.sample;
  SetScales(compute, node, &plan->args);
  plan->args.grad_dtype = compute.grad_dtype == 0 ? SPF_F32 : compute.grad_dtype;

  uint8_t& done = phases_[{compute.node, compute.microbatch}];
  if (compute.phase == SPF_FWD) done |= kForwardDone;
  if (compute.phase == SPF_BWD || compute.phase == SPF_DGRAD) done |= kDgradDone;
  if (compute.phase == SPF_BWD || compute.phase == SPF_WGRAD) done |= kWgradDone;

  AddComputeRow(compute, node, *plan);
  fabric_.Enqueue(on.id, std::string(node.name) + " " + kPhaseNames[compute.phase],
                  [plan] { plan->Run(); });
  return SPF_OK;
}

}  // namespace shardproof
