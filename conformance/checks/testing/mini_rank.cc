#include "conformance/checks/testing/mini_rank.h"

#include <algorithm>

#include "conformance/common/at.h"

namespace shardproof {

MiniRank::MiniRank(const Case& c, const InstanceFacts& facts, int32_t rank,
                   const MiniFaults& faults)
    : c_(c), facts_(facts), spec_(facts.spec()), rank_(rank), t_(rank, c.world) {
  if (faults.rank < 0 || faults.rank == rank) {
    f_ = faults;
  } else {
    f_.marks = faults.marks;
  }
}

int MiniRank::GroupOf(int32_t id, bool gather) {
  const bool expert = P(id).expert;
  std::string name = expert ? "expt_dp" : "dp_cp";
  if (spec_.outer > 1) name = "intra_" + name;
  const bool twin = facts_.Twin(expert) && (gather ? !f_.gather_on_reducer : f_.reduce_on_twin);
  return Named(twin ? (expert ? "expt_dp_ag" : "dp_cp_ag") : name);
}

int MiniRank::Named(const std::string& name) {
  const auto [at, added] = groups_.try_emplace(name, -1);
  if (added) {
    const auto* list = facts_.List(name, rank_);
    at->second = t_.Group(name, *list, name + ListText(*list));
    if (spec_.grid) return Created(at->second, name, *list);
    t_.GroupAsk(name, at->second);
  }
  return at->second;
}

int MiniRank::Created(int& group, const std::string& name, const std::vector<int32_t>& list) {
  group = t_.GroupCreate(world_, name, list);
  if (f_.double_create) extra_groups_.push_back(t_.GroupCreate(world_, name, list));
  return group;
}

void MiniRank::CreateBuckets() {
  buckets_.resize(size_t(facts_.n_params(rank_)));
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    Bucket& b = At(buckets_, id);
    b.shard = f_.padded_shards ? P(id).numel : (P(id).numel + Members(id) - 1) / Members(id);
    b.param = t_.Alloc(s_, b.shard * 4);
    b.main = t_.Alloc(s_, b.shard * 4);
    const bool copies = spec_.backward_copies && P(id).unit >= 0 && !f_.one_copy;
    if (copies) b.copy = t_.Alloc(s_, b.shard * 4);
    if (!P(id).frozen) b.grad = t_.Alloc(s_, b.shard * 4);
    if (Count(id) > 0) t_.Init(s_, id, Begin(id), Count(id), Writes(b.main, 0, Count(id) * 4));
    if (Count(id) > 0)
      t_.Copy(s_, Reads(b.main, 0, Count(id) * 4), Writes(b.param, 0, Count(id) * 4));
    if (Count(id) > 0 && b.copy >= 0 && !f_.blank_copy)
      t_.Copy(s_, Reads(b.main, 0, Count(id) * 4), Writes(b.copy, 0, Count(id) * 4));
  }
}

MiniRank::Pool* MiniRank::PoolOf(int32_t id, bool grad) {
  const std::vector<int32_t> alike = facts_.UnitsAlike(rank_);
  if (!spec_.double_buffer || std::count(alike.begin(), alike.end(), P(id).unit) == 0)
    return nullptr;
  int32_t first = id;
  while (first > 0 && P(first - 1).unit == P(id).unit) --first;
  return &pools_[{id - first, grad}];
}

int MiniRank::Take(int32_t id, bool grad) {
  const int64_t bytes = Members(id) * At(buckets_, id).shard * 4;
  Pool* pool = PoolOf(id, grad);
  if (pool == nullptr) return t_.Alloc(s_, bytes);
  if (Length(pool->blocks) < f_.buffers) {
    pool->blocks.push_back(t_.Alloc(s_, bytes));
    return pool->blocks.back();
  }
  const int block = pool->idle.front();
  pool->idle.erase(pool->idle.begin());
  return block;
}

void MiniRank::Give(int32_t id, bool grad, int block) {
  Pool* pool = PoolOf(id, grad);
  if (pool == nullptr) return t_.Free(s_, block);
  t_.Launch(s_, SPF_K_DISCARD, {Writes(block, 0, Members(id) * At(buckets_, id).shard * 4)});
  pool->idle.push_back(block);
}

void MiniRank::FreeBuckets() {
  if (flag_ >= 0) t_.Free(s_, flag_);
  for (int32_t id = 0; id < Length(buckets_); ++id) {
    if (PoolOf(id, false) != nullptr) At(buckets_, id).full = -1;
  }
  for (const auto& [place, pool] : pools_) {
    for (const int block : pool.blocks) t_.Free(s_, block);
  }
  for (Bucket& b : buckets_) {
    for (const int block : {b.param, b.copy, b.main, b.grad, b.full}) {
      if (block >= 0) t_.Free(s_, block);
    }
  }
}

