#include "conformance/host/host.h"

#include <algorithm>
#include <utility>

#include "conformance/host/cpu_executor.h"
#include "conformance/host/host_internal.h"

namespace shardproof {

namespace {

// An entry call that makes more host calls than this will not end by itself: a bound for what can
// be known at no time. abi/README.md states it; the reference needs a tenth at most.
int64_t MostCalls(int64_t microbatches, int64_t modules) {
  return 20000 + 500 * microbatches * modules;
}

}  // namespace

Host::Host(HostConfig config, Fabric& fabric, Recorder& recorder)
    : config_(std::move(config)),
      fabric_(fabric),
      recorder_(recorder),
      model_(*config_.model),
      thread_(std::this_thread::get_id()),
      most_calls_(MostCalls(config_.microbatches, model_.Tables(config_.model_rank).n_modules)) {
  if (config_.executor == nullptr) config_.executor = std::make_shared<CpuExecutor>();
  FillTable();
}

Host::~Host() = default;

void Host::BeginCall(std::string_view what, int64_t step) {
  ++call_;
  step_ = step;
  call_name_ = what;
  inside_call_ = true;
  if (what == "create") {
    const auto init = config_.knobs.find("init_device");
    no_values_yet_ = init != config_.knobs.end() && init->second == "meta";
  }
  calls_ = 0;
  phases_.clear();
  loss_scale_.clear();
  Add(EventKind::kCallBegin).id = static_cast<int32_t>(step);
  recorder_.SetText(what);
  if (Progress* progress = config_.progress; progress != nullptr) {
    if (*last_call_ != '\0') last_before_ = std::string(last_call_) + " in " + call_text_;
    call_text_ = step < 0 ? call_name_ : call_name_ + " " + std::to_string(step);
    Progress::Set(progress->earlier, sizeof progress->earlier, last_before_);
  }
  Beat("");
}

// The caller's code goes on now: whoever watches from outside may want to know whose it is. Calls
// that issue nothing are no progress: an engine may repeat them for ever.
void Host::Beat(const char* call) {
  Progress* progress = config_.progress;
  if (progress == nullptr) return;
  const std::string_view name = call;
  const bool asks = name.ends_with("_sync") || name == "group_info" || name == "host_access";
  if (!asks) progress->beats.fetch_add(1, std::memory_order_relaxed);
  progress->Enter(fabric_.rank());
  Note(call);
}

// On sim other ranks may have run meanwhile.
void Host::Note(const char* call) {
  Progress* progress = config_.progress;
  if (progress == nullptr) return;
  last_call_ = call;
  Progress::Set(progress->call, sizeof progress->call, call_text_);
  Progress::Set(progress->last, sizeof progress->last, call);
}

// What an engine issues is progress, however long it takes; so there is an end to it. From here on
// the run is over, and nothing beats any more.
bool Host::RunsAway() {
  if (++calls_ <= most_calls_) return false;
  runaway_ = "more than " + std::to_string(most_calls_) + " host calls in " + call_name_ +
             (step_ >= 0 ? " " + std::to_string(step_) : "") + ": it goes on and on";
  fabric_.Fail("rank " + std::to_string(fabric_.rank()) + ": " + runaway_);
  return true;
}

void Host::EndCall(int status) {
  std::vector<std::string> foreign;
  {
    const std::lock_guard<std::mutex> lock(foreign_mutex_);
    foreign.swap(foreign_refusals_);
  }
  std::sort(foreign.begin(), foreign.end());  // threads come in any order
  for (const std::string& call : foreign) {
    Refuse(call.c_str(),
           "called from another thread than the one that entered the engine, or from a kernel "
           "function: make host "
           "calls from the entry call's own thread");
  }
  Event& event = Add(EventKind::kCallEnd);
  event.id = static_cast<int32_t>(step_);
  constexpr uint8_t kNoStatus = 255;
  const bool known = status >= SPF_OK && status <= SPF_FAILED;
  event.status = known ? static_cast<uint8_t>(status) : kNoStatus;
  event.flag = answered_aborted_;
  recorder_.SetText(call_name_);
  if (call_name_ != "create") no_values_yet_ = false;
  inside_call_ = false;
}

Event& Host::Add(EventKind kind) {
  Event& event = recorder_.Add(kind, config_.instance);
  event.call = call_;
  return event;
}

std::string Host::Where() const {
  std::string where = "rank " + std::to_string(fabric_.rank()) + ", " + call_name_;
  if (step_ >= 0) where += " " + std::to_string(step_);
  return where;
}

bool Host::CallerIsForeign(const char* call) {
  const std::thread::id caller = std::this_thread::get_id();
  if (caller == thread_ && caller != custom_thread_->load()) return false;
  const std::lock_guard<std::mutex> lock(foreign_mutex_);
  foreign_refusals_.emplace_back(call);
  return true;
}

spf_status Host::Refuse(const char* call, const std::string& why, Breaks breaks) {
  last_error_ = std::string(call) + ": " + why + " (" + Where() + ")";
  if (refusals_++ == 0) first_refusal_ = last_error_;
  Add(EventKind::kRefused).breaks = static_cast<uint8_t>(breaks);
  recorder_.SetText(call);
  recorder_.SetText2(last_error_);
  return SPF_REFUSED;
}

spf_status Host::Break(const char* call, const char* why) {
  answered_aborted_ = true;
  try {
    if (broken_.empty()) broken_ = std::string(call) + " (" + Where() + "): " + why;
  } catch (const std::bad_alloc&) {
    broken_ = "out of memory";  // short enough to need none
  }
  fabric_.Fail(broken_);
  return SPF_ABORTED;
}

std::vector<std::string> Host::UnreadKnobs() const {
  std::vector<std::string> unread;
  for (const auto& [name, value] : config_.knobs) {
    if (!read_knobs_.contains(name)) unread.push_back(name);
  }
  return unread;
}

spf_status Host::Mark(spf_hook hook, int32_t module, int32_t microbatch) {
  RefuseUnless(hook >= SPF_HOOK_FORWARD && hook <= SPF_HOOK_OPTIMIZER_STEP,
               "hook " + std::to_string(hook) + " is no spf_hook");
  RefuseUnless(module >= 0 && module < model_.Tables(config_.model_rank).n_modules,
               "module " + std::to_string(module) + " is not in the model: use spf_model.modules");
  RefuseUnless(microbatch >= -1 && microbatch < config_.microbatches,
               "microbatch " + std::to_string(microbatch) + " is not in 0.." +
                   std::to_string(config_.microbatches - 1) + ", nor -1 for none");
  Event& event = Add(EventKind::kMark);
  event.id = hook;
  event.module = module;
  event.microbatch = microbatch;
  return SPF_OK;
}

void Host::CheckLabel(const spf_label& label, const std::string& what) const {
  RefuseUnless(label.purpose >= SPF_FOR_OTHER && label.purpose <= SPF_FOR_CHECKPOINT,
               what + ".purpose " + std::to_string(label.purpose) + " is no spf_purpose");
  const int32_t modules = model_.Tables(config_.model_rank).n_modules;
  RefuseUnless(label.module1 >= 0 && label.module1 <= modules,
               what + ".module1 " + std::to_string(label.module1) + " is not in 0.." +
                   std::to_string(modules) + ": a module's id plus one, or 0 for none");
  RefuseUnless(label.microbatch1 >= 0 && label.microbatch1 <= config_.microbatches,
               what + ".microbatch1 " + std::to_string(label.microbatch1) + " is not in 0.." +
                   std::to_string(config_.microbatches) + ": a microbatch plus one, or 0 for none");
}

const spf_program& Host::ProgramOf(int64_t step, int32_t microbatch) const {
  const int32_t rank = config_.data_rank < 0 ? 0 : config_.data_rank;
  return model_.Program(step, static_cast<int64_t>(microbatch) * config_.data_ranks + rank,
                        config_.model_rank);
}

}  // namespace shardproof
