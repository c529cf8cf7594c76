#include "conformance/runner/many/world_evidence.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/common/at.h"
#include "conformance/runner/rank_config.h"
#include "conformance/runner/rank_output.h"

namespace shardproof {
namespace {

using symmetry::Comm;
using symmetry::CompactWorld;
using symmetry::Names;

constexpr size_t kFieldsBefore = 3;  // shapes, communicators, ranks

template <class Number>
std::string Packed(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

std::vector<int64_t> Numbers(std::string_view bytes) {
  if (bytes.size() % sizeof(int64_t) != 0)
    throw std::runtime_error("a list of the evidence is not whole");
  std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(numbers.data()));
  return numbers;
}

// Reads lists that each begin with their size.
class Lists {
 public:
  explicit Lists(std::string_view bytes) : numbers_(Numbers(bytes)) {}
  bool done() const { return at_ >= numbers_.size(); }
  int64_t Number(int64_t least, int64_t most) {
    if (done()) throw std::runtime_error("a list of the evidence ends early");
    const int64_t number = numbers_[at_++];
    if (number < least || number > most)
      throw std::runtime_error("a number of the evidence is out of range: " +
                               std::to_string(number));
    return number;
  }
  std::vector<int64_t> List(int64_t least, int64_t most) {
    const int64_t size = Number(0, static_cast<int64_t>(numbers_.size()));
    std::vector<int64_t> list;
    for (int64_t i = 0; i < size; ++i) list.push_back(Number(least, most));
    return list;
  }

 private:
  const std::vector<int64_t> numbers_;
  size_t at_ = 0;
};

template <class List>
void Put(const List& list, std::vector<int64_t>* to) {
  to->push_back(static_cast<int64_t>(list.size()));
  to->insert(to->end(), list.begin(), list.end());
}

Frame FieldsOf(const CompactWorld& world) {
  std::vector<int64_t> comms, ranks;
  Frame fields{std::to_string(world.shapes.size()), "", ""};
  for (const Comm& comm : world.comms) Put(comm.members, &comms);
  for (const Names& names : world.ranks) {
    ranks.push_back(names.shape);
    Put(names.comms, &ranks);
    Put(names.samples, &ranks);
  }
  fields[1] = Packed(comms);
  fields[2] = Packed(ranks);
  Frame keys;
  for (const Comm& comm : world.comms) keys.push_back(comm.key);
  fields.push_back(PackFrame(keys));
  for (const symmetry::Shape& shape : world.shapes) {
    for (std::string& field : FieldsOf(shape.trace, shape.outcome, ""))
      fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace

Frame RunManyDry(const Case& c, const Models& models, const Plugin& plugin,
                 const SimRunOptions& options) {
  const CaseFamilies families(c);
  SimRunOptions shared = options;
  shared.rank.families = &families;
  symmetry::CompactWorldBuilder builder;
  for (int32_t rank = 0; rank < c.world; ++rank) {
    RankOutput output = RunDryRank(rank, c, models, plugin, shared);
    builder.Add(std::move(output.trace), std::move(output.outcome));
  }
  return FieldsOf(builder.Take());
}

CompactWorld ManyRanksOf(const FrameView& fields, const Case& c) {
  CompactWorld world;
  const int64_t shapes = fields.empty() ? 0 : NumberOf(fields[0], 1, c.world);
  if (fields.size() != kFieldsBefore + 1 + kFieldsOfARank * static_cast<size_t>(shapes))
    throw std::runtime_error("the evidence of " + Id(c) + " is not whole");
  std::string_view packed = fields[kFieldsBefore];
  bool bad = false;
  const FrameView keys = FrameIn(&packed, &bad).value_or(FrameView{});
  Lists comms(fields[1]), ranks(fields[2]);
  for (const std::string_view key : keys) {
    const std::vector<int64_t> members = comms.List(0, c.world - 1);
    world.comms.push_back({std::string(key), {members.begin(), members.end()}});
  }
  const auto last_comm = static_cast<int64_t>(world.comms.size()) - 1;
  std::vector<int32_t> first(static_cast<size_t>(shapes), -1);
  for (int32_t rank = 0; rank < c.world; ++rank) {
    Names& names = world.ranks.emplace_back();
    names.shape = static_cast<int32_t>(ranks.Number(0, shapes - 1));
    const std::vector<int64_t> of_rank = ranks.List(0, last_comm);
    names.comms.assign(of_rank.begin(), of_rank.end());
    names.samples = ranks.List(INT64_MIN, INT64_MAX);
    if (At(first, names.shape) < 0) At(first, names.shape) = rank;
  }
  if (!comms.done() || !ranks.done())
    throw std::runtime_error("the evidence of " + Id(c) + " says more than its ranks");
  for (int64_t i = 0; i < shapes; ++i) {
    const int32_t rank = At(first, i);
    if (rank < 0) throw std::runtime_error("shape " + std::to_string(i) + " is of no rank");
    RankOutput output =
        OutputOf(fields, kFieldsBefore + 1 + kFieldsOfARank * static_cast<size_t>(i), rank, c);
    std::vector<int32_t> first_of = symmetry::FirstOf(At(world.ranks, rank));
    world.shapes.push_back(
        {std::move(output.trace), std::move(output.outcome), std::move(first_of)});
  }
  if (const std::string why = symmetry::Contradiction(world); !why.empty())
    throw std::runtime_error(why);
  return world;
}

}  // namespace shardproof
