#include "conformance/trace/flight/dump.h"

#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/common/in_parallel.h"
#include "conformance/common/read_file.h"
#include "conformance/trace/flight/json_tree.h"
#include "conformance/trace/flight/pickle.h"
#include "conformance/trace/names.h"

namespace shardproof::flight {
namespace {

constexpr uint8_t kReduce = trace_names::kFirstForeignCollective, kBarrier = kReduce + 1,
                  kGather = kReduce + 2, kScatter = kReduce + 3;

// What follows the library's name in profiling_name (torch/distributed/flight_recorder, types.py).
struct Named {
  std::string_view name;
  uint8_t collective;
};
constexpr Named kNamed[] = {{"all_gather", SPF_ALL_GATHER},
                            {"all_gather_single", SPF_ALL_GATHER},
                            {"_all_gather_base", SPF_ALL_GATHER},
                            {"all_gather_into_tensor_coalesced", SPF_ALL_GATHER},
                            {"allgather_coalesced", SPF_ALL_GATHER},
                            {"ALLGATHER_coalesced", SPF_ALL_GATHER},
                            {"reduce_scatter", SPF_REDUCE_SCATTER},
                            {"reduce_scatter_single", SPF_REDUCE_SCATTER},
                            {"_reduce_scatter_base", SPF_REDUCE_SCATTER},
                            {"reduce_scatter_tensor_coalesced", SPF_REDUCE_SCATTER},
                            {"REDUCE_SCATTER_coalesced", SPF_REDUCE_SCATTER},
                            {"all_reduce", SPF_ALL_REDUCE},
                            {"allreduce_coalesced", SPF_ALL_REDUCE},
                            {"broadcast", SPF_BROADCAST},
                            {"_broadcast_oop", SPF_BROADCAST},
                            {"all_to_all", SPF_ALL_TO_ALL_V},
                            {"all_to_all_single", SPF_ALL_TO_ALL_V},
                            {"all_to_all_v_single", SPF_ALL_TO_ALL_V},
                            {"send", SPF_SEND},
                            {"recv", SPF_RECV},
                            {"reduce", kReduce},
                            {"_reduce_oop", kReduce},
                            {"all_reduce_barrier", kBarrier},
                            {"barrier", kBarrier},
                            {"gather", kGather},
                            {"scatter", kScatter}};
// They issue no operation of their own: the end of a group of calls, and communicators.
constexpr std::string_view kSilent[] = {"coalesced", "split", "new_window"};

struct NamedDtype {
  std::string_view name;
  uint8_t dtype;
};
constexpr NamedDtype kDtypes[] = {{"Byte", SPF_U8},       {"Int", SPF_I32},  {"Long", SPF_I64},
                                  {"BFloat16", SPF_BF16}, {"Half", SPF_F16}, {"Float", SPF_F32},
                                  {"Double", SPF_F64}};

int64_t Whole(std::string_view text) {
  int64_t number = -1;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() ? number : -1;
}

// "[0, 1, 2]", as torch writes a group's ranks.
std::vector<int32_t> RanksIn(std::string_view text) {
  constexpr int64_t kMostRank = 1 << 24;
  std::vector<int32_t> ranks;
  for (size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    const int64_t rank = Whole(text.substr(at, end - at));
    if (rank < 0 || rank > kMostRank)
      throw FormatError("\"ranks\":\"" + std::string(text) + "\" are no ranks");
    ranks.push_back(static_cast<int32_t>(rank));
    at = end;
  }
  return ranks;
}

class Reader {
 public:
  Reader(const ValueTree& tree, Dump& dump) : tree_(tree), dump_(dump) {}

  void Read(const Value& root) {
    Groups(root);
    size_t number = 0;
    for (const Value& entry : tree_.ListAt(root, "entries")) {
      try {
        if (number == 0) dump_.whole = tree_.IntAt(entry, "record_id") == 0;
        Add(entry);
      } catch (const FormatError& error) {
        throw FormatError("entry " + std::to_string(number) + ": " + error.what());
      }
      ++number;
    }
  }

