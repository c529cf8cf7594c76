// launch(), init() and publish().
#include <utility>

#include "conformance/common/dtype.h"
#include "conformance/host/host_internal.h"
#include "conformance/model/launch_kernels.h"

namespace shardproof {

namespace {

constexpr int32_t kMostSpans = 1 << 16, kMostScalars = 64;
constexpr uint64_t kMostArgBytes = 1 << 20;

const char* KernelName(int32_t kernel) {
  static constexpr const char* kNames[] = {
      "CUSTOM",          "FILL",       "DISCARD",    "AXPBY", "SUM_SQUARES",
      "COUNT_NONFINITE", "COUNT_ZERO", "NORM_SCALE", "ADAMW", "GEMM"};
  return kNames[kernel];
}

// How much there is of everything that a launch points to.
void CheckNumbers(const spf_launch& launch) {
  RefuseUnless(launch.n_spans > 0 && launch.spans != nullptr,
               "no spans: name the ranges that the kernel touches");
  RefuseUnless(launch.n_spans <= kMostSpans,
               "n_spans " + std::to_string(launch.n_spans) + " cannot be meant");
  RefuseUnless(launch.n_scalars >= 0 && launch.n_scalars <= kMostScalars,
               "n_scalars " + std::to_string(launch.n_scalars) + " is not in 0.." +
                   std::to_string(kMostScalars));
  RefuseUnless(launch.n_scalars == 0 || launch.scalars != nullptr,
               "scalars is NULL, n_scalars is not 0");
  if (launch.kernel != SPF_K_CUSTOM) return;
  RefuseUnless(launch.fn != nullptr, "CUSTOM without fn");
  RefuseUnless(launch.arg_bytes == 0 || launch.arg != nullptr, "arg is NULL, arg_bytes is not 0");
  RefuseUnless(launch.arg_bytes <= kMostArgBytes,
               "arg_bytes " + std::to_string(launch.arg_bytes) + " cannot be meant");
}

// Whoever writes what another span touches depends on the order of elements, and a GPU has none.
// The very same range twice is element by element; but each element of a product reads many.
void CheckSpanOverlap(const spf_launch& launch) {
  for (int32_t i = 0; i < launch.n_spans; ++i) {
    for (int32_t j = 0; j < i; ++j) {
      const spf_span &a = launch.spans[i], &b = launch.spans[j];
      const uint64_t a_bytes = a.count * DtypeBytes(a.dtype),
                     b_bytes = b.count * DtypeBytes(b.dtype);
      if (a_bytes == 0 || b_bytes == 0) continue;
      if (a.addr + a_bytes <= b.addr || b.addr + b_bytes <= a.addr) continue;
      const bool same_range = a.addr == b.addr && a_bytes == b_bytes;
      const bool both_read = a.access == SPF_READ && b.access == SPF_READ,
                 product = launch.kernel == SPF_K_GEMM;
      RefuseUnless(both_read || (same_range && !product),
                   "spans[" + std::to_string(j) + "] and spans[" + std::to_string(i) +
                       "] overlap and are not only read: use disjoint spans" +
                       (product ? "" : ", or the very same range"));
    }
  }
}

}  // namespace

spf_status Host::LaunchCustom(int32_t stream, const spf_launch& launch,
                              std::vector<SpanData> spans) {
  CustomKernel kernel;
  kernel.fn = launch.fn;
  const auto* arg = static_cast<const std::byte*>(launch.arg);
  kernel.arg.assign(arg, arg + launch.arg_bytes);
  kernel.spans = std::move(spans);
  kernel.inside = custom_thread_;
  fabric_.Enqueue(stream, "custom kernel",
                  [executor = config_.executor, stream, kernel = std::move(kernel)] {
                    executor->Custom(stream, kernel);
                  });
  return SPF_OK;
}

spf_status Host::Launch(spf_stream stream, const spf_launch& launch) {
  const StreamHandle& on = Stream(stream, "stream");
  if (launch.kernel < SPF_K_CUSTOM || launch.kernel > SPF_K_GEMM) {
    last_error_ = "launch: kernel " + std::to_string(launch.kernel) +
                  " is not known to this host (" + Where() + ")";
    return SPF_UNSUPPORTED;
  }
  CheckNumbers(launch);
  CheckLabel(launch.label, "label");
  std::vector<SpanData> data;
  std::vector<Resolved> resolved;
  for (int32_t i = 0; i < launch.n_spans; ++i) {
    const spf_span& span = launch.spans[i];
    const std::string what = "spans[" + std::to_string(i) + "] of " + KernelName(launch.kernel);
    RefuseUnless(IsDtype(span.dtype),
                 what + ": dtype " + std::to_string(span.dtype) + " is no spf_dtype");
    RefuseUnless(span.access >= SPF_READ && span.access <= SPF_ADD,
                 what + ": access " + std::to_string(span.access) + " is no spf_access");
    RefuseUnless(span.count <= (uint64_t{1} << 40), what + ": count " + std::to_string(span.count) +
                                                        " cannot be meant: a negative size?");
    if (span.count == 0) {  // rows may be none; the address is not looked at
      resolved.emplace_back().range.access = static_cast<uint8_t>(span.access);
    } else {
      resolved.push_back(ResolveElements(span.addr, span.count, span.dtype,
                                         static_cast<uint8_t>(span.access), what));
    }
    data.push_back({resolved.back().host, span.count, span.dtype, span.access});
  }
  CheckSpanOverlap(launch);
  const std::vector<double> scalars(launch.scalars, launch.scalars + launch.n_scalars);
  const bool named = launch.kernel != SPF_K_CUSTOM && launch.kernel != SPF_K_DISCARD;
  const std::string wrong = named ? ValidateLaunch(launch.kernel, data, scalars) : std::string();
  RefuseUnless(wrong.empty(), std::string(KernelName(launch.kernel)) + ": " + wrong);
  RefuseUnless(launch.kernel != SPF_K_DISCARD ||
                   (launch.n_spans == 1 && launch.spans[0].access == SPF_WRITE),
               "DISCARD takes one span with access SPF_WRITE");

  Event& row = Add(EventKind::kLaunch);
  row.stream = on.id;
  row.id = launch.kernel;
  row.purpose = launch.label.purpose;
  row.module = launch.label.module1 - 1;
  row.microbatch = launch.label.microbatch1 - 1;
  for (const Resolved& span : resolved) recorder_.AddRange(span.range);
  if (launch.kernel == SPF_K_CUSTOM) return LaunchCustom(on.id, launch, std::move(data));
  if (launch.kernel == SPF_K_DISCARD) {
    const Resolved span = resolved[0];
    if (span.range.length == 0) return SPF_OK;
    fabric_.Enqueue(on.id, "DISCARD", [executor = config_.executor, stream = on.id, span] {
      executor->Fill(stream, span.host, 0xFF, static_cast<uint64_t>(span.range.length));
    });
    return SPF_OK;
  }
  fabric_.Enqueue(on.id, KernelName(launch.kernel),
                  [executor = config_.executor, stream = on.id, kernel = launch.kernel, data,
                   scalars] { executor->Launch(stream, kernel, data, scalars); });
  return SPF_OK;
}

namespace {
void CheckElements(int64_t offset, int64_t count, int64_t numel, const std::string& name) {
  RefuseUnless(offset >= 0 && count > 0 && offset <= numel && count <= numel - offset,
               std::to_string(count) + " elements at " + std::to_string(offset) + " of " + name +
                   ", which has " + std::to_string(numel));
}
}  // namespace

// (requirement FS-48) An engine that has not read the knob is not asked: the case is unsupported.
void Host::CheckMayInit() const {
  if (!no_values_yet_ || (call_name_ != "create" && call_name_ != "load")) return;
  if (!read_knobs_.contains("init_device")) return;
  throw Refusal(call_name_ == "create"
                    ? "init_device = meta: create gives parameters no values; the first call after "
                      "it brings them"
                    : "init_device = meta: this load is the first call after create, and brings "
                      "all values out of the checkpoint");
}

spf_status Host::Init(spf_stream stream, int32_t param, int64_t offset, int64_t count,
                      spf_dtype dtype, spf_addr to) {
  const StreamHandle& on = Stream(stream, "stream");
  CheckMayInit();
  const spf_model& tables = model_.Tables(config_.model_rank);
  RefuseUnless(param >= 0 && param < tables.n_params,
               "param " + std::to_string(param) + " is not in the model");
  CheckElements(offset, count, tables.params[param].numel, tables.params[param].name);
  RefuseUnless(dtype == SPF_F32 || dtype == SPF_BF16,
               "dtype " + DtypeText(dtype) + ": initial values come as f32 or bf16");
  const Resolved target = ResolveElements(to, static_cast<uint64_t>(count), dtype, kWrite, "dst");
  Event& row = Add(EventKind::kInit);
  row.stream = on.id;
  row.id = param;
  row.offset = offset;
  row.count = count;
  row.dtype = static_cast<uint8_t>(dtype);
  recorder_.AddRange(target.range);
  fabric_.Enqueue(
      on.id, "init",
      [executor = config_.executor, stream = on.id, this_model = &model_, of = config_.model_rank,
       param, offset, count, dtype, target] {
        std::vector<float> values(static_cast<size_t>(count));
        this_model->InitialValue(param, of, offset, count, values.data());
        if (dtype == SPF_F32) {
          executor->Write(stream, target.host, values.data(), values.size() * sizeof(float));
          return;
        }
        std::vector<uint16_t> narrow(values.size());
        for (size_t i = 0; i < values.size(); ++i) narrow[i] = ToBf16(values[i]);
        executor->Write(stream, target.host, narrow.data(), narrow.size() * sizeof(uint16_t));
      });
  return SPF_OK;
}

spf_status Host::Publish(spf_stream stream, spf_result what, int32_t id, int64_t offset,
                         int64_t count, spf_dtype dtype, spf_addr from) {
  const StreamHandle& on = Stream(stream, "stream");
  const spf_model& tables = model_.Tables(config_.model_rank);
  RefuseUnless(what >= SPF_RESULT_PARAM && what <= SPF_RESULT_ZERO_COUNT,
               "result " + std::to_string(what) + " is no spf_result");
  RefuseUnless(dtype == SPF_F32 || dtype == SPF_F64 || dtype == SPF_BF16,
               "dtype " + DtypeText(dtype) + ": results are f32, f64 or bf16");
  if (what == SPF_RESULT_PARAM || what == SPF_RESULT_GRAD) {
    RefuseUnless(id >= 0 && id < tables.n_params,
                 "param " + std::to_string(id) + " is not in the model");
    CheckElements(offset, count, tables.params[id].numel, tables.params[id].name);
  } else {
    RefuseUnless(offset == 0 && count == 1, "offset and count of a scalar result are 0 and 1");
    RefuseUnless(what != SPF_RESULT_LOSS || (id >= 0 && id < config_.microbatches),
                 "LOSS of microbatch " + std::to_string(id) + ": id is the microbatch");
  }
  const Resolved source = ResolveElements(from, static_cast<uint64_t>(count), dtype, kRead, "src");
  Event& row = Add(EventKind::kPublish);
  row.stream = on.id;
  row.result = static_cast<uint8_t>(what);
  row.id = id;
  row.offset = offset;
  row.count = count;
  row.dtype = static_cast<uint8_t>(dtype);
  recorder_.AddRange(source.range);
  if (!recorder_.digests()) return SPF_OK;
  Recorder::Slot* slot = recorder_.NewSlot();
  recorder_.LinkSlot(slot);
  fabric_.Enqueue(on.id, "publish",
                  [executor = config_.executor, at = on.id, slot, source, offset, count, dtype] {
                    executor->Digest(at, source.host, dtype, offset, count, &slot->digest);
                    executor->Values(at, source.host, dtype, count, &slot->values);
                    executor->Done(at, &slot->done);
                  });
  return SPF_OK;
}

}  // namespace shardproof
