#include "conformance/checks/symmetry/world_folder.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/common/at.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof::symmetry {
namespace {

using nlohmann::json;

constexpr const char* kNames = "names.jsonl";
constexpr int64_t kMostRanks = 1 << 20;

// Runs of equal steps: [first, step, how many].
json StepsOf(const std::vector<int32_t>& numbers) {
  json runs = json::array();
  for (size_t i = 0; i < numbers.size();) {
    const int32_t step = i + 1 < numbers.size() ? numbers[i + 1] - numbers[i] : 1;
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] - numbers[end - 1] == step) ++end;
    runs.push_back({numbers[i], step, end - i});
    i = end;
  }
  return runs;
}

// Of one line of the file.
class Line {
 public:
  Line(std::string file, int64_t number, const std::string& text)
      : file_(std::move(file)), number_(number) {
    row_ = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!row_.is_object()) Refuse("no JSON object");
  }
  bool Has(const char* key) const { return row_.contains(key); }
  int64_t Number(const char* key, int64_t most) const { return Number(Of(key), key, most); }
  std::string Text(const char* key) const {
    if (!Of(key).is_string()) Refuse(std::string(key) + " is no text");
    return Of(key).get<std::string>();
  }
  std::vector<int64_t> List(const char* key, int64_t most) const {
    if (!Of(key).is_array()) Refuse(std::string(key) + " is no list");
    std::vector<int64_t> list;
    for (const json& item : Of(key)) list.push_back(Number(item, key, most));
    return list;
  }
  std::vector<int32_t> Steps(const char* key, int64_t world) const {
    std::vector<int32_t> numbers;
    if (!Of(key).is_array()) Refuse(std::string(key) + " is no list");
    for (const json& run : Of(key)) {
      const bool good = run.is_array() && run.size() == 3 && run[0].is_number_integer() &&
                        run[1].is_number_integer() && run[2].is_number_integer();
      if (!good) Refuse(std::string(key) + ": a run is [first, step, how many]");
      int64_t at = Number(run[0], key, world - 1);
      const int64_t step = run[1].get<int64_t>(), n = Number(run[2], key, world);
      if (step < -world || step > world) Refuse(std::string(key) + ": a step is too large");
      for (int64_t i = 0; i < n; ++i, at += step) {
        if (at < 0 || at >= world || std::ssize(numbers) >= world)
          Refuse(std::string(key) + ": a run leaves the world");
        numbers.push_back(static_cast<int32_t>(at));
      }
    }
    return numbers;
  }
  [[noreturn]] void Refuse(const std::string& why) const { throw TraceError(file_, number_, why); }

 private:
  const json& Of(const char* key) const {
    if (!Has(key)) Refuse(std::string("no key ") + key);
    return row_.at(key);
  }
  int64_t Number(const json& item, const char* key, int64_t most) const {
    if (!item.is_number_integer()) Refuse(std::string(key) + " is no number");
    const auto number = item.get<int64_t>();
    if (number < 0 || number > most)
      Refuse(std::string(key) + " = " + std::to_string(number) + " is not in 0.." +
             std::to_string(most));
    return number;
  }

  const std::string file_;
  const int64_t number_;
  json row_;
};

class Reading {
 public:
  explicit Reading(const std::filesystem::path& folder)
      : folder_(folder), file_((folder / kNames).string()), in_(file_) {
    if (!in_) throw TraceError(file_, 0, "cannot be read");
  }

  CompactWorld Run() {
    const Line header = Next();
    if (!header.Has("shardproof_names") || header.Number("shardproof_names", 1) != 1)
      header.Refuse("the first line is no header of version 1");
    size_ = header.Number("world", kMostRanks);
    id_ = header.Text("case");
    std::string text;
    while (std::getline(in_, text)) {
      const Line line(file_, ++number_, text);
      if (line.Has("comm")) {
        Communicator(line);
      } else {
        Rank(line);
      }
    }
    if (world_.world() != size_)
      throw TraceError(
          file_, 0,
          "names of " + std::to_string(world_.world()) + " of " + std::to_string(size_) + " ranks");
    if (const std::string why = Contradiction(world_); !why.empty())
      throw TraceError(file_, 0, why);
    return std::move(world_);
  }

