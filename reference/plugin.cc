#include "reference/plugin.h"

#include <memory>

#include "reference/engine.h"

struct spf_engine {
  explicit spf_engine(spf_host* host) : raw(host), engine(host) {}
  spf_host* raw;
  reference::Engine engine;
  bool failed = false;  // an entry call
  std::string plan;     // text of the last one that was asked for
};

namespace reference {
namespace {

spf_status Explained(spf_host* host, spf_status status, const std::string& why) {
  host->explain(host, why.c_str());
  return status;
}

// The boundary: exceptions become statuses, and whoever reads the report learns why.
template <class F>
spf_status Entry(spf_host* host, F&& body) {
  try {
    body();
    return SPF_OK;
  } catch (const spf::Error& error) {
    if (error.status == SPF_ABORTED) return SPF_ABORTED;
    return Explained(host, SPF_FAILED,
                     std::string("the host answered no: ") + host->last_error(host));
  } catch (const Unsupported& error) {
    return Explained(host, SPF_UNSUPPORTED, error.what());
  } catch (const Rejected& error) {
    return Explained(host, SPF_REJECTED, error.what());
  } catch (const GridError& error) {
    return Explained(host, SPF_REJECTED, error.what());
  } catch (const GroupError& error) {
    return Explained(host, SPF_REJECTED, error.what());
  } catch (const std::exception& error) {
    return Explained(host, SPF_FAILED, error.what());
  }
}

template <class F>
spf_status Entry(spf_engine* e, F&& body) {
  const spf_status status = Entry(e->raw, body);
  e->failed |= status != SPF_OK;
  return status;
}

spf_status Create(spf_host* host, spf_engine** out) {
  *out = nullptr;
  auto engine = std::make_unique<spf_engine>(host);
  const spf_status configured = Entry(host, [&] { engine->engine.Configure(); });
  if (configured != SPF_OK) return configured;
  *out = engine.release();
  return Entry(*out, [&] { (*out)->engine.Build(); });
}

// The entry call that a member function of the engine answers.
template <auto kCall, class Argument>
spf_status Call(spf_engine* e, Argument argument) {
  return Entry(e, [&] { (e->engine.*kCall)(argument); });
}

const char* PlanOf(spf_engine* e, int64_t step, int32_t all) {
  e->plan = e->engine.PlanText(step, all != 0);
  return e->plan.c_str();
}

void Destroy(spf_engine* e) {
  const std::unique_ptr<spf_engine> owned(e);
  if (!e->failed) Entry(e, [&] { e->engine.Destroy(); });
  if (e->failed) Entry(e->raw, [&] { e->engine.GiveBack(); });
}

}  // namespace

const spf_plugin* ReferencePlugin(uint32_t host_abi_major) {
  static const spf_plugin plugin = [] {
    spf_plugin p{};
    p.size = sizeof p;
    p.abi_major = SPF_ABI_MAJOR;
    p.abi_minor = SPF_ABI_MINOR;
    p.name = "reference";
    p.version = "1.0";
    p.create = Create;
    p.train_step = Call<&Engine::TrainStep>;
    p.eval_step = Call<&Engine::EvalStep>;
    p.save = Call<&Engine::Save>;
    p.load = Call<&Engine::Load>;
    p.destroy = Destroy;
    p.plan = PlanOf;
    return p;
  }();
  return host_abi_major == SPF_ABI_MAJOR ? &plugin : nullptr;
}

}  // namespace reference