 private:
  void Groups(const Value& root) {
    const Value* config = tree_.Find(root, "pg_config");
    if (config == nullptr || config->type != Value::Type::kTable) return;
    const std::span<const Value> items = tree_.Items(*config);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      DumpGroup group;
      group.name = tree_.TextAt(items[i + 1], "name");
      group.description = tree_.TextAt(items[i + 1], "desc");
      group.ranks = RanksIn(tree_.TextAt(items[i + 1], "ranks"));
      by_name_.emplace(group.name, static_cast<int32_t>(dump_.groups.size()));
      dump_.groups.push_back(std::move(group));
    }
  }

  int32_t GroupOf(const Value& entry) {
    const std::span<const Value> pair = tree_.ListAt(entry, "process_group");
    if (pair.size() != 2 || pair[0].type != Value::Type::kText ||
        pair[1].type != Value::Type::kText)
      throw FormatError("\"process_group\" is not a name and a description");
    const std::string_view name = ValueTree::TextOf(pair[0]);
    const auto known = by_name_.find(name);
    if (known != by_name_.end()) return known->second;
    const auto index = static_cast<int32_t>(dump_.groups.size());
    by_name_.emplace(name, index);
    dump_.groups.push_back({std::string(name), std::string(ValueTree::TextOf(pair[1])), {}});
    return index;
  }

  int64_t Elements(const Value& entry, std::string_view key) const {
    int64_t all = 0;
    for (const Value& shape : tree_.ListAt(entry, key)) {
      if (shape.type != Value::Type::kList)
        throw FormatError("\"" + std::string(key) + "\" is no list of shapes");
      int64_t elements = 1;
      for (const Value& size : tree_.Items(shape)) {
        constexpr int64_t kMost = int64_t{1} << 40;
        if (size.type != Value::Type::kInt || size.number < 0 || size.number > kMost)
          throw FormatError("\"" + std::string(key) + "\" has a size that cannot be meant");
        elements = std::min(kMost, elements * std::min(size.number, kMost / elements + 1));
        if (elements == 0) break;
      }
      all += elements;
    }
    return all;
  }

  uint8_t DtypeOf(const Value& entry) const {
    for (const char* key : {"input_dtypes", "output_dtypes"}) {
      for (const Value& name : tree_.ListAt(entry, key)) {
        for (const NamedDtype& named : kDtypes) {
          if (name.type == Value::Type::kText && ValueTree::TextOf(name) == named.name)
            return named.dtype;
        }
      }
    }
    return 0;
  }

  // The innermost frame that is not of torch itself; frames are listed from the inside.
  int32_t PlaceOf(const Value& entry) {
    const Value* frames = tree_.Find(entry, "frames");
    if (frames == nullptr || frames->type != Value::Type::kList) return -1;
    for (const Value& frame : tree_.Items(*frames)) {
      const std::string_view file = tree_.TextAt(frame, "filename");
      if (file.find("/torch/") != std::string_view::npos) continue;
      const std::string place(file.substr(file.rfind('/') + 1));
      return Intern(place + ":" + std::to_string(tree_.IntAt(frame, "line")));
    }
    return -1;
  }
  int32_t Intern(const std::string& place) {
    const auto [at, fresh] = places_.try_emplace(place, static_cast<int32_t>(dump_.places.size()));
    if (fresh) dump_.places.push_back(place);
    return at->second;
  }

