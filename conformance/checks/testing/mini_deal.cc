#include "conformance/checks/testing/mini_deal.h"

#include <algorithm>
#include <numeric>

namespace shardproof {

MiniDeal::MiniDeal(const Case& c, const InstanceFacts& facts, int32_t rank,
                   const LayerWiseFaults& faults)
    : c_(c), facts_(facts), spec_(facts.spec()), rank_(rank), t_(rank, c.world) {
  if (faults.rank < 0 || faults.rank == rank) f_ = faults;
}

int32_t MiniDeal::Me(bool expert) const {
  const std::vector<int32_t>& list = List(expert);
  return static_cast<int32_t>(std::find(list.begin(), list.end(), rank_) - list.begin());
}

int MiniDeal::Named(const std::string& name) {
  const auto [at, added] = groups_.try_emplace(name, -1);
  if (added) {
    const auto* list = facts_.List(name, rank_);
    at->second = t_.Group(name, *list, name + ListText(*list));
    t_.GroupAsk(name, at->second);
  }
  return at->second;
}

int MiniDeal::Recorded(int stream) {
  events_.push_back(t_.EventCreate());
  t_.Record(events_.back(), stream);
  return events_.back();
}

// One after the other, dense and experts apart.
void MiniDeal::DealOwners() {
  params_.resize(size_t(facts_.n_params(rank_)));
  std::map<bool, int32_t> next;
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    if (P(id).frozen) continue;
    const auto n = static_cast<int32_t>(List(P(id).expert).size());
    params_[size_t(id)].owner = next[P(id).expert]++ % n;
  }
}

void MiniDeal::MakeBuckets() {
  DealOwners();
  for (const bool expert : {false, true}) {
    Bucket b{expert, {}, {}, 0, -1, -1, -1, -1, {}};
    int64_t held = 0;
    for (int32_t id = facts_.n_params(rank_); id-- > 0;) {
      const bool mine = P(id).expert == expert || (f_.mix_kinds && !expert);
      if (!mine || (f_.mix_kinds && expert) || (P(id).frozen && !f_.frozen_in_bucket)) continue;
      b.items.push_back({id, 0});
      held += P(id).numel;
      if (spec_.bucket_size <= 0 || held < spec_.bucket_size || f_.no_cut) continue;
      Close(b);
      held = 0;
    }
    if (!b.items.empty()) Close(b);
  }
}

void MiniDeal::Close(Bucket& b) {
  b.counts.assign(List(b.expert).size(), 0);
  if (Aligned() && !Alone(b)) {
    LayAligned(b);
  } else {
    Lay(b);
  }
  buckets_.push_back(b);
  b.items.clear();
}

// Owner after owner.
void MiniDeal::Lay(Bucket& b) {
  std::stable_sort(b.items.begin(), b.items.end(), [&](const Item& x, const Item& y) {
    return params_[size_t(x.id)].owner < params_[size_t(y.id)].owner;
  });
  constexpr int64_t kPiece = 64;
  int64_t at = 0;
  for (size_t i = 0; i < b.items.size(); ++i) {
    Item& item = b.items[i];
    const int32_t owner = params_[size_t(item.id)].owner;
    item.at = at;
    at += P(item.id).numel;
    b.counts[size_t(owner)] += P(item.id).numel;
    const bool last = i + 1 == b.items.size() || params_[size_t(b.items[i + 1].id)].owner != owner;
    if (!f_.coarse || !last) continue;
    const int64_t padding = (kPiece - b.counts[size_t(owner)] % kPiece) % kPiece;
    b.counts[size_t(owner)] += padding;
    at += padding;
  }
  b.size = at;
  if (Transport() != LayerWiseTransport::kPadded && !f_.loose_counts) return;
  const int64_t largest = *std::max_element(b.counts.begin(), b.counts.end());
  b.size = std::max(at, static_cast<int64_t>(b.counts.size()) * (largest + 1));
}

