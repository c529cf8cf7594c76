// failed_call_test: does destroy give everything back, whichever call of the host has failed?
//
// The reference runs behind a table that counts what it takes and gives back, and that answers no
// to one call of an entry call. destroy comes at once, as an embedding program would do it.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <type_traits>

#include "conformance/runner/sim_run.h"
#include "reference/plugin.h"

namespace shardproof {
namespace {

const spf_plugin& Reference() { return *reference::ReferencePlugin(SPF_ABI_MAJOR); }

// What this run is about; set before it starts. Ranks are fibers of one thread.
struct Experiment {
  int64_t fails_at = 0;  // which call of the entry calls, counted on each rank
  int64_t calls = 0;     // the most that a rank made
  bool failed = false;
  std::string left;  // of some rank, after destroy
} experiment;

// One engine with the table that it sees.
struct Watched : spf_host {
  spf_host* inner = nullptr;
  spf_engine* engine = nullptr;
  bool armed = false;  // in an entry call other than create and destroy
  int64_t calls = 0;
  std::set<spf_addr> blocks;
  std::set<spf_event> events;
  std::set<spf_stream> streams;

  bool AnswersNo() {
    if (!armed || calls++ != experiment.fails_at) return false;
    experiment.failed = true;
    return true;
  }
  std::string Left() const {
    const auto text = [](size_t n, const char* what) {
      return n == 0 ? std::string() : std::to_string(n) + " " + what + " ";
    };
    return text(blocks.size(), "blocks") + text(events.size(), "events") +
           text(streams.size(), "streams");
  }
};
Watched& Of(spf_host* h) { return *static_cast<Watched*>(h); }
Watched& Of(spf_engine* e) { return *reinterpret_cast<Watched*>(e); }

// Hands a call on, or answers no.
template <auto entry>
struct Through;
template <class R, class... A, R (*spf_host::*entry)(spf_host*, A...)>
struct Through<entry> {
  static R Call(spf_host* h, A... arguments) {
    if constexpr (std::is_same_v<R, spf_status>) {
      if (Of(h).AnswersNo()) return SPF_NO_MEMORY;
    }
    return (Of(h).inner->*entry)(Of(h).inner, arguments...);
  }
};
template <auto entry>
void PassOn(Watched& w) {
  w.*entry = Through<entry>::Call;
}

void PassAllOn(Watched& w) {
  PassOn<&spf_host::last_error>(w), PassOn<&spf_host::explain>(w), PassOn<&spf_host::knob>(w);
  PassOn<&spf_host::model>(w), PassOn<&spf_host::program>(w), PassOn<&spf_host::group>(w);
  PassOn<&spf_host::group_create>(w), PassOn<&spf_host::group_info>(w);
  PassOn<&spf_host::group_destroy>(w), PassOn<&spf_host::stream_sync>(w);
  PassOn<&spf_host::event_record>(w), PassOn<&spf_host::event_wait>(w);
  PassOn<&spf_host::event_sync>(w), PassOn<&spf_host::copy>(w), PassOn<&spf_host::host_access>(w);
  PassOn<&spf_host::communicate>(w), PassOn<&spf_host::compute>(w), PassOn<&spf_host::launch>(w);
  PassOn<&spf_host::init>(w), PassOn<&spf_host::publish>(w), PassOn<&spf_host::mark>(w);
  PassOn<&spf_host::group_register>(w);
}

// Streams, events and blocks: counted. What gives back is never refused.
void Count(Watched& w) {
  w.stream_create = [](spf_host* h, const char* name, int32_t priority, spf_stream* out) {
    const spf_status status = Of(h).inner->stream_create(Of(h).inner, name, priority, out);
    if (status == SPF_OK) Of(h).streams.insert(*out);
    return status;
  };
  w.stream_destroy = [](spf_host* h, spf_stream stream) {
    Of(h).streams.erase(stream);
    return Of(h).inner->stream_destroy(Of(h).inner, stream);
  };
  w.event_create = [](spf_host* h, spf_event* out) {
    if (Of(h).AnswersNo()) return SPF_NO_MEMORY;
    const spf_status status = Of(h).inner->event_create(Of(h).inner, out);
    if (status == SPF_OK) Of(h).events.insert(*out);
    return status;
  };
  w.event_destroy = [](spf_host* h, spf_event event) {
    Of(h).events.erase(event);
    return Of(h).inner->event_destroy(Of(h).inner, event);
  };
  w.group_deregister = [](spf_host* h, spf_group group, spf_addr block) {
    const spf_status status = Of(h).inner->group_deregister(Of(h).inner, group, block);
    EXPECT_TRUE(status == SPF_OK || status == SPF_ABORTED)
        << "call " << experiment.fails_at << ": " << Of(h).inner->last_error(Of(h).inner);
    return status;
  };
  w.mem_alloc = [](spf_host* h, spf_stream stream, uint64_t bytes, spf_place place, spf_label label,
                   spf_addr* out) {
    if (Of(h).AnswersNo()) return SPF_NO_MEMORY;
    const spf_status status = Of(h).inner->mem_alloc(Of(h).inner, stream, bytes, place, label, out);
    if (status == SPF_OK && *out != 0) Of(h).blocks.insert(*out);
    return status;
  };
  w.mem_free = [](spf_host* h, spf_stream stream, spf_addr address) {
    Of(h).blocks.erase(address);
    const spf_status status = Of(h).inner->mem_free(Of(h).inner, stream, address);
    EXPECT_EQ(status, SPF_OK) << "call " << experiment.fails_at << ": "
                              << Of(h).inner->last_error(Of(h).inner);
    return status;
  };
}

void DestroyWatched(Watched& w) {
  if (w.engine == nullptr) return;
  Reference().destroy(std::exchange(w.engine, nullptr));
  if (!w.Left().empty()) experiment.left = w.Left();
}

template <class F>
spf_status Armed(spf_engine* e, F&& call) {
  Watched& w = Of(e);
  w.armed = true;
  const spf_status status = call(w.engine);
  w.armed = false;
  experiment.calls = std::max(experiment.calls, w.calls);
  if (status != SPF_OK) DestroyWatched(w);
  return status;
}

// The table of the runner's built-in engine.
spf_plugin WatchedPlugin() {
  spf_plugin p = Reference();
  p.create = [](spf_host* host, spf_engine** out) {
    auto watched = std::make_unique<Watched>();
    static_cast<spf_host&>(*watched) = *host;
    watched->inner = host;
    PassAllOn(*watched);
    Count(*watched);
    const spf_status status = Reference().create(watched.get(), &watched->engine);
    *out = reinterpret_cast<spf_engine*>(watched.release());
    return status;
  };
  p.train_step = [](spf_engine* e, int64_t step) {
    return Armed(e, [&](spf_engine* inner) { return Reference().train_step(inner, step); });
  };
  p.eval_step = [](spf_engine* e, int64_t step) {
    return Armed(e, [&](spf_engine* inner) { return Reference().eval_step(inner, step); });
  };
  p.save = [](spf_engine* e, const char* folder) {
    return Armed(e, [&](spf_engine* inner) { return Reference().save(inner, folder); });
  };
  p.load = [](spf_engine* e, const char* folder) {
    return Armed(e, [&](spf_engine* inner) { return Reference().load(inner, folder); });
  };
  p.destroy = [](spf_engine* e) {
    const std::unique_ptr<Watched> watched(&Of(e));
    DestroyWatched(*watched);
  };
  return p;
}

class FailedCall : public testing::TestWithParam<const char*> {};

TEST_P(FailedCall, LeavesNothingBehindAfterDestroy) {
  const Case c = ParseId(GetParam());
  const Models models = MakeModels(c);
  const Plugin plugin("builtin:reference");
  SimRunOptions options;
  options.rank.level = RecordLevel::kOff;
  options.rank.folder = testing::TempDir() + "failed_call";
  std::filesystem::create_directories(options.rank.folder);
  const auto run = [&](int64_t fails_at) {
    experiment = {fails_at, 0, false, ""};
    RunOnSim(c, models, plugin, options);
  };
  run(-1);
  ASSERT_FALSE(experiment.failed);
  ASSERT_EQ(experiment.left, "") << "without a failure";
  const int64_t calls = experiment.calls;
  ASSERT_GT(calls, 100);
  int64_t tried = 0;
  for (int64_t n = 0; n < calls; n += std::max<int64_t>(1, calls / 150), ++tried) {
    run(n);
    EXPECT_TRUE(experiment.failed) << "call " << n;
    EXPECT_EQ(experiment.left, "") << "call " << n << " of " << calls << " failed";
  }
  std::cout << GetParam() << ": " << tried << " of " << calls << " calls\n";
}

INSTANTIATE_TEST_SUITE_P(Cases, FailedCall,
                         testing::Values("w2.zero3.k2.adamw.clip1.do=te", "w2.zero2.acc16.nan.do=t",
                                         "w4.zero3.n2.hfsdp.do=t",
                                         "w4.zero3.n2.hfsdp.twin.ub.do=te", "w2.ddp.muon.do=tsl",
                                         "w2.zero3.ep2.k2.do=t.moe4.shared.1f1b.dw",
                                         "w4.ddp.ep2.pp2.k2.do=te.layers4.moe4.vpp2.1f1b",
                                         "w2.lw.k2.ogr.opg.bs300.muon.zeros.skip9.do=tet",
                                         "w4.lw.ep2.do=t.moe4.bcast"));

}  // namespace
}  // namespace shardproof

extern "C" const spf_plugin* shardproof_plugin(uint32_t) {
  static const spf_plugin plugin = shardproof::WatchedPlugin();
  return &plugin;
}
