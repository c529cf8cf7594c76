// spf.hpp: what saves an engine in C++ some lines? Header-only, optional; nothing here that the C
// header lacks.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/abi/shardproof.h"

namespace spf {

// A host call did not answer SPF_OK. Guard() turns it back into the status at the boundary.
struct Error {
  spf_status status;
};
inline void Check(spf_status status) {
  if (status != SPF_OK) throw Error{status};
}
// Every exported function is Guard([&] { ... }): no exception crosses the C boundary.
template <class F>
spf_status Guard(F&& body) noexcept {
  try {
    body();
    return SPF_OK;
  } catch (const Error& error) {
    return error.status;
  } catch (...) {
    return SPF_FAILED;
  }
}

inline uint64_t SizeOf(int32_t dtype) {
  static constexpr uint64_t kBytes[] = {8, 1, 4, 8, 2, 2, 4, 8};  // by spf_dtype
  return dtype >= SPF_U8 && dtype <= SPF_F64 ? kBytes[dtype] : 8;
}
inline spf_label For(spf_purpose purpose, int32_t module = -1, int32_t microbatch = -1) {
  return {static_cast<int32_t>(purpose), module + 1, microbatch + 1};
}

// Remembers which streams, events and blocks it has made and not given back.
class Host {
 public:
  explicit Host(spf_host* host) : h_(host) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  spf_host* raw() const { return h_; }

  // For destroy after a failed call, when nobody knows any more who held what: everything goes,
  // once the streams have run dry or the run is aborted. REQUIRES: registrations were ended; a
  // registered block is not freed.
  void GiveBack() {
    for (spf_stream stream : streams_) h_->stream_sync(h_, stream);
    for (const auto& [block, stream] : std::exchange(blocks_, {}))
      Check(h_->mem_free(h_, stream, block));
    for (spf_event event : std::exchange(events_, {})) Check(h_->event_destroy(h_, event));
    for (spf_stream stream : std::exchange(streams_, {})) Check(h_->stream_destroy(h_, stream));
  }

  // facts
  std::string Knob(const char* name, const char* otherwise) const {
    const char* text = h_->knob(h_, name);
    return text ? text : otherwise;
  }
  int64_t Int(const char* name, int64_t otherwise) const {
    const char* text = h_->knob(h_, name);
    return text ? std::atoll(text) : otherwise;
  }
  double Real(const char* name, double otherwise) const {
    const char* text = h_->knob(h_, name);
    return text ? std::atof(text) : otherwise;
  }
  const spf_model& model() const { return *h_->model(h_); }
  const spf_program& Program(int64_t step, int32_t microbatch) const {
    return *h_->program(h_, step, microbatch);
  }
  spf_group Group(const char* name) const { return h_->group(h_, name); }
  void Explain(const std::string& text) const { h_->explain(h_, text.c_str()); }

  // groups
  spf_group CreateGroup(spf_group parent, const char* name, const std::vector<int32_t>& ranks) {
    spf_group group = nullptr;
    Check(h_->group_create(h_, parent, name, static_cast<int32_t>(ranks.size()), ranks.data(),
                           &group));
    return group;
  }
  std::vector<int32_t> Members(spf_group group) const {
    int32_t rank = 0, n = 0;
    const int32_t* world_ranks = nullptr;
    Check(h_->group_info(h_, group, &rank, &n, &world_ranks));
    return {world_ranks, world_ranks + n};
  }
  int32_t RankIn(spf_group group) const {
    int32_t rank = 0, n = 0;
    Check(h_->group_info(h_, group, &rank, &n, nullptr));
    return rank;
  }
  int32_t SizeIn(spf_group group) const {
    int32_t rank = 0, n = 0;
    Check(h_->group_info(h_, group, &rank, &n, nullptr));
    return n;
  }
  void DestroyGroup(spf_group group) { Check(h_->group_destroy(h_, group)); }
  // REQUIRES: SPF_HAS(raw(), group_register)
  void Register(spf_group group, spf_addr block) { Check(h_->group_register(h_, group, block)); }
  void Deregister(spf_group group, spf_addr block) {
    Check(h_->group_deregister(h_, group, block));
  }