 private:
  Line Next() {
    std::string text;
    std::getline(in_, text);
    return Line(file_, ++number_, text);
  }

  void Communicator(const Line& line) {
    if (line.Number("comm", kMostRanks * 16) != std::ssize(world_.comms))
      line.Refuse("communicators are numbered from 0 on");
    world_.comms.push_back({line.Text("key"), line.Steps("ranks", size_)});
  }

  void Rank(const Line& line) {
    const int32_t rank = world_.world();
    if (line.Number("rank", size_ - 1) != rank) line.Refuse("ranks are in order from 0 on");
    const auto like = static_cast<int32_t>(line.Number("like", rank));
    Names names;
    const std::vector<int64_t> comms = line.List("comms", std::ssize(world_.comms) - 1);
    names.comms.assign(comms.begin(), comms.end());
    names.samples = line.List("samples", INT64_MAX);
    if (like == rank) {
      shapes_[rank] = static_cast<int32_t>(world_.shapes.size());
      world_.shapes.push_back(ShapeOfFile(line, rank, names));
    }
    const auto at = shapes_.find(like);
    if (at == shapes_.end())
      line.Refuse("rank " + std::to_string(like) + " has no trace of its own");
    names.shape = at->second;
    world_.ranks.push_back(std::move(names));
  }

  Shape ShapeOfFile(const Line& line, int32_t rank, const Names& names) const {
    Trace trace = ReadTraceFile(folder_ / TraceFileName(rank));
    if (trace.rank != rank || trace.world != size_ || trace.case_id != id_)
      line.Refuse("the trace of the rank is of another rank, world or case");
    return {std::move(trace), {}, FirstOf(names)};
  }

  const std::filesystem::path folder_;
  const std::string file_;
  std::ifstream in_;
  int64_t number_ = 0, size_ = 0;
  std::string id_;
  std::map<int32_t, int32_t> shapes_;  // by the rank that stands for it
  CompactWorld world_;
};

}  // namespace

void WriteWorldFolder(const CompactWorld& world, const std::filesystem::path& folder) {
  std::vector<Trace> traces;
  for (const Shape& shape : world.shapes) traces.push_back(shape.trace);
  WriteTraceFolder(traces, folder);
  const std::filesystem::path path = folder / kNames;
  std::ofstream out(path);
  out << json{{"shardproof_names", 1},
              {"world", world.world()},
              {"case", world.shapes.empty() ? "" : world.shapes.front().trace.case_id}}
             .dump()
      << '\n';
  for (size_t i = 0; i < world.comms.size(); ++i)
    out << json{{"comm", i},
                {"key", world.comms[i].key},
                {"ranks", StepsOf(world.comms[i].members)}}
               .dump()
        << '\n';
  for (int32_t rank = 0; rank < world.world(); ++rank) {
    const Names& names = At(world.ranks, rank);
    out << json{{"rank", rank},
                {"like", world.ShapeOf(rank).trace.rank},
                {"comms", names.comms},
                {"samples", names.samples}}
               .dump()
        << '\n';
  }
  if (!out.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

bool IsWorldFolder(const std::filesystem::path& folder) {
  std::ifstream in(folder / kNames);
  std::string text;
  if (!std::getline(in, text)) return false;
  const json header = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object() || !header.contains("world") || !header.at("world").is_number_integer())
    return true;  // whoever reads it says what is wrong
  int64_t traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    traces += name.starts_with("trace.") && name.ends_with(".jsonl") ? 1 : 0;
  }
  return traces < header.at("world").get<int64_t>();
}

CompactWorld ReadWorldFolder(const std::filesystem::path& folder) { return Reading(folder).Run(); }

}  // namespace shardproof::symmetry
