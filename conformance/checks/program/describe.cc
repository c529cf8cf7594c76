#include "conformance/checks/program/describe.h"

#include "conformance/abi/shardproof.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

const char* CollectiveWord(uint8_t kind) {
  switch (kind) {
    case SPF_ALL_GATHER:
      return "all_gather";
    case SPF_ALL_GATHER_V:
      return "all_gather_v";
    case SPF_REDUCE_SCATTER:
      return "reduce_scatter";
    case SPF_ALL_REDUCE:
      return "all_reduce";
    case SPF_BROADCAST:
      return "broadcast";
    case SPF_ALL_TO_ALL_V:
      return "all_to_all_v";
    case SPF_SEND:
      return "send";
    case SPF_RECV:
      return "recv";
    case kReduce:
      return "reduce";
    case kBarrier:
      return "barrier";
    case kGather:
      return "gather";
    case kScatter:
      return "scatter";
    default:
      return "unknown collective";
  }
}

const char* PurposeWord(int32_t purpose) {
  static constexpr const char* kWords[] = {"",
                                           "parameter shard",
                                           "full parameters",
                                           "gradients",
                                           "gradient shard",
                                           "main parameters",
                                           "optimizer state",
                                           "activations",
                                           "activation gradients",
                                           "scratch",
                                           "norm",
                                           "outer gradients",
                                           "expert tokens",
                                           "expert counts",
                                           "pipeline",
                                           "checkpoint"};
  return purpose > 0 && purpose < static_cast<int32_t>(std::size(kWords)) ? kWords[purpose] : "";
}

const char* KernelWord(int32_t kernel) {
  static constexpr const char* kWords[] = {
      " CUSTOM",          " FILL",       " DISCARD",    " AXPBY", " SUM_SQUARES",
      " COUNT_NONFINITE", " COUNT_ZERO", " NORM_SCALE", " ADAMW", " GEMM"};
  return kernel >= 0 && kernel < static_cast<int32_t>(std::size(kWords)) ? kWords[kernel] : "";
}

const char* PhaseWord(uint8_t phase) {
  static constexpr const char* kWords[] = {"FWD", "BWD", "DGRAD", "WGRAD"};
  return phase < std::size(kWords) ? kWords[phase] : "";
}

std::string Module(const Trace& trace, const Event& event, const Names& names) {
  const std::string name = names.module ? names.module(trace.rank, event) : std::string();
  return name.empty() ? "module " + std::to_string(event.module) : name;
}

std::string Node(const Trace& trace, const Event& event, const Names& names) {
  const std::string name = names.node ? names.node(trace.rank, event) : std::string();
  return name.empty() ? "node " + std::to_string(event.id) : name;
}

std::string Label(const Trace& trace, const Event& event, const Names& names) {
  std::string text;
  const std::string purpose = PurposeWord(event.purpose);
  if (!purpose.empty()) text += " of " + purpose;
  if (event.module >= 0) text += ", " + Module(trace, event, names);
  if (event.microbatch >= 0) text += ", microbatch " + std::to_string(event.microbatch);
  return text;
}

std::string OnStream(const Trace& trace, const Event& event) {
  return event.stream < 0 ? std::string() : " (" + StreamName(trace, event.stream) + ")";
}

std::string GroupName(const Trace& trace, int32_t group) {
  if (group < 0 || static_cast<size_t>(group) >= trace.groups.size()) return "no group";
  return At(trace.groups, group).name;
}