  void Add(const Value& entry) {
    const std::string_view title = tree_.TextAt(entry, "profiling_name");
    const size_t colon = title.rfind(':');  // nccl:send 1->2
    const std::string_view words = title.substr(colon == std::string_view::npos ? 0 : colon + 1);
    const size_t space = std::min(words.find(' '), words.size());
    const std::string_view name = words.substr(0, space);
    if (std::find(std::begin(kSilent), std::end(kSilent), name) != std::end(kSilent)) return;
    const auto named = std::find_if(std::begin(kNamed), std::end(kNamed),
                                    [&](const Named& one) { return one.name == name; });
    if (named == std::end(kNamed))
      throw FormatError("\"profiling_name\":\"" + std::string(title) +
                        "\" is no operation that is known here");
    Entry row;
    row.group = GroupOf(entry);
    row.collective = named->collective;
    row.dtype = row.collective == kBarrier ? 0 : DtypeOf(entry);
    const Value* retired = tree_.Find(entry, "retired");
    row.completed =
        tree_.TextAt(entry, "state") == "completed" || (retired != nullptr && retired->number != 0);
    row.sequence = tree_.IntAt(entry, "collective_seq_id");
    row.inputs = Elements(entry, "input_sizes");
    row.outputs = Elements(entry, "output_sizes");
    row.place = PlaceOf(entry);
    if (row.collective == SPF_SEND || row.collective == SPF_RECV) {
      const size_t arrow = std::min(words.find_first_of("<>"), words.size());  // 1->2 or 2<-1
      const size_t peer = std::min(words.find_first_of("0123456789?", arrow), words.size());
      row.peer = static_cast<int32_t>(std::min<int64_t>(Whole(words.substr(peer)), INT32_MAX));
    }
    dump_.entries.push_back(row);
  }

  const ValueTree& tree_;
  Dump& dump_;
  std::map<std::string, int32_t, std::less<>> by_name_;
  std::map<std::string, int32_t> places_;
};

// Of a file's name; empty: it is no dump.
std::optional<int32_t> RankOf(const std::filesystem::path& path) {
  const std::string name =
      path.extension() == ".json" ? path.stem().string() : path.filename().string();
  const size_t line = name.rfind('_');
  const int64_t rank =
      line == std::string::npos ? -1 : Whole(std::string_view(name).substr(line + 1));
  if (rank < 0 || rank >= (1 << 24)) return std::nullopt;
  return static_cast<int32_t>(rank);
}

using RankAndFile = std::pair<int32_t, std::filesystem::path>;

// Memory that is used again for the next file.
struct Room {
  std::string bytes;
  ValueTree tree;
};

Dump ReadOne(const RankAndFile& of, Room& room) {
  const std::string name = of.second.string();
  try {
    if (!ReadFileInto(of.second, room.bytes))
      throw std::invalid_argument(name + ": " + std::strerror(errno));
    return ReadDump(room.bytes, of.first, room.tree);
  } catch (const FormatError& error) {
    throw std::invalid_argument(name + ": " + error.what());
  }
}

std::vector<Dump> ReadAll(const std::vector<RankAndFile>& files) {
  std::vector<Dump> dumps(files.size());
  InParallel(files.size(), [&] {
    return [&, room = Room()](size_t i) mutable { dumps[i] = ReadOne(files[i], room); };
  });
  return dumps;
}

}  // namespace

Dump ReadDump(std::string_view bytes, int32_t rank, ValueTree& tree) {
  Dump dump;
  dump.rank = rank;
  tree.Clear();
  if (bytes.starts_with('{')) {
    const JsonTexts texts = ReadJson(bytes, tree);
    Reader(tree, dump).Read(texts.root);
  } else {
    Reader(tree, dump).Read(ReadPickle(bytes, tree));
  }
  return dump;
}

std::vector<Dump> ReadDumps(const std::filesystem::path& folder) {
  std::map<int32_t, std::filesystem::path> files;
  std::error_code missing;
  const std::filesystem::directory_iterator all(folder, missing);
  if (missing) throw std::invalid_argument(folder.string() + ": " + missing.message());
  for (const auto& file : all) {
    const std::optional<int32_t> rank = RankOf(file.path());
    if (!rank) continue;
    const auto [at, fresh] = files.emplace(*rank, file.path());
    if (!fresh)
      throw std::invalid_argument(file.path().string() + " and " + at->second.string() +
                                  " are both of rank " + std::to_string(*rank) +
                                  ": keep dumps of one kind in a folder");
  }
  if (files.empty())
    throw std::invalid_argument(folder.string() +
                                " holds no dump of a flight recorder: files whose names end with _ "
                                "and the rank, as nccl_trace_rank_0");
  return ReadAll({files.begin(), files.end()});
}

}  // namespace shardproof::flight
