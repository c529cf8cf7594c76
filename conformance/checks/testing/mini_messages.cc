#include <algorithm>
#include <string>
#include <vector>

#include "conformance/checks/testing/mini_rank.h"
#include "conformance/common/at.h"

namespace shardproof {

// Each rank has a place for what each one sends: in the whole sequence, or in a block for summands.
void MiniRank::MeetByMessages(const std::string& name, int64_t from, int64_t to, bool gathers) {
  const std::vector<int32_t>& list = *facts_.List(name, rank_);
  const int group = Named(name);
  const auto n = static_cast<int64_t>(list.size());
  const int64_t me = std::find(list.begin(), list.end(), rank_) - list.begin();
  const int64_t width = gathers ? 64 / n : 64, count = width / 4;
  const int block = gathers ? acts_ : t_.Alloc(s_, n * width);
  const auto at = [&](int64_t place) { return (gathers ? to : 0) + (place + n) % n * width; };
  t_.Copy(s_, Reads(acts_, from, width), Writes(block, at(me), width));
  if (f_.messages == MiniMessages::kBroadcasts) t_.GroupBegin();
  for (int64_t i = 0; i < n && f_.messages == MiniMessages::kBroadcasts; ++i) {
    const Range range = i == me ? Updates(block, at(i), width) : Writes(block, at(i), width);
    t_.Collective(SPF_BROADCAST, group, s_, count, {range}, {.peer = static_cast<int>(i)});
  }
  if (f_.messages == MiniMessages::kBroadcasts) t_.GroupEnd();
  for (int64_t i = 0; i + 1 < n && f_.messages == MiniMessages::kRing; ++i) {
    const int64_t next = (me + 1) % n, before = (me + n - 1) % n;
    t_.GroupBegin();  // received first: what is sent left before
    t_.Collective(SPF_RECV, group, s_, count, {Writes(block, at(me - i - 1), width)},
                  {.peer = static_cast<int>(before)});
    t_.Collective(SPF_SEND, group, s_, count, {Reads(block, at(me - i), width)},
                  {.peer = static_cast<int>(next)});
    t_.GroupEnd();
  }
  const Range another = Reads(block, at(me + 1), width);
  if (gathers && f_.messages_again) t_.Copy(s_, another, Writes(block, at(me), width));
  if (gathers) return;
  const bool zeros = f_.messages == MiniMessages::kBroadcasts;
  if (zeros) t_.Launch(s_, SPF_K_FILL, {Writes(acts_, to, 64)});
  if (!zeros) t_.Copy(s_, Reads(block, at(me), 64), Writes(acts_, to, 64));
  for (int64_t i = zeros ? 0 : 1; i < n; ++i)
    t_.Launch(s_, SPF_K_AXPBY, {Reads(block, at(me + i), 64), Updates(acts_, to, 64)});
  if (f_.messages_again) t_.Launch(s_, SPF_K_AXPBY, {another, Updates(acts_, to, 64)});
  if (f_.all_reduce_behind) t_.Collective(SPF_ALL_REDUCE, group, s_, 16, {Updates(acts_, to, 64)});
  t_.Free(s_, block);
}

void MiniRank::PassOn(int64_t at) {
  const std::vector<int32_t>& list = *facts_.List("dp_cp", rank_);
  const auto n = static_cast<int>(list.size());
  const auto me = static_cast<int>(std::find(list.begin(), list.end(), rank_) - list.begin());
  const int group = Named("dp_cp"), block = t_.Alloc(s_, 64);
  // Two on: ranks of cp are neighbours.
  t_.GroupBegin();
  t_.Collective(SPF_SEND, group, s_, 16, {Reads(acts_, at, 64)}, {.peer = (me + 2) % n});
  t_.Collective(SPF_RECV, group, s_, 16, {Writes(block, 0, 64)}, {.peer = (me + n - 2) % n});
  t_.GroupEnd();
  t_.Copy(s_, Reads(block, 0, 64), Writes(acts_, at, 64));
  t_.Free(s_, block);
}

}  // namespace shardproof