// Calls of the host: synchronisation, groups, hand-overs.
std::string HostBody(const Trace& trace, const Event& event) {
  const std::string block = "block " + std::to_string(event.alloc);
  switch (event.kind) {
    case EventKind::kEventSync:
      return "host sync of event " + std::to_string(event.event);
    case EventKind::kStreamSync:
      return "host sync of its stream";
    case EventKind::kDeviceSync:
      return "host sync of the device";
    case EventKind::kHostAccess:
      return "host access";
    case EventKind::kRequestWait:
      return "host wait for request " + std::to_string(event.id);
    case EventKind::kGroupEnd:
      return "group operation";
    case EventKind::kGroupCreate:
      return "creation of group \"" + std::string(trace.Text(event.text)) + "\" under " +
             GroupName(trace, event.parent);
    case EventKind::kGroupDestroy:
      return "destruction of group " + GroupName(trace, event.group);
    case EventKind::kGroupRegister:
      return "registration of " + block + " with group " + GroupName(trace, event.group);
    case EventKind::kGroupDeregister:
      return "deregistration of " + block + " from group " + GroupName(trace, event.group);
    case EventKind::kThreadPost:
      return "hand-over " + std::to_string(event.id) + " (post)";
    case EventKind::kThreadAwait:
      return "hand-over " + std::to_string(event.id) + " (await)";
    default:
      return "event";
  }
}

// The line of the program, if the trace tells it.
std::string AtPlace(const Trace& trace, const Event& event) {
  return event.place < 0 ? "" : " at " + std::string(trace.Text(event.place));
}

std::string Body(const Trace& trace, const Event& event, const Names& names) {
  switch (event.kind) {
    case EventKind::kCollective:
      return CollectiveWord(event.collective) + Label(trace, event, names) + " on " +
             GroupName(trace, event.group);
    case EventKind::kCompute:
      return "compute " + Node(trace, event, names) + " " + PhaseWord(event.phase) +
             ", microbatch " + std::to_string(event.microbatch);
    case EventKind::kLaunch:
      return std::string("kernel") + KernelWord(event.id) + Label(trace, event, names);
    case EventKind::kCopy:
      return "copy";
    case EventKind::kInit:
      return "init of parameter " + std::to_string(event.id);
    case EventKind::kPublish:
      return "publish of result " + std::to_string(event.id);
    case EventKind::kAlloc:
      return "allocation of block " + std::to_string(event.alloc) + Label(trace, event, names);
    case EventKind::kFree:
      return "free of block " + std::to_string(event.alloc);
    case EventKind::kRelease:
      return "release of block " + std::to_string(event.alloc);
    case EventKind::kRecord:
      return "record of event " + std::to_string(event.event);
    case EventKind::kWait:
      return "wait for event " + std::to_string(event.event);
    default:
      return HostBody(trace, event);
  }
}

}  // namespace

std::string StreamName(const Trace& trace, int32_t stream) {
  if (stream < 0) return "host";
  const auto index = static_cast<size_t>(stream);
  if (index < trace.streams.size() && !trace.streams[index].empty())
    return "stream " + trace.streams[index];
  return "stream " + std::to_string(stream);
}

std::string Describe(const Trace& trace, const Event& event, const Names& names) {
  return Body(trace, event, names) + OnStream(trace, event) + AtPlace(trace, event);
}

std::string DescribeOperation(const Program& program, uint32_t operation) {
  const Sequence& sequence = program.SequenceOf(operation);
  const uint32_t position = operation - sequence.first_operation;
  const std::vector<uint32_t> parts = program.PartsOf(operation);
  const Part& part = program.parts[parts[0]];
  std::string text = Body(program.trace(part.rank), program.event(part), program.names);
  if (sequence.kind == Sequence::Kind::kMessages) {
    text = "message of rank " + std::to_string(sequence.ranks[0]) + " to rank " +
           std::to_string(sequence.ranks[1]) + " on " +
           At(program.communicators, sequence.communicator).name;
  }
  return text + " (#" + std::to_string(position) + ")";
}

std::string Describe(const Program& program, const Entry& entry) {
  if (!entry.joint())
    return Describe(program.trace(entry.rank), program.event(entry), program.names);
  std::string text =
      DescribeOperation(program, program.operation(program.parts[entry.parts.begin]));
  if (entry.parts.size() > 1) text += " in a group of " + std::to_string(entry.parts.size());
  const Trace& trace = program.trace(entry.rank);
  if (entry.stream >= 0) text += " (" + StreamName(trace, entry.stream) + ")";
  return text + AtPlace(trace, program.event(program.parts[entry.parts.begin]));
}

std::string DescribeRanks(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == 8 && ranks.size() > 9)
      return text + " and " + std::to_string(ranks.size() - i) + " more";
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace shardproof::graph
