#include "conformance/checks/parts/rest.h"

#include <algorithm>

#include "conformance/abi/shardproof.h"

namespace shardproof::parts {

namespace {

// Of a stream, but for collectives.
bool IsWork(EventKind kind) {
  switch (kind) {
    case EventKind::kCompute:
    case EventKind::kLaunch:
    case EventKind::kCopy:
    case EventKind::kInit:
    case EventKind::kPublish:
    case EventKind::kRecord:
    case EventKind::kWait:
    case EventKind::kAlloc:
    case EventKind::kFree:
      return true;
    default:
      return false;
  }
}

}  // namespace

void RestWatch::Join(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t c = 0; c < from.size(); ++c) to[c] = std::max(to[c], from[c]);
}

void RestWatch::Raise(Clock& to, int32_t component, uint32_t row) {
  const auto c = static_cast<size_t>(component);
  if (to.size() <= c) to.resize(c + 1);
  to[c] = row;
}

int32_t RestWatch::Component(std::vector<int32_t>& of, int32_t id) {
  const auto index = static_cast<size_t>(id);
  if (of.size() <= index) of.resize(index + 1, -1);
  if (of[index] < 0) {
    of[index] = static_cast<int32_t>(clocks_.size());
    clocks_.emplace_back();
    last_.push_back(0);
  }
  return of[index];
}

RestWatch::Thread& RestWatch::ThreadOf(uint16_t id) {
  if (threads_.size() <= id) threads_.resize(size_t{id} + 1);
  Thread& thread = threads_[id];
  if (thread.component < 0) {
    thread.component = static_cast<int32_t>(clocks_.size());
    clocks_.emplace_back();
    last_.push_back(0);
  }
  return thread;
}

// Work behind what its stream and the thread that issues it have behind them.
void RestWatch::OnStream(int32_t stream, const Clock& host) {
  if (stream < 0) return;
  const int32_t component = Component(streams_, stream);
  Join(ClockOf(component), host);
  Raise(ClockOf(component), component, row_);
  if (!passes_) last_[static_cast<size_t>(component)] = row_;
}

void RestWatch::HandOver(const Event& event, Thread& thread) {
  if (event.kind == EventKind::kThreadPost) {
    posted_[event.id] = ClockOf(thread.component);
    return;
  }
  const auto post = posted_.find(event.id);
  if (post == posted_.end()) return;
  Join(ClockOf(thread.component), post->second);
  thread.behind_cut = true;
  sync_ = true;
}

void RestWatch::Collective(const Event& event, Thread& thread) {
  if (event.stream < 0) {
    if (event.request >= 0) ++open_requests_;
  } else if (thread.open_groups > 0) {
    thread.held.push_back(event.stream);
  } else {
    OnStream(event.stream, ClockOf(thread.component));
  }
}

// Each stream apart: that kernels of several streams wait for all of them is not counted on.
void RestWatch::EndGroup(Thread& thread) {
  if (thread.open_groups == 0 || --thread.open_groups > 0) return;
  const Clock& host = ClockOf(thread.component);
  for (const int32_t stream : thread.held) OnStream(stream, host);
  thread.held.clear();
}

void RestWatch::Work(const Event& event, Thread& thread) {
  const Clock& host = ClockOf(thread.component);
  switch (event.kind) {
    case EventKind::kAlloc:
      pinned_[event.alloc] = event.id == SPF_PINNED;
      if (event.id != SPF_PINNED) OnStream(event.stream, host);
      break;
    case EventKind::kFree: {
      const auto block = pinned_.find(event.alloc);
      if (block == pinned_.end() || !block->second) OnStream(event.stream, host);
      if (block != pinned_.end()) pinned_.erase(block);
      break;
    }
    case EventKind::kWait: {
      const auto record = recorded_.find(event.event);
      if (event.stream < 0) break;
      if (record != recorded_.end())
        Join(ClockOf(Component(streams_, event.stream)), record->second);
      OnStream(event.stream, host);
      break;
    }
    case EventKind::kRecord:
      OnStream(event.stream, host);
      if (event.stream >= 0) recorded_[event.event] = ClockOf(Component(streams_, event.stream));
      break;
    default:
      OnStream(event.stream, host);
  }
}

// What the thread has behind it from here on.
void RestWatch::Wait(const Event& event, Thread& thread) {
  Clock& host = ClockOf(thread.component);
  sync_ = true;
  switch (event.kind) {
    case EventKind::kStreamSync:
      if (event.stream >= 0) Join(host, ClockOf(Component(streams_, event.stream)));
      break;
    case EventKind::kEventSync:
      if (const auto record = recorded_.find(event.event); record != recorded_.end())
        Join(host, record->second);
      break;
    case EventKind::kDeviceSync:
      for (const int32_t component : streams_) {
        if (component >= 0) Join(host, ClockOf(component));
      }
      break;
    default:  // kRequestWait
      --open_requests_;
  }
}

void RestWatch::GiveUp() {
  gave_up_ = true;
  if (cut_) broken_ = "it has more than 64 streams and host threads";
  clocks_.clear();
  recorded_.clear();
  posted_.clear();
}

void RestWatch::See(const Event& event) {
  if (gave_up_) return;
  ++row_;
  thread_ = event.thread;
  sync_ = false;
  passes_ = event.kind == EventKind::kRecord || event.kind == EventKind::kWait ||
            event.kind == EventKind::kFree;
  Thread& thread = ThreadOf(event.thread);
  if (event.stream >= 0) Component(streams_, event.stream);  // before anything refers to a clock
  if (clocks_.size() > kMostComponents) return GiveUp();
  Raise(ClockOf(thread.component), thread.component, row_);
  last_[static_cast<size_t>(thread.component)] = row_;
  switch (event.kind) {
    case EventKind::kStreamSync:
    case EventKind::kEventSync:
    case EventKind::kDeviceSync:
    case EventKind::kRequestWait:
      Wait(event, thread);
      break;
    case EventKind::kThreadPost:
    case EventKind::kThreadAwait:
      HandOver(event, thread);
      break;
    case EventKind::kEventDestroy:
      recorded_.erase(event.event);
      break;
    case EventKind::kGroupBegin:
      ++thread.open_groups;
      break;
    case EventKind::kGroupEnd:
      EndGroup(thread);
      break;
    case EventKind::kCollective:
      Collective(event, thread);
      break;
    default:
      if (IsWork(event.kind)) Work(event, thread);
  }
  if (cut_ && !thread.behind_cut && broken_.empty())
    broken_ = "host thread " + std::to_string(event.thread) +
              " goes on while another one has waited for everything";
}

bool RestWatch::AtRest() const {
  if (!sync_ || open_requests_ != 0 || gave_up_ || !broken_.empty()) return false;
  for (const Thread& thread : threads_) {
    if (thread.open_groups > 0) return false;
  }
  const Clock& host = clocks_[static_cast<size_t>(threads_[thread_].component)];
  for (size_t c = 0; c < last_.size(); ++c) {
    if (last_[c] > (c < host.size() ? host[c] : 0)) return false;
  }
  return true;
}

void RestWatch::Cut() {
  cut_ = true;
  row_ = 0;
  for (Clock& clock : clocks_) clock.clear();
  std::fill(last_.begin(), last_.end(), 0);
  recorded_.clear();
  posted_.clear();
  for (Thread& thread : threads_) thread.behind_cut = false;
  threads_[thread_].behind_cut = true;
}

}  // namespace shardproof::parts