// Each item at the end of the emptiest shard, whose rank is its owner.
void MiniDeal::LayAligned(Bucket& b) {
  for (Item& item : b.items) {
    const auto least = std::min_element(b.counts.begin(), b.counts.end());
    params_[size_t(item.id)].owner = static_cast<int32_t>(least - b.counts.begin());
    item.at = *least;
    *least += P(item.id).numel;
  }
  const auto n = static_cast<int64_t>(b.counts.size());
  const int64_t multiple = f_.wide_padding || f_.coarse ? 4096 : 64;
  int64_t shard =
      (*std::max_element(b.counts.begin(), b.counts.end()) + multiple - 1) / multiple * multiple;
  if (f_.wide_padding) shard += 2 * multiple;
  if (f_.cross_edge)
    shard = (std::accumulate(b.counts.begin(), b.counts.end(), int64_t{0}) + 7) / n;
  b.counts.assign(b.counts.size(), shard);
  b.size = shard * static_cast<int64_t>(b.counts.size());
  int64_t at = 0;
  for (Item& item : b.items) {
    item.at = f_.cross_edge ? at : item.at + shard * params_[size_t(item.id)].owner;
    at += P(item.id).numel;
  }
}

void MiniDeal::AllocAll() {
  for (Bucket& b : buckets_) {
    b.grads = t_.Alloc(s_, b.size * 4);
    const bool together = Aligned() && !Alone(b);
    if (together) b.weights = t_.Alloc(s_, b.size * 4);
    for (const Item& item : b.items) {
      params_[size_t(item.id)].grad = {b.grads, item.at * 4};
      if (together) params_[size_t(item.id)].home = {b.weights, item.at * 4};
    }
  }
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    Param& p = params_[size_t(id)];
    if (p.home.block < 0) p.home = {t_.Alloc(s_, P(id).numel * 4), 0};
    t_.Init(s_, id, 0, P(id).numel, Home(id, kWrite));
    if (P(id).frozen || !Has(id)) continue;
    p.main = t_.Alloc(s_, P(id).numel * 4);
    t_.Copy(s_, Home(id, kRead), Writes(p.main, 0, P(id).numel * 4));
    if (spec_.optimizer == Optimizer::kSgd && !f_.other_optimizer) continue;
    for (int* state : {&p.m, &p.v}) {
      *state = t_.Alloc(s_, P(id).numel * 4);
      t_.Launch(s_, SPF_K_FILL, {Writes(*state, 0, P(id).numel * 4)});
    }
  }
}

void MiniDeal::FreeAll() {
  for (const int event : events_) t_.EventDestroy(event);
  events_.clear();
  for (Bucket& b : buckets_) {
    FreeBuffer(b);
    for (const int block : {b.grads, b.weights}) {
      if (block >= 0) t_.Free(s_, block);
    }
  }
  for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
    const Param& p = params_[size_t(id)];
    const bool single = std::none_of(buckets_.begin(), buckets_.end(),
                                     [&](const Bucket& b) { return b.weights == p.home.block; });
    for (const int block : {single ? p.home.block : -1, p.main, p.m, p.v}) {
      if (block >= 0) t_.Free(s_, block);
    }
  }
}

void MiniDeal::Launch(Bucket& b) {
  const bool nothing = std::accumulate(b.counts.begin(), b.counts.end(), int64_t{0}) == 0;
  if ((Alone(b) && !f_.gather_alone) || (nothing && !f_.gather_empty)) return;
  Order(s_, g_);  // what the optimizer, and readers of the storage, did
  if (f_.gather_beside_reduction) Reduce(b);
  const int64_t me = Me(b.expert);
  if (!Aligned() || Alone(b)) {
    AllocBuffer(b);
    const auto n = static_cast<int64_t>(b.counts.size());
    const int64_t sent = f_.other_root ? (me + n - 1) % n : me;
    const Place to = Arrival(b, size_t(sent));
    int64_t at = to.offset;
    for (const Item& item : b.items) {
      if (params_[size_t(item.id)].owner != sent || OneByOne()) continue;
      t_.Copy(g_, Home(item.id, kRead), Writes(to.block, at, P(item.id).numel * 4));
      at += P(item.id).numel * 4;
    }
  }
  Send(b);
  b.done = Recorded(g_);
}

