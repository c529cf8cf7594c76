#include "conformance/checks/base/flow.h"

#include <algorithm>
#include <unordered_map>

#include "conformance/checks/base/content_math.h"
#include "conformance/checks/base/published.h"
#include "conformance/common/dtype.h"

namespace shardproof {

using Kind = Content::Kind;

std::vector<Chunk> Only(const std::vector<Chunk>& chunks, Kind kind) {
  std::vector<Chunk> kept;
  for (const Chunk& chunk : chunks) {
    if (chunk.content.kind == kind) kept.push_back(chunk);
  }
  return kept;
}

namespace {

// Bytes of one of so many elements; a range of another length than its elements need has some width
// all the same.
uint8_t WidthOf(int64_t bytes, int64_t elements) {
  return static_cast<uint8_t>(std::clamp<int64_t>(bytes / std::max<int64_t>(1, elements), 1, 255));
}

}  // namespace

class Flow::Visitor : public ReplayVisitor {
 public:
  Visitor(const Run& run, const std::vector<std::unique_ptr<InstanceFacts>>& instances, Flow& flow)
      : run_(run), instances_(instances), flow_(flow), blocks_(run.traces.size()) {}

  void OnLocal(int32_t rank, int64_t index) override {
    const Trace& trace = run_.traces[size_t(rank)];
    const Event& event = trace.events[size_t(index)];
    if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) {
      blocks_[size_t(rank)][event.alloc] = BlockContents(event.count);
      return;
    }
    if (event.ranges.empty()) return;
    EventFlow& flow = flow_.events_[size_t(rank)][size_t(index)];
    Read(rank, event, flow);
    switch (event.kind) {
      case EventKind::kCopy:
        DoCopy(trace, event, flow);
        break;
      case EventKind::kInit:
        DoInit(rank, event, flow);
        break;
      case EventKind::kLaunch:
        DoLaunch(trace, event, flow);
        break;
      case EventKind::kCompute:
        DoCompute(rank, event, flow);
        break;
      case EventKind::kPublish:
        Retag(rank, event, flow);
        return;
      default:
        Overwrite(trace, event, flow, Kind::kOther);
    }
    Write(rank, event, flow);
  }

  void OnCollective(const std::vector<Member>& members) override {
    std::vector<std::vector<Chunk>> sent(members.size());
    std::vector<int64_t> sent_length(members.size(), 0);
    for (size_t m = 0; m < members.size(); ++m) {
      if (members[m].rank < 0) return;
      const Event& event = EventOf(members[m]);
      EventFlow& flow = FlowOf(members[m]);
      Read(members[m].rank, event, flow);
      const Trace& trace = run_.traces[size_t(members[m].rank)];
      if (const Range* send = SendRange(trace, event)) {
        sent[m] = flow.before[RangeIndex(trace, event, send)];
        sent_length[m] = send->length;
      }
    }
    for (size_t m = 0; m < members.size(); ++m) {
      const Event& event = EventOf(members[m]);
      const Trace& trace = run_.traces[size_t(members[m].rank)];
      const Range* recv = RecvRange(trace, event);
      if (recv == nullptr) continue;
      EventFlow& flow = FlowOf(members[m]);
      flow.after[RangeIndex(trace, event, recv)] =
          Received(members, sent, sent_length, m, recv->length);
      Write(members[m].rank, event, flow);
    }
  }

 private:
  const Event& EventOf(const Member& m) const {
    return run_.traces[size_t(m.rank)].events[size_t(m.event)];
  }
  EventFlow& FlowOf(const Member& m) { return flow_.events_[size_t(m.rank)][size_t(m.event)]; }

  void Read(int32_t rank, const Event& event, EventFlow& flow) {
    const Trace& trace = run_.traces[size_t(rank)];
    flow.ran = true;
    flow.before.resize(event.ranges.size());
    flow.after.resize(event.ranges.size());
    for (uint32_t i = 0; i < event.ranges.size(); ++i) {
      const Range& range = trace.ranges[event.ranges.begin + i];
      flow.before[i] = blocks_[size_t(rank)][range.alloc].Get(range.offset, range.length);
    }
  }

  void Write(int32_t rank, const Event& event, const EventFlow& flow) {
    const Trace& trace = run_.traces[size_t(rank)];
    for (uint32_t i = 0; i < event.ranges.size(); ++i) {
      const Range& range = trace.ranges[event.ranges.begin + i];
      if ((range.access & kWrite) != 0)
        blocks_[size_t(rank)][range.alloc].Put(range.offset, flow.after[i]);
    }
  }

