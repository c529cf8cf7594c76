// The scene of the refusal cases on a fabric, and what it takes for a case to have gone right.
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

}  // namespace

std::string RunRefusalCases(Fabric& fabric, const std::vector<RefusalCase>& cases) {
  Bench bench(fabric);
  std::string wrong;
  for (const RefusalCase& c : cases) {
    const spf_status status = c.act(bench.scene);
    const std::string message = bench.scene.h->last_error(bench.scene.h);
    if (status != SPF_REFUSED) {
      wrong += c.name + ": answered " + std::to_string(status) + "\n";
      continue;
    }
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
  const std::string text = TraceToText(trace);
  if (TraceToText(ReadTrace(text, "trace")) != text)
    wrong += "the trace is not what is read back\n";
  return wrong;
}

}  // namespace shardproof
