#include "conformance/checks/schedule/tokens.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "conformance/common/at.h"

namespace shardproof::schedule {

const Token* Step::Find(const Key& key) const {
  const auto at = std::find_if(tokens.begin(), tokens.end(),
                               [&](const Token& token) { return token.key == key; });
  return at == tokens.end() ? nullptr : &*at;
}

const Token* Step::At(int64_t event) const {
  const auto at = token_of.find(event);
  return at == token_of.end() ? nullptr : &tokens[at->second];
}

Facts::Facts(const Analysis& a) : a_(a), exchanges_(FindExchanges(a)) {
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    const Trace& trace = a.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kCallBegin || event.call < 0) continue;
      const InstanceFacts& facts = a.Facts(event.instance);
      if (!facts.InGrid(rank) || size_t(event.call) >= facts.calls().size()) continue;
      // After an early end destroy has the number of a call that never came.
      const char letter = facts.CallAt(event.call).letter;
      const std::string_view name = trace.Text(event.text);
      if ((letter == 't' && name == "train_step") || (letter == 'e' && name == "eval_step"))
        steps_.push_back(Collect(rank, static_cast<int64_t>(i)));
    }
  }
  FindUnknown();
}

namespace {

// It sends parameters or gradients: no exchange of the model.
bool MovesWeights(const Analysis& a, const Exchange& exchange) {
  const Trace& trace = a.trace(exchange.rank);
  const Event& event = At(trace.events, exchange.event);
  const Range* send = SendRange(trace, event);
  if (!a.has_flow() || send == nullptr) return false;
  const EventFlow& flow = a.flow().At(exchange.rank, exchange.event);
  if (!flow.ran) return false;
  const std::vector<Chunk>& chunks = flow.before[RangeIndex(trace, event, send)];
  return std::any_of(chunks.begin(), chunks.end(), [](const Chunk& chunk) {
    return chunk.content.kind == Content::Kind::kParam ||
           chunk.content.kind == Content::Kind::kGrad;
  });
}

}  // namespace

// Of those among the members of "ep" in a step.
void Facts::FindUnknown() {
  std::set<std::tuple<int32_t, int32_t, int32_t>> in_steps;  // (rank, instance, call)
  for (const Step& step : steps_) in_steps.insert({step.rank, step.instance, step.call});
  std::set<std::pair<std::string, int64_t>> others;
  for (const auto& of_rank : exchanges_) {
    for (const Exchange& exchange : of_rank) {
      if (exchange.node < 0 && MovesWeights(a_, exchange))
        others.insert({exchange.comm, exchange.position});
    }
  }
  for (const auto& of_rank : exchanges_) {
    for (const Exchange& exchange : of_rank) {
      const bool in_step = in_steps.count({exchange.rank, exchange.instance, exchange.call}) != 0;
      if (exchange.node >= 0 || !in_step || others.count({exchange.comm, exchange.position}) != 0)
        continue;
      const Trace& trace = a_.trace(exchange.rank);
      const auto& members = At(trace.groups, At(trace.events, exchange.event).group).world_ranks;
      const std::vector<int32_t>* ep =
          a_.Facts(size_t(exchange.instance)).List("ep", exchange.rank);
      if (ep == nullptr || ep->size() < 2) continue;
      if (!std::is_permutation(members.begin(), members.end(), ep->begin(), ep->end())) continue;
      unknown_ = "rank " + std::to_string(exchange.rank) + "'s " + Text(a_, exchange) + " (event " +
                 std::to_string(exchange.event) +
                 ") moves bytes that were not written as one value of the model";
      return;
    }
  }
}

const spf_program& Facts::Program(int32_t rank, int32_t instance, int32_t call,
                                  int32_t microbatch) const {
  const InstanceFacts& facts = a_.Facts(size_t(instance));
  const int64_t sample = int64_t{microbatch} * DpCpSize(facts.spec()) + facts.DataRank(rank);
  return facts.model().Program(std::max<int64_t>(0, facts.CallAt(call).step), sample,
                               facts.Place(rank));
}

const spf_model& Facts::Tables(int32_t rank, int32_t instance) const {
  const InstanceFacts& facts = a_.Facts(size_t(instance));
  return facts.model().Tables(facts.Place(rank));
}

namespace {

// Appends an event to the token that it continues, or opens a new one.
class Builder {
 public:
  Builder(Step& step, bool delay, std::function<int32_t(int32_t, int32_t)> pass_of)
      : step_(step), delay_(delay), pass_of_(std::move(pass_of)) {}