  static void Overwrite(const Trace& trace, const Event& event, EventFlow& flow, Kind kind) {
    for (uint32_t i = 0; i < event.ranges.size(); ++i) {
      const Range& range = trace.ranges[event.ranges.begin + i];
      if ((range.access & kWrite) != 0) flow.after[i] = {{0, range.length, Plain(kind)}};
    }
  }

  static void DoCopy(const Trace& trace, const Event& event, EventFlow& flow) {
    const Range* ranges = trace.ranges.data() + event.ranges.begin;
    std::vector<Chunk> bytes;  // what is read, end to end
    int64_t read = 0, taken = 0;
    for (size_t i = 0; i < event.ranges.size(); ++i) {
      if ((ranges[i].access & kRead) == 0) continue;
      Append(bytes, Part(flow.before[i], 0, ranges[i].length, read));
      read += ranges[i].length;
    }
    for (size_t i = 0; i < event.ranges.size(); ++i) {
      if ((ranges[i].access & kWrite) == 0) continue;
      flow.after[i] = Part(bytes, taken, ranges[i].length, 0);
      taken += ranges[i].length;
    }
    if (taken != read) Overwrite(trace, event, flow, Kind::kOther);
  }

  void DoInit(int32_t rank, const Event& event, EventFlow& flow) const {
    if (event.ranges.size() == 0) return;
    const Range& range = run_.traces[size_t(rank)].ranges[event.ranges.begin];
    Content content = Plain(Kind::kParam);
    content.width = WidthOf(range.length, event.count);
    content.instance = static_cast<int16_t>(event.instance);
    const InstanceFacts& facts = *instances_[event.instance];
    content.param = facts.Param(rank, event.id).key;
    content.tag = VersionMade(facts, event);
    content.element = event.offset;
    flow.after[0] = {{0, range.length, content}};
  }

  // A published parameter is authoritative: bytes that came from elsewhere (a file) count as it
  // from here on.
  void Retag(int32_t rank, const Event& event, EventFlow& flow) {
    if (event.result != SPF_RESULT_PARAM || event.ranges.size() == 0) return;
    if (!IsDtype(event.dtype)) return;
    const Range& range = run_.traces[size_t(rank)].ranges[event.ranges.begin];
    Content content = Plain(Kind::kParam);
    content.width = static_cast<uint8_t>(DtypeBytes(event.dtype));
    content.instance = static_cast<int16_t>(event.instance);
    content.param = instances_[event.instance]->Param(rank, event.id).key;
    content.tag = event.call;
    for (const Chunk& chunk : flow.before[0]) {
      if (chunk.content.kind != Kind::kOther) continue;
      content.element = event.offset + chunk.offset / content.width;
      blocks_[size_t(rank)][range.alloc].Put(range.offset + chunk.offset, chunk.length, content);
    }
  }

  void DoLaunch(const Trace& trace, const Event& event, EventFlow& flow) {
    const Range* ranges = trace.ranges.data() + event.ranges.begin;
    const size_t n = event.ranges.size();
    if (event.id == SPF_K_DISCARD) return Overwrite(trace, event, flow, Kind::kPoison);
    if (event.id == SPF_K_FILL) return Overwrite(trace, event, flow, Kind::kFill);
    Overwrite(trace, event, flow, Kind::kOther);
    if (event.id == SPF_K_ADAMW && n >= 1) {
      flow.after[0] = Updated(event.call, flow.before[0]);
    } else if (event.id == SPF_K_AXPBY && n >= 2) {
      flow.after[1] = Added(event, flow, ranges[0], ranges[1]);
    } else if (event.id == SPF_K_CUSTOM) {
      for (size_t i = 0; i < n; ++i) {
        if (ranges[i].access == (kRead | kWrite))
          flow.after[i] = Updated(event.call, flow.before[i]);
      }
    }
  }

  std::vector<Chunk> Added(const Event& event, const EventFlow& flow, const Range& x,
                           const Range& y) {
    std::vector<Chunk> after;
    const bool only_written = (y.access & kRead) == 0;
    ZipChunks(flow.before[0], x.length, flow.before[1], y.length,
              [&](int64_t offset, int64_t length, const Content& from, const Content& onto) {
                Content content =
                    only_written ? from : AddOnto(event.call, from, onto, flow_.sets_);
                if (content.SameAs(from) && x.length > 0) {
                  content.width = WidthOf(from.width * y.length, x.length);
                }
                after.push_back({offset, length, content});
              });
    return after;
  }

