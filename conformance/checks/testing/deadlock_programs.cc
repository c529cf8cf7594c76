#include "conformance/checks/testing/deadlock_programs.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

using nlohmann::json;

void ReadVerdicts(const json& expect, DeadlockProgram& program) {
  program.matching = expect.at("matching");
  program.profiles = expect.at("profiles").get<std::map<std::string, std::string>>();
  if (expect.contains("e3")) program.e3 = expect.at("e3").get<bool>();
  if (expect.contains("slots")) {
    const json& slots = expect.at("slots");
    program.spin = slots.at("spin").get<std::vector<int32_t>>();
    program.resident = slots.at("resident").get<std::vector<int32_t>>();
    program.max_spinning = slots.at("max_spinning").get<std::vector<int32_t>>();
    program.max_resident = slots.at("max_resident").get<std::vector<int32_t>>();
  }
  program.one_slot_any_order = expect.value("one_slot_any_order", "");
  program.group_as_one_operation = expect.value("group_as_one_operation", "");
  program.launch_queue_depth_1 = expect.value("launch_queue_depth_1", "");
  program.has_slots_in_order = expect.contains("slots_in_order");
  if (program.has_slots_in_order && !expect.at("slots_in_order").is_null()) {
    program.slots_in_order = expect.at("slots_in_order").get<int32_t>();
  }
  if (!expect.contains("races")) return;
  program.races.emplace();
  for (const json& race : expect.at("races")) {
    const auto& operations = race.at("operations");
    program.races->push_back({race.at("rank").get<int32_t>(), operations.at(0).get<int32_t>(),
                              operations.at(1).get<int32_t>()});
  }
}

// Builds one rank's trace from its operations.
class TraceWriter {
 public:
  TraceWriter(const DeadlockProgram& program, int32_t rank) : program_(program) {
    trace_.rank = rank;
    trace_.world = static_cast<int32_t>(program.ranks.size());
    trace_.case_id = program.name;
    trace_.provides = Provides::All();
    for (const auto& [name, ranks] : program.communicators) {
      if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
      groups_[name] = static_cast<int32_t>(trace_.groups.size());
      trace_.groups.push_back({name, name, 0, ranks});
    }
  }