  void Compute(int64_t index, const Event& event) {
    const int32_t pass = pass_of_(event.id, event.microbatch);
    const Place* place = PlaceOf(event.id, pass);
    if (place == nullptr || At(step_.nodes, pass)->InLossChunk(event.id)) return;  // FS-46 judges
    const ScheduleNode schedule_node =
        !step_.combined && place->node == ScheduleNode::kLoss ? ScheduleNode::kPost : place->node;
    Side side = event.phase == SPF_FWD ? Side::kForward : Side::kBackward;
    const bool may_delay =
        place->node == ScheduleNode::kPreDispatch || place->node == ScheduleNode::kMlp;
    if (event.phase == SPF_WGRAD && may_delay) {
      const Nodes& nodes = *At(step_.nodes, pass);
      // What is not put off belongs to the token at hand, whichever that is.
      const bool stays = !delay_ || !nodes.Deferrable(event.id);
      const Key back{place->node, Side::kBackward, place->layer, pass};
      const Key weights{place->node, Side::kWeights, place->layer, pass};
      const bool open = !step_.tokens.empty() && (Last() == back || Last() == weights);
      if (stays && open) return Add(index, Last());
      side = delay_ && stays ? Side::kBackward : Side::kWeights;
    }
    Add(index, {schedule_node, side, place->layer, pass});
  }

  void Exchanged(const Exchange& exchange) {
    if (exchange.node < 0 || exchange.again) return;
    const int32_t pass = pass_of_(exchange.node, exchange.microbatch);
    const Place* place = PlaceOf(exchange.node, pass);
    if (place == nullptr) return;
    Add(exchange.event,
        {place->node, exchange.backward ? Side::kBackward : Side::kForward, place->layer, pass});
  }

 private:
  const Place* PlaceOf(int32_t node, int32_t pass) const {
    if (pass < 0 || size_t(pass) >= step_.nodes.size()) return nullptr;
    return At(step_.nodes, pass)->Find(node);
  }
  Key Last() const { return step_.tokens.back().key; }
  void Add(int64_t index, const Key& key) {
    if (step_.tokens.empty() || Last() != key) step_.tokens.push_back({key, {}});
    step_.tokens.back().events.push_back(index);
    step_.token_of[index] = step_.tokens.size() - 1;
  }
  Step& step_;
  const bool delay_;
  const std::function<int32_t(int32_t, int32_t)> pass_of_;  // of (node, microbatch); -1: none
};

}  // namespace

// Its nodes of one chunk: they stand side by side.
static spf_program OfChunk(const spf_program& program, int32_t chunk) {
  spf_program part = program;
  const spf_node* end = program.nodes + program.n_nodes;
  const auto here = [&](const spf_node& node) { return node.chunk == chunk; };
  part.nodes = std::find_if(program.nodes, end, here);
  part.n_nodes = static_cast<int32_t>(std::find_if_not(part.nodes, end, here) - part.nodes);
  return part;
}

Step Facts::Collect(int32_t rank, int64_t begin) const {
  const Trace& trace = a_.trace(rank);
  const Event& open = At(trace.events, begin);
  const InstanceFacts& facts = a_.Facts(open.instance);
  Step step;
  step.rank = rank;
  step.instance = open.instance;
  step.call = open.call;
  step.train = facts.CallAt(open.call).letter == 't';
  step.combined = step.train && facts.spec().overlap_moe;
  step.begin = begin;
  const int32_t chunks = facts.spec().chunks;
  for (int32_t m = 0; m < facts.spec().microbatches; ++m) {
    const spf_program& program = Program(rank, open.instance, open.call, m);
    for (int32_t c = 0; c < chunks; ++c) step.programs.push_back(OfChunk(program, c));
  }
  for (const spf_program& program : step.programs)
    step.nodes.push_back(std::make_unique<Nodes>(Tables(rank, open.instance), program));
  std::map<int64_t, const Exchange*> exchanges;
  for (const Exchange& exchange : At(exchanges_, rank)) exchanges[exchange.event] = &exchange;
  Builder builder(step, facts.spec().delay_wgrad, [&](int32_t node, int32_t microbatch) {
    const bool known = microbatch >= 0 && node >= 0 && node < facts.node_count(rank);
    return known ? microbatch * chunks + facts.Node(node, rank).chunk : -1;
  });
  for (auto i = static_cast<size_t>(begin) + 1; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.instance != open.instance || event.call != open.call) continue;
    const auto index = static_cast<int64_t>(i);
    if (event.kind == EventKind::kCallEnd) {
      step.end = event.status == SPF_OK ? index : -1;
      break;
    }
    if (event.kind == EventKind::kCompute && !event.flag) builder.Compute(index, event);
    const auto exchange = exchanges.find(index);
    if (exchange != exchanges.end()) builder.Exchanged(*exchange->second);
  }
  return step;
}

}  // namespace shardproof::schedule