  void DoCompute(int32_t rank, const Event& event, EventFlow& flow) {
    const Trace& trace = run_.traces[size_t(rank)];
    Overwrite(trace, event, flow, Kind::kOther);
    const InstanceFacts& facts = *instances_[event.instance];
    if (event.id < 0 || event.id >= facts.node_count(rank)) return;
    const spf_uses& uses = facts.Node(event.id, rank).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    for (int32_t i = 0; i < uses.n; ++i) {
      if (uses.use[i].table != SPF_IN_GRAD) continue;
      const ParamFacts& param = facts.Param(rank, uses.use[i].id);
      const Range& range = trace.ranges[event.ranges.begin + size_t(i)];
      const uint8_t width = WidthOf(range.length, param.numel);
      Content own = Plain(Kind::kGrad);
      own.width = width;
      own.instance = static_cast<int16_t>(event.instance);
      own.param = param.key;
      own.tag =
          flow_.sets_.Of({static_cast<int16_t>(event.call), static_cast<int16_t>(rank),
                          static_cast<int16_t>(event.microbatch), static_cast<int16_t>(event.id)});
      auto& after = flow.after[size_t(i)];
      after.clear();
      for (const Chunk& chunk : flow.before[size_t(i)]) {
        after.push_back(
            {chunk.offset, chunk.length, SumOf(chunk.content, own.At(chunk.offset), flow_.sets_)});
      }
    }
  }

  int64_t CountOf(const Member& member, Slice slice, size_t i) const {
    if (i >= slice.size()) return 0;
    return run_.traces[size_t(member.rank)].numbers[slice.begin + i];
  }

  std::vector<Chunk> Received(const std::vector<Member>& members,
                              const std::vector<std::vector<Chunk>>& sent,
                              const std::vector<int64_t>& sent_length, size_t me, int64_t length) {
    const Event& event = EventOf(members[me]);
    const auto width = static_cast<int64_t>(DtypeBytes(event.dtype));
    std::vector<Chunk> out;
    const bool selects = event.reduction >= kReduceMax && event.reduction <= kReduceProduct;
    const bool reduces =
        event.collective == SPF_REDUCE_SCATTER || event.collective == SPF_ALL_REDUCE;
    if (selects && reduces) return {{0, length, Plain(Kind::kOther)}};
    switch (event.collective) {
      case SPF_ALL_GATHER:
      case SPF_ALL_GATHER_V: {
        int64_t at = 0;
        for (size_t m = 0; m < members.size(); ++m) {
          Append(out, Part(sent[m], 0, sent_length[m], at));
          at += sent_length[m];
        }
        return out;
      }
      case SPF_REDUCE_SCATTER:
        return SumChunks(sent, static_cast<int64_t>(me) * length, length, flow_.sets_);
      case SPF_ALL_REDUCE:
        return SumChunks(sent, 0, length, flow_.sets_);
      case SPF_BROADCAST:
        return event.peer >= 0 ? sent[size_t(event.peer)] : out;
      case SPF_SEND:
      case SPF_RECV:
        return sent[0];
      case SPF_ALL_TO_ALL_V: {
        int64_t at = 0;
        for (size_t m = 0; m < members.size(); ++m) {
          const Event& theirs = EventOf(members[m]);
          int64_t from = 0;
          for (size_t i = 0; i < me; ++i)
            from += CountOf(members[m], theirs.send_counts, i) * width;
          const int64_t bytes = CountOf(members[m], theirs.send_counts, me) * width;
          Append(out, Part(sent[m], from, bytes, at));
          at += bytes;
        }
        return out;
      }
      default:
        return {{0, length, Plain(Kind::kOther)}};
    }
  }

  const Run& run_;
  const std::vector<std::unique_ptr<InstanceFacts>>& instances_;
  Flow& flow_;
  std::vector<std::unordered_map<int32_t, BlockContents>> blocks_;  // by rank, alloc
};

Flow::Flow(const Run& run, const std::vector<std::unique_ptr<InstanceFacts>>& instances) {
  for (const Trace& trace : run.traces) events_.emplace_back(trace.events.size());
  for (const Trace& trace : run.traces) {
    if (!trace.provides.memory || !trace.provides.work || !trace.provides.collectives) {
      complete_ = false;
      why_ = "rank " + std::to_string(trace.rank) +
             "'s trace lacks memory ranges, work or collectives";
      return;
    }
  }
  order_ = ReplayOrder(run.traces);
  Visitor visitor(run, instances, *this);
  order_.Visit(visitor);
  complete_ = order_.result().complete;
  why_ = order_.result().why;
}

}  // namespace shardproof