void MiniDeal::AllocBuffer(Bucket& b) {
  if (IntoGrads() || b.buffer >= 0 || !b.pieces.empty()) return;
  if (!f_.pieces_apart) b.buffer = t_.Alloc(g_, std::max<int64_t>(b.size, 1) * 4);
  for (size_t m = 0; f_.pieces_apart && m < b.counts.size(); ++m) {
    b.pieces.push_back(t_.Alloc(g_, std::max<int64_t>(b.counts[m], 1) * 4));
  }
}

void MiniDeal::FreeBuffer(Bucket& b) {
  for (const int block : b.pieces) t_.Free(s_, block);
  if (b.buffer >= 0) t_.Free(s_, b.buffer);
  b.pieces.clear();
  b.buffer = -1;
}

MiniDeal::Place MiniDeal::Arrival(const Bucket& b, size_t member) const {
  if (!b.pieces.empty()) return {b.pieces[member], 0};
  const int64_t largest = *std::max_element(b.counts.begin(), b.counts.end());
  int64_t begin = 0;  // elements
  for (size_t m = 0; m < member; ++m)
    begin += Transport() == LayerWiseTransport::kPadded ? largest : b.counts[m];
  const bool home = Aligned() && !Alone(b);
  return {home ? b.weights : IntoGrads() ? b.grads : b.buffer, begin * 4};
}

void MiniDeal::SendOneByOne(const Bucket& b, CollectiveOptions options) {
  std::map<int32_t, int64_t> sent;  // by owner: bytes
  for (const Item& item : b.items) {
    const int64_t bytes = P(item.id).numel * 4;
    options.peer = params_[size_t(item.id)].owner;
    const Place at = Arrival(b, size_t(options.peer));
    std::vector<Range> ranges = {Writes(at.block, at.offset + sent[options.peer], bytes)};
    if (Owns(item.id)) ranges = {Home(item.id, kRead), Home(item.id, kWrite)};
    if (Owns(item.id) && !f_.root_in_place) ranges.pop_back();
    if (Owns(item.id) && f_.root_sends_main)
      ranges = {Reads(params_[size_t(item.id)].main, 0, bytes)};
    if (!Owns(item.id) && f_.into_weights) ranges = {Home(item.id, kWrite)};
    sent[options.peer] += bytes;
    t_.Collective(SPF_BROADCAST, GroupOf(b), g_, P(item.id).numel, ranges, options);
  }
}

