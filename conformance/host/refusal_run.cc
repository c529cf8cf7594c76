// The scene of the refusal cases on a fabric, and what it takes for a case to have gone right.
#include <map>

#include "conformance/common/at.h"
#include "conformance/host/refusal_cases.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof {

namespace {

// Two hosts on the rank's fabric, and what the cases need.
struct Bench {
  explicit Bench(Fabric& fabric)
      : model(ModelConfig{}, 64),
        recorder(fabric.rank(), fabric.world(), "refusals", RecordLevel::kOrder) {
    std::vector<int32_t> world(static_cast<size_t>(fabric.world()));
    for (int32_t r = 0; r < fabric.world(); ++r) At(world, r) = r;
    for (int i = 0; i < 2; ++i) {
      HostConfig config;
      config.instance = i;
      config.model = &model;
      config.data_ranks = fabric.world();
      config.data_rank = fabric.rank();
      config.groups = {{"world", "i" + std::to_string(i) + "/world", world},
                       {"alone",
                        "i" + std::to_string(i) + "/alone" + std::to_string(fabric.rank()),
                        {fabric.rank()}}};
      hosts[i] = std::make_unique<Host>(config, fabric, recorder);
      hosts[i]->BeginCall("train_step", 0);
    }
    scene.h = hosts[0]->table();
    scene.other = hosts[1]->table();
    scene.rank = fabric.rank();
    scene.n = fabric.world();
    spf::Host mine(scene.h), other(scene.other);
    scene.world = mine.Group("world");
    scene.foreign_world = other.Group("world");
    scene.stream = mine.Stream("main");
    scene.dead_stream = mine.Stream("dead");
    scene.foreign_stream = other.Stream("foreign");
    scene.event = mine.Event();
    scene.dead_event = mine.Event();
    scene.foreign_event = other.Event();
    scene.block = mine.Alloc(scene.stream, 256, spf::For(SPF_FOR_SCRATCH));
    scene.pinned = mine.Alloc(scene.stream, 64, spf::For(SPF_FOR_SCRATCH), SPF_PINNED);
    scene.alone = mine.Group("alone");
    scene.dead_group = mine.CreateGroup(scene.alone, "dead", std::vector<int32_t>{0});
    mine.DestroyGroup(scene.dead_group);
    scene.registered = mine.Alloc(scene.stream, 64, spf::For(SPF_FOR_SCRATCH), SPF_REGISTRABLE);
    mine.Register(scene.alone, scene.registered);
    spf_addr freed = scene.freed = mine.Alloc(scene.stream, 1 << 20, spf::For(SPF_FOR_GRAD));
    mine.Free(scene.stream, freed);
    scene.h->event_destroy(scene.h, scene.dead_event);
    scene.h->stream_destroy(scene.h, scene.dead_stream);
  }
  Model model;
  Recorder recorder;
  std::unique_ptr<Host> hosts[2];
  RefusalScene scene;
};

// What the trace says that the refused call would have broken.
Breaks BreaksOf(const RefusalCase& c) {
  static const std::map<std::string, Breaks, std::less<>> kByName = {
      {"foreign parent", Breaks::kPG14},
      {"foreign group", Breaks::kPG14},
      {"registered twice", Breaks::kGE17},
      {"registered block freed", Breaks::kGE17},
      {"group of a registered block destroyed", Breaks::kGE17},
      {"freed block registered", Breaks::kGE18},
      {"free of nothing", Breaks::kGE18},
      {"double free", Breaks::kGE18},
      {"copy from freed block", Breaks::kGE18},
      {"copy past the end", Breaks::kGE18},
      {"host access past the end", Breaks::kGE18},
      {"empty table entry", Breaks::kGE18},
      {"dead table entry", Breaks::kGE18},
      {"dead span", Breaks::kGE18},
      {"publish from a freed block", Breaks::kGE18},
      {"dead send buffer", Breaks::kGE18},
      {"root without a buffer", Breaks::kGE18},
      {"receive past the end", Breaks::kGE18},
      {"dead group", Breaks::kGE19},
      {"dead stream", Breaks::kGE19},
      {"dead event", Breaks::kGE19},
      {"event destroyed twice", Breaks::kGE19},
      {"stream destroyed twice", Breaks::kGE19},
  };
  const auto at = kByName.find(c.name);
  return at == kByName.end() ? Breaks::kNothing : at->second;
}

}  // namespace

std::string RunRefusalCases(Fabric& fabric, const std::vector<RefusalCase>& cases) {
  Bench bench(fabric);
  std::string wrong;
  std::vector<const RefusalCase*> due;  // those that were refused
  for (const RefusalCase& c : cases) {
    const spf_status status = c.act(bench.scene);
    const std::string message = bench.scene.h->last_error(bench.scene.h);
    if (status != SPF_REFUSED) {
      wrong += c.name + ": answered " + std::to_string(status) + "\n";
      continue;
    }
    due.push_back(&c);
    std::vector<std::string> says = c.says;
    says.push_back("rank " + std::to_string(fabric.rank()));
    if (!message.starts_with(c.call + ": "))
      wrong += c.name + ": does not begin with the call: " + message + "\n";
    for (const std::string& part : says) {
      if (message.find(part) == std::string::npos)
        wrong += c.name + ": lacks \"" + part + "\": " + message + "\n";
    }
  }
  bench.hosts[0]->EndCall(SPF_OK);
  const Trace trace = bench.recorder.Finish(TraceEnd::kComplete, "");
  size_t next = 0;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kRefused || event.instance != 0 || next == due.size()) continue;
    const RefusalCase& c = *due[next++];
    if (event.breaks != static_cast<uint8_t>(BreaksOf(c)))
      wrong += c.name + ": the trace says that it breaks \"" +
               std::string(At(kBreakable, event.breaks)) + "\"\n";
  }
  const std::string text = TraceToText(trace);
  if (TraceToText(ReadTrace(text, "trace")) != text)
    wrong += "the trace is not what is read back\n";
  return wrong;
}

}  // namespace shardproof