  // Takes the operations of each thread in turn, as far as they go or, with random, any number of
  // them; an await waits until its post was taken.
  Trace Write(std::mt19937* random) {
    const auto& threads = At(program_.ranks, trace_.rank);
    std::vector<size_t> next(threads.size(), 0);
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t t = 0; t < threads.size(); ++t) {
        while (next[t] < threads[t].size() && Ready(threads[t][next[t]])) {
          moved = true;
          if (random != nullptr && (*random)() % 2 == 0) break;
          Add(threads[t][next[t]++], static_cast<uint16_t>(t));
        }
      }
    }
    for (size_t t = 0; t < threads.size(); ++t) {
      if (next[t] < threads[t].size())
        throw std::runtime_error(program_.name + ": an await without a post");
    }
    return std::move(trace_);
  }

 private:
  static int32_t Number(const std::string& word) { return std::stoi(word.substr(1)); }

  bool Ready(const std::string& operation) const {
    return !operation.starts_with("await ") || posts_.contains(Number(operation.substr(6)));
  }

  // "read=b0", or "write=b0[16,32)".
  static Range RangeOf(const std::string& word) {
    const bool read = word[0] == 'r';
    Range range{Number(word.substr(read ? 5 : 6)), read ? kRead : kWrite, 0, 64};
    const size_t from = word.find('[');
    if (from != std::string::npos) {
      range.offset = std::stoi(word.substr(from + 1));
      range.length = std::stoi(word.substr(word.find(',') + 1)) - range.offset;
    }
    return range;
  }

  uint8_t Kind(const std::string& word) const {
    static const std::map<std::string, int> kKinds = {{"all_gather", SPF_ALL_GATHER},
                                                      {"reduce_scatter", SPF_REDUCE_SCATTER},
                                                      {"all_reduce", SPF_ALL_REDUCE},
                                                      {"all_to_all", SPF_ALL_TO_ALL_V},
                                                      {"broadcast", SPF_BROADCAST},
                                                      {"reduce", kReduce},
                                                      {"send", SPF_SEND},
                                                      {"recv", SPF_RECV}};
    const auto at = kKinds.find(word);
    return at == kKinds.end() ? uint8_t{0} : static_cast<uint8_t>(at->second);
  }

  void Add(const std::string& operation, uint16_t thread) {
    std::istringstream words(operation);
    std::vector<std::string> rest;
    for (std::string word; words >> word;) rest.push_back(word);
    Event event;
    event.thread = thread;
    event.ranges.begin = static_cast<uint32_t>(trace_.ranges.size());
    while (rest.back().starts_with("read=") || rest.back().starts_with("write=")) {
      trace_.ranges.push_back(RangeOf(rest.back()));
      rest.pop_back();
    }
    event.ranges.end = static_cast<uint32_t>(trace_.ranges.size());
    Fill(rest, event);
    trace_.events.push_back(event);
  }

  void FillCollective(const std::vector<std::string>& words, size_t kind, Event& event) {
    event.kind = EventKind::kCollective;
    event.collective = Kind(words[kind]);
    event.dtype = SPF_F32;
    event.count = 1;
    event.group = groups_.at(words[kind + 1]);
    const auto& ranks = At(trace_.groups, event.group).world_ranks;
    for (size_t i = kind + 2; i < words.size(); ++i) {
      if (words[i][0] == 's') event.stream = Number(words[i]);
      if (words[i][0] == 'q') event.request = Number(words[i]);
      const size_t equals = words[i].find('=');
      if (equals == std::string::npos) continue;
      const auto at = std::find(ranks.begin(), ranks.end(), std::stoi(words[i].substr(equals + 1)));
      event.peer = static_cast<int32_t>(at - ranks.begin());
    }
    if (event.collective != SPF_ALL_TO_ALL_V) return;
    event.send_counts.begin = event.recv_counts.begin =
        static_cast<uint32_t>(trace_.numbers.size());
    trace_.numbers.insert(trace_.numbers.end(), ranks.size(), 1);
    event.send_counts.end = event.recv_counts.end = static_cast<uint32_t>(trace_.numbers.size());
  }

  void Fill(const std::vector<std::string>& words, Event& event) {
    const std::string& name = words[0];
    if (Kind(name) != 0) return FillCollective(words, 0, event);
    if (name == "host" || name == "start") return FillCollective(words, 1, event);
    static const std::map<std::string, EventKind> kNames = {
        {"kernel", EventKind::kLaunch},      {"record", EventKind::kRecord},
        {"wait", EventKind::kWait},          {"group_begin", EventKind::kGroupBegin},
        {"group_end", EventKind::kGroupEnd}, {"host_access", EventKind::kHostAccess},
        {"finish", EventKind::kRequestWait}, {"post", EventKind::kThreadPost},
        {"await", EventKind::kThreadAwait}};
    if (name == "sync") {
      const char what = words.at(1)[0];
      event.kind = what == 's'   ? EventKind::kStreamSync
                   : what == 'e' ? EventKind::kEventSync
                                 : EventKind::kDeviceSync;
    } else {
      event.kind = kNames.at(name);
    }
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "device") continue;
      if (words[i][0] == 's') event.stream = Number(words[i]);
      if (words[i][0] == 'e') event.event = Number(words[i]);
      if (words[i][0] == 'q' || words[i][0] == 'f') event.id = Number(words[i]);
    }
    if (event.kind == EventKind::kThreadPost) posts_[event.id] = true;
  }

  const DeadlockProgram& program_;
  Trace trace_;
  std::map<std::string, int32_t> groups_;
  std::map<int32_t, bool> posts_;
};

}  // namespace

std::vector<DeadlockProgram> ReadDeadlockPrograms(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<DeadlockProgram> programs;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    try {
      const json row = json::parse(line);
      DeadlockProgram& program = programs.emplace_back();
      program.name = row.at("name");
      program.why = row.value("why", "");
      program.communicators =
          row.at("communicators").get<std::map<std::string, std::vector<int32_t>>>();
      program.ranks = row.at("ranks").get<std::vector<std::vector<std::vector<std::string>>>>();
      ReadVerdicts(row.at("expect"), program);
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ", line " + std::to_string(number) + ": " + error.what());
    }
  }
  return programs;
}

std::vector<Trace> ToTraces(const DeadlockProgram& program, std::mt19937* random) {
  std::vector<Trace> traces;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    traces.push_back(TraceWriter(program, static_cast<int32_t>(rank)).Write(random));
  }
  return traces;
}

}  // namespace shardproof::graph