void MiniDeal::Send(const Bucket& b) {
  CollectiveOptions options;
  options.label.purpose = SPF_FOR_PARAM_FULL;
  if (f_.bf16_wire) options.dtype = SPF_BF16;
  const int group = GroupOf(b);
  const auto me = static_cast<size_t>(Me(b.expert));
  const auto range = [&](size_t m, int64_t count, int access) {
    const Place to = Arrival(b, m);
    return Range{to.block, static_cast<uint8_t>(access), to.offset, count * 4};
  };
  const size_t members = b.counts.size();
  if (OneByOne()) return SendOneByOne(b, options);
  if (Transport() == LayerWiseTransport::kBroadcast && !Aligned()) {
    for (size_t m = 0; m < members; ++m) {
      if (b.counts[m] == 0) continue;
      options.peer = static_cast<int>(f_.other_root ? (m + 1) % members : m);
      std::vector<Range> ranges = {range(m, b.counts[m], kWrite)};
      if (options.peer == static_cast<int>(me))
        ranges.insert(ranges.begin(), range(m, b.counts[m], kRead));
      t_.Collective(SPF_BROADCAST, group, g_, b.counts[m], ranges, options);
    }
    return;
  }
  if (Transport() == LayerWiseTransport::kPadded || Aligned()) {
    const int64_t each =
        *std::max_element(b.counts.begin(), b.counts.end()) + (f_.loose_counts ? 1 : 0);
    std::vector<Range> ranges = {range(me, each, kRead),
                                 range(0, each * static_cast<int64_t>(members), kWrite)};
    if (f_.out_of_place) {  // sent from a copy
      const int copy = t_.Alloc(g_, each * 4);
      t_.Copy(g_, ranges[0], Writes(copy, 0, each * 4));
      ranges[0] = Reads(copy, 0, each * 4);
      t_.Collective(SPF_ALL_GATHER, group, g_, each, ranges, options);
      return t_.Free(g_, copy);
    }
    return t_.Collective(SPF_ALL_GATHER, group, g_, each, ranges, options);
  }
  options.recv_counts = b.counts;
  if (f_.loose_counts) options.recv_counts.back() += 1;
  const int64_t total =
      std::accumulate(options.recv_counts.begin(), options.recv_counts.end(), int64_t{0});
  std::vector<Range> ranges;
  if (b.counts[me] > 0) ranges.push_back(range(me, options.recv_counts[me], kRead));
  if (total > 0) ranges.push_back(range(0, total, kWrite));
  t_.Collective(SPF_ALL_GATHER_V, group, g_, 0, ranges, options);
}

void MiniDeal::Wait(Bucket& b) {
  if (b.done >= 0 && !f_.no_wait) t_.Wait(b.done, s_);
  if (f_.free_early) FreeBuffer(b);
}

void MiniDeal::Install(Bucket& b) {
  if (b.done < 0) return;
  b.done = -1;
  if (Aligned()) return;
  if (Arrival(b, 0).block < 0) return;
  std::map<int32_t, int64_t> at;  // by owner: bytes
  for (const Item& item : b.items) {
    const int32_t owner = params_[size_t(item.id)].owner;
    const Place from = Arrival(b, size_t(owner));
    const bool skips = f_.no_copy && (&item == &b.items.back() || &item == &b.items[0]);
    if ((!Owns(item.id) || f_.copy_own) && !skips && !f_.into_weights) {
      t_.Copy(s_, Reads(from.block, from.offset + at[owner], P(item.id).numel * 4),
              Home(item.id, kWrite));
    }
    at[owner] += P(item.id).numel * 4;
  }
  if (IntoGrads()) {
    if (!f_.no_zero) ZeroGrads(b);
  } else if (!f_.keep_buffer) {
    FreeBuffer(b);
  }
}

void MiniDeal::Reduce(Bucket& b) {
  if (Alone(b) && !f_.reduce_alone) return;
  if (!f_.gather_beside_reduction) Order(s_, r_);
  const int group = f_.reduce_over_experts && !b.expert ? Named("expt_dp") : GroupOf(b);
  CollectiveOptions options;
  options.label.purpose = SPF_FOR_GRAD;
  if (f_.one_by_one && train_steps_ > 1) {
    for (const Item& item : b.items) {
      t_.Collective(SPF_ALL_REDUCE, group, r_, P(item.id).numel,
                    {Grad(item.id, kRead), Grad(item.id, kWrite)}, options);
    }
  } else if ((Aligned() && !Alone(b)) != f_.other_reduction) {
    const int64_t shard = b.size / static_cast<int64_t>(b.counts.size());
    t_.Collective(
        SPF_REDUCE_SCATTER, group, r_, shard,
        {Reads(b.grads, 0, b.size * 4), Writes(b.grads, Me(b.expert) * shard * 4, shard * 4)},
        options);
  } else {
    t_.Collective(SPF_ALL_REDUCE, group, r_, b.size,
                  {Reads(b.grads, 0, b.size * 4), Writes(b.grads, 0, b.size * 4)}, options);
  }
}

}  // namespace shardproof
