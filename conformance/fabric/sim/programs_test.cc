// Do the simulator's rules agree with the deadlock model? Every fixture program whose operations a
// fabric has is run under all policies; its verdicts were found without the simulator. By T1 of
// the model every run of a program hangs or none does, so one timing decides, and more of them
// must agree.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

using nlohmann::json;

std::vector<json> LoadPrograms() {
  std::vector<json> programs;
  std::ifstream in("fixtures/deadlock/programs.jsonl");
  for (std::string line; std::getline(in, line);) programs.push_back(json::parse(line));
  return programs;
}

// One rank's interpreter for the operations of fixtures/deadlock/FORMAT.md.
class Interpreter {
 public:
  Interpreter(Fabric& f, const json& program) : p_(f) {
    for (const auto& [name, members] : program["communicators"].items()) {
      const auto ranks = members.get<std::vector<int32_t>>();
      members_[name] = ranks;
      if (std::count(ranks.begin(), ranks.end(), f.rank()))
        groups_[name] = f.OpenGroup(name, ranks);
    }
    memory_ = p_.Floats(Stream("s0"), 64);
  }

  // False: no fabric has this operation.
  bool Run(const std::string& text) {
    std::istringstream in(text);
    std::string verb, a, b, c;
    in >> verb >> a >> b >> c;
    if (verb == "kernel") {
      p_.f.Enqueue(Stream(a), "kernel", [] {});
    } else if (verb == "record") {
      p_.f.Record(Event(a), Stream(b));
    } else if (verb == "wait") {
      p_.f.Wait(Event(a), Stream(b));
    } else if (verb == "sync") {
      Sync(a);
    } else if (verb == "group_begin") {
      grouped_ = true;
    } else if (verb == "group_end") {
      grouped_ = false;
      p_.f.Communicate(std::exchange(ops_, {}));
    } else if (verb != "host_access") {
      return Collective(verb, a, b, c);
    }
    return true;
  }

 private:
  int32_t Stream(const std::string& name) {
    if (!streams_.count(name)) streams_[name] = p_.f.CreateStream(name, 0);
    return streams_[name];
  }
  int32_t Event(const std::string& name) {
    if (!events_.count(name)) events_[name] = p_.f.CreateEvent();
    return events_[name];
  }
  void Sync(const std::string& what) {
    if (what == "device") {
      p_.f.Drain();
    } else if (what[0] == 's') {
      p_.f.SyncStream(Stream(what));
    } else {
      p_.f.SyncEvent(Event(what), nullptr);
    }
  }
  bool Collective(const std::string& verb, const std::string& comm, const std::string& stream,
                  const std::string& peer) {
    static const std::map<std::string, int32_t> kKinds{{"all_gather", SPF_ALL_GATHER},
                                                       {"reduce_scatter", SPF_REDUCE_SCATTER},
                                                       {"all_reduce", SPF_ALL_REDUCE},
                                                       {"all_to_all", SPF_ALL_TO_ALL_V},
                                                       {"broadcast", SPF_BROADCAST},
                                                       {"send", SPF_SEND},
                                                       {"recv", SPF_RECV}};
    const auto kind = kKinds.find(verb);
    if (kind == kKinds.end()) return false;
    const auto& members = members_[comm];
    Block recv = memory_;
    recv.host += 32 * sizeof(float);
    CommOp op = p_.Op(kind->second, groups_[comm], Stream(stream), memory_, recv, 1);
    op.send_counts.assign(members.size(), 1);
    op.recv_counts.assign(members.size(), 1);
    const size_t at = peer.find('=');
    const std::string key = peer.substr(0, at);
    if (key == "root" || key == "to" || key == "from") {
      const int32_t rank = std::stoi(peer.substr(at + 1));
      op.peer =
          static_cast<int32_t>(std::find(members.begin(), members.end(), rank) - members.begin());
    }
    if (grouped_) {
      ops_.push_back(op);
    } else {
      p_.f.Communicate({op});
    }
    return true;
  }

  Program p_;
  Block memory_;
  bool grouped_ = false;
  std::vector<CommOp> ops_;
  std::map<std::string, std::vector<int32_t>> members_;
  std::map<std::string, int32_t> groups_, streams_, events_;
};

bool HasAllOperations(const json& program) {
  const std::string text = program["ranks"].dump();
  for (const char* missing : {"\"host ", "\"start ", "\"reduce ", "\"post ", "\"barrier "}) {
    if (text.find(missing) != std::string::npos) return false;
  }
  return true;
}

SimResult RunProgram(const json& program, const SimOptions& options) {
  const json& ranks = program["ranks"];
  const SimResult result = RunSim(static_cast<int>(ranks.size()), options, [&](Fabric& f) {
    Interpreter interpreter(f, program);
    for (const json& operation : ranks[static_cast<size_t>(f.rank())][0]) {
      EXPECT_TRUE(interpreter.Run(operation.get<std::string>())) << operation;
    }
  });
  for (const std::string& error : result.errors) EXPECT_EQ(error, "");
  return result;
}

TEST(Programs, HangExactlyWhereTheModelSaysSo) {
  const auto programs = LoadPrograms();
  ASSERT_GT(programs.size(), 200u);
  int ran = 0, hung = 0, eager_differs = 0;
  for (const json& program : programs) {
    if (!HasAllOperations(program)) continue;
    const json& expect = program["expect"];
    if (expect["matching"] != "ok") {
      RunProgram(program, With(TimingPolicy::kEager));  // must not crash
      continue;
    }
    ++ran;
    const bool e0 = expect["profiles"]["e0"] == "hang",
               eager = expect["profiles"]["eager"] == "hang";
    hung += e0;
    eager_differs += e0 != eager;
    for (const TimingPolicy policy : kTimingPolicies) {
      const bool minimal = policy == TimingPolicy::kRandom || policy == TimingPolicy::kPct;
      for (uint64_t seed = 0; seed < 4; ++seed) {
        EXPECT_EQ(RunProgram(program, With(policy, seed)).deadlock, minimal ? eager : e0)
            << program["name"] << " policy " << static_cast<int>(policy) << " seed " << seed;
      }
    }
  }
  // Of both verdicts there are many, and some that depend on who has to wait.
  EXPECT_GT(ran, 100);
  EXPECT_GT(hung, 20);
  EXPECT_LT(hung, ran - 20);
  EXPECT_GT(eager_differs, 0);
  RecordProperty("programs", ran);
  std::printf("%d programs, %d hang, %d only if sends and roots wait\n", ran, hung, eager_differs);
}

}  // namespace
}  // namespace shardproof