void MiniRank::DestroyGroups() {
  if (!spec_.grid) return;
  for (const auto& [name, group] : groups_) t_.GroupDestroy(group);
  for (const int group : extra_groups_) t_.GroupDestroy(group);
}

void MiniRank::PublishParams(bool trained) {
  if (trained) version_ = call_;
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    if (trained && P(id).frozen) continue;
    Publish(SPF_RESULT_PARAM, id, At(buckets_, id).main, MiniValue);
  }
}

void MiniRank::Publish(int result, int32_t id, int alloc,
                       float (*value)(int32_t, int32_t, int64_t)) {
  std::vector<double> values;
  for (int64_t i = 0; i < Count(id); ++i)
    values.push_back(double{value(call_, P(id).key, Begin(id) + i)});
  if (values.empty()) return;
  t_.Publish(s_, result, id, Begin(id), Count(id), SPF_F32, 1, Reads(alloc, 0, Count(id) * 4),
             values);
}

void MiniRank::Gather(int32_t id) {
  Bucket& b = At(buckets_, id);
  if (b.full >= 0) return;
  const int64_t n = Members(id);
  b.full = Take(id, false);
  if (b.part >= 0) {
    t_.Collective(SPF_ALL_GATHER, Named("dp_cp_reshard"), s_, PartOf(id),
                  {Reads(b.part, 0, PartOf(id) * 4), Writes(b.full, 0, n * b.shard * 4)});
    return;
  }
  const int shard = second_ && b.copy >= 0 ? b.copy : b.param;
  const int sent = f_.staged ? t_.Alloc(s_, b.shard * 4) : shard;
  if (f_.staged) t_.Copy(s_, Reads(shard, 0, b.shard * 4), Writes(sent, 0, b.shard * 4));
  t_.Collective(SPF_ALL_GATHER, GroupOf(id, true), s_, b.shard,
                {Reads(sent, 0, b.shard * 4), Writes(b.full, 0, n * b.shard * 4)});
  if (f_.staged) t_.Free(s_, sent);
}

void MiniRank::ReleaseParam(int32_t id) {
  Bucket& b = At(buckets_, id);
  if (b.full >= 0) Give(id, false, b.full);
  if (b.part >= 0) t_.Free(s_, b.part);
  b.full = b.part = -1;
}

void MiniRank::ReleaseAfterForward(int32_t unit) {
  ForUnit(unit, [&](int32_t id) {
    Bucket& b = At(buckets_, id);
    if (spec_.reshard_after_forward == 0) return;
    if (!ReshardsToFewer(spec_) || P(id).expert || b.full < 0) return ReleaseParam(id);
    const int64_t bytes = PartOf(id) * 4;
    const int64_t begin = Index(id) % spec_.reshard_after_forward * bytes;
    const int full = b.full;
    b.part = t_.Alloc(s_, bytes);
    t_.Copy(s_, Reads(full, begin, bytes), Writes(b.part, 0, bytes));
    Give(id, false, full);
    b.full = -1;
  });
}

void MiniRank::AllocGrads(int32_t unit) {
  ForUnit(unit, [&](int32_t id) {
    Bucket& b = At(buckets_, id);
    if (P(id).frozen && !f_.reduce_frozen) return;
    b.full_grad = Take(id, true);
    t_.Launch(s_, SPF_K_FILL, {Writes(b.full_grad, 0, Members(id) * b.shard * 4)});
  });
}

void MiniRank::Reduce(int32_t id) {
  Bucket& b = At(buckets_, id);
  if (f_.all_reduce) return AllReduce(id);
  const int out = t_.Alloc(s_, b.shard * 4);
  CollectiveOptions options;
  if (f_.bf16_wire) options.dtype = SPF_BF16;
  if (f_.reduce_over_tp)
    t_.Collective(SPF_ALL_REDUCE, Named("tp"), s_, Members(id) * b.shard,
                  {Updates(b.full_grad, 0, Members(id) * b.shard * 4)});
  if (f_.tp_parts_first) SumPart(id);
  t_.Collective(SPF_REDUCE_SCATTER, GroupOf(id, false), s_, b.shard,
                {Reads(b.full_grad, 0, Members(id) * b.shard * 4), Writes(out, 0, b.shard * 4)},
                options);
  for (int i = 0; b.grad >= 0 && i < (f_.add_reduced_twice ? 2 : 1); ++i) {
    t_.Launch(s_, SPF_K_AXPBY, {Reads(out, 0, b.shard * 4), Updates(b.grad, 0, b.shard * 4)});
  }
  t_.Free(s_, out);
}