  // streams and events
  spf_stream Stream(const char* name, int priority = 0) {
    spf_stream stream = nullptr;
    Check(h_->stream_create(h_, name, priority, &stream));
    streams_.push_back(stream);
    return stream;
  }
  spf_status DestroyStream(spf_stream stream) {
    std::erase(streams_, stream);
    return h_->stream_destroy(h_, stream);
  }
  spf_event Event() {
    spf_event event = nullptr;
    Check(h_->event_create(h_, &event));
    events_.insert(event);
    return event;
  }
  spf_status DestroyEvent(spf_event event) {
    events_.erase(event);
    return h_->event_destroy(h_, event);
  }
  void Record(spf_event event, spf_stream stream) { Check(h_->event_record(h_, event, stream)); }
  void Wait(spf_stream stream, spf_event event) { Check(h_->event_wait(h_, event, stream)); }
  // later waits for everything enqueued on earlier so far
  void After(spf_stream later, spf_stream earlier) {
    spf_event event = Event();
    Record(event, earlier);
    Wait(later, event);
    Check(DestroyEvent(event));
  }
  void Sync(spf_stream stream) { Check(h_->stream_sync(h_, stream)); }

  // memory
  spf_addr Alloc(spf_stream stream, uint64_t bytes, spf_label label, spf_place place = SPF_DEVICE) {
    spf_addr address = 0;
    Check(h_->mem_alloc(h_, stream, bytes, place, label, &address));
    if (address) blocks_[address] = stream;
    return address;
  }
  void Free(spf_stream stream, spf_addr& address) {
    blocks_.erase(address);
    if (address) Check(h_->mem_free(h_, stream, std::exchange(address, 0)));
  }
  void Copy(spf_stream stream, spf_addr to, spf_addr from, uint64_t bytes) {
    if (bytes) Check(h_->copy(h_, stream, to, from, bytes));
  }
  template <class T>
  T* Touch(spf_addr address, uint64_t count, spf_access access) {
    void* pointer = nullptr;
    Check(h_->host_access(h_, address, count * sizeof(T), access, &pointer));
    return static_cast<T*>(pointer);
  }

  // work
  void Launch(spf_stream stream, spf_kernel kernel, const std::vector<spf_span>& spans,
              const std::vector<double>& scalars = {}) {
    spf_launch launch{};
    launch.size = sizeof launch;
    launch.kernel = kernel;
    launch.spans = spans.data();
    launch.n_spans = static_cast<int32_t>(spans.size());
    launch.scalars = scalars.data();
    launch.n_scalars = static_cast<int32_t>(scalars.size());
    Check(h_->launch(h_, stream, &launch));
  }
  void Fill(spf_stream stream, spf_addr y, uint64_t n, int32_t dtype, double value) {
    if (n) Launch(stream, SPF_K_FILL, {{y, n, dtype, SPF_WRITE}}, {value});
  }
  // y = a x + b y, converting between dtypes; b == 0 only writes y
  void Axpby(spf_stream stream, double a, spf_addr x, int32_t x_dtype, double b, spf_addr y,
             int32_t y_dtype, uint64_t n) {
    if (n == 0) return;
    Launch(stream, SPF_K_AXPBY,
           {{x, n, x_dtype, SPF_READ}, {y, n, y_dtype, b == 0 ? SPF_WRITE : SPF_ADD}}, {a, b});
  }
  static spf_collective Collective(spf_collective_kind kind, spf_group group, spf_stream stream,
                                   int32_t dtype, spf_addr send, spf_addr recv, uint64_t count,
                                   spf_label label) {
    spf_collective op{};
    op.size = sizeof op;
    op.kind = kind;
    op.group = group;
    op.stream = stream;
    op.dtype = dtype;
    op.send = send;
    op.recv = recv;
    op.count = count;
    op.label = label;
    return op;
  }
  void Communicate(const std::vector<spf_collective>& ops) {
    if (!ops.empty()) Check(h_->communicate(h_, static_cast<int32_t>(ops.size()), ops.data()));
  }
  void Compute(spf_stream stream, const spf_compute& compute) {
    Check(h_->compute(h_, stream, &compute));
  }

  // values in, values out
  void Init(spf_stream stream, int32_t param, int64_t offset, int64_t count, spf_dtype dtype,
            spf_addr to) {
    if (count) Check(h_->init(h_, stream, param, offset, count, dtype, to));
  }
  void Publish(spf_stream stream, spf_result what, int32_t id, int64_t offset, int64_t count,
               spf_dtype dtype, spf_addr from) {
    if (count) Check(h_->publish(h_, stream, what, id, offset, count, dtype, from));
  }
  void Mark(spf_hook hook, int32_t module, int32_t microbatch) {
    if (SPF_HAS(h_, mark)) Check(h_->mark(h_, hook, module, microbatch));
  }

 private:
  spf_host* h_;
  std::vector<spf_stream> streams_;
  std::set<spf_event> events_;
  std::map<spf_addr, spf_stream> blocks_;  // and the stream on which each was allocated
};

}  // namespace spf