void MiniRank::AllReduce(int32_t id) {
  Bucket& b = At(buckets_, id);
  const int64_t count = Members(id) * b.shard;
  t_.Collective(SPF_ALL_REDUCE, GroupOf(id, false), s_, count,
                {Updates(b.full_grad, 0, count * 4)});
  t_.Launch(
      s_, SPF_K_AXPBY,
      {Reads(b.full_grad, Index(id) * b.shard * 4, b.shard * 4), Updates(b.grad, 0, b.shard * 4)});
}

void MiniRank::ReduceFlag() {
  if (f_.flag == MiniFlag::kNone) return;
  const bool keeps = f_.flag == MiniFlag::kInPlace;
  const int flag = keeps && flag_ >= 0 ? flag_ : t_.Alloc(s_, 8);
  if (flag != flag_) t_.Launch(s_, SPF_K_FILL, {Writes(flag, 0, 8)});
  t_.Collective(SPF_ALL_REDUCE, GroupOf(0, false), s_, 2, {Updates(flag, 0, 8)});
  if (keeps) {
    flag_ = flag;
    return;
  }
  if (f_.flag != MiniFlag::kIgnored) {
    const int pinned = t_.Alloc(s_, 8, {}, SPF_PINNED);
    t_.Copy(s_, Reads(flag, 0, 8), Writes(pinned, 0, 8));
    t_.StreamSync(s_);
    if (f_.flag == MiniFlag::kReadOnHost) t_.HostAccess({Reads(pinned, 0, 8)});
    t_.Free(s_, pinned);
  }
  t_.Free(s_, flag);
}

void MiniRank::MeetOverTp(const spf_node& node, int phase) {
  const spf_uses& uses = node.uses[phase];
  CollectiveOptions options;
  options.reduction = f_.tp_average ? SPF_AVG : SPF_SUM;
  const bool over_cp = node.kind == SPF_NODE_ALL_GATHER_CP;
  const std::string name = over_cp ? f_.cp_group : f_.tp_group;
  const int group = Named(name);
  const auto from = (uses.use[0].id % 64) * 64, to = (uses.use[uses.n - 1].id % 64) * 64;
  const bool gathers = node.kind != SPF_NODE_ALL_REDUCE &&
                       (node.kind == SPF_NODE_REDUCE_SCATTER) == (phase != SPF_FWD);
  const int32_t times = gathers            ? f_.tp_gathers
                        : phase == SPF_FWD ? f_.tp_sums_forward
                                           : f_.tp_sums_backward;
  const bool in_place = uses.n == 1;
  const int gather = f_.tp_gathers_uneven ? SPF_ALL_GATHER_V : SPF_ALL_GATHER;
  if (f_.messages != MiniMessages::kNone) return MeetByMessages(name, from, to, gathers);
  if (f_.tp_stale && call_ > 1) return;
  if (f_.tp_whole_sums && !gathers) {
    t_.Collective(SPF_ALL_REDUCE, group, s_, 16, {Updates(acts_, from, 64)}, options);
    return t_.Copy(s_, Reads(acts_, from, 64), Writes(acts_, to, 64));
  }
  if (times == 0 && !in_place) return t_.Copy(s_, Reads(acts_, from, 64), Writes(acts_, to, 64));
  for (int32_t i = 0; i < times; ++i) {
    if (in_place || (i > 0 && !gathers)) {
      t_.Collective(SPF_ALL_REDUCE, group, s_, 16, {Updates(acts_, to, 64)}, options);
    } else {
      t_.Collective(gathers ? gather : SPF_REDUCE_SCATTER, group, s_, 16,
                    {Reads(acts_, from, 64), Writes(acts_, to, 64)}, options);
    }
  }
  if (f_.passed_on) PassOn(to);
}

void MiniRank::SumParts() {
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    const Bucket& b = At(buckets_, id);
    const int32_t times = f_.tp_parts_first || f_.tp_parts_unlooked ? 0 : f_.tp_parts;
    for (int32_t i = 0; P(id).part && b.grad >= 0 && i < times; ++i)
      t_.Collective(SPF_ALL_REDUCE, Named("tp"), s_, b.shard, {Updates(b.grad, 0, b.shard * 4)});
  }
}

void MiniRank::SumPart(int32_t id) {
  const Bucket& b = At(buckets_, id);
  if (!P(id).part) return;
  t_.Collective(SPF_ALL_REDUCE, Named("tp"), s_, Members(id) * b.shard,
                {Updates(b.full_grad, 0, Members(id) * b.shard * 4)});
}

void MiniRank::Outer() {
  if (spec_.outer <= 1) return;
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    Bucket& b = At(buckets_, id);
    if (b.grad < 0) continue;
    t_.Collective(SPF_ALL_REDUCE, Named(P(id).expert ? "inter_expt_dp" : "inter_dp_cp"), s_,
                  b.shard, {Reads(b.grad, 0, b.shard * 4), Writes(b.grad, 0, b.shard * 4)});
  }
}

}  // namespace shardproof
