#include "conformance/model/cuda/launch.h"

#include <optional>
#include <stdexcept>
#include <string>

#include "conformance/abi/shardproof.h"
#include "conformance/cuda/for_each.h"
#include "conformance/model/launch_math.h"

namespace shardproof {
namespace {

using namespace launch_math;

void Fill(Queue& queue, const SpanData& y, double value) {
  ForEach(queue, "FILL", Elements(y), [=] SHARDPROOF_KERNEL(int64_t i) { Store(y, i, value); });
}

// A number on the device. If it is part of what the kernel writes, all indices read a copy.
class DeviceScalar {
 public:
  DeviceScalar(Queue& queue, const SpanData& scalar, const SpanData& written) : at_(scalar.data) {
    if (scalar.data != written.data) return;  // else: the very same range
    copy_.emplace(queue, 1);
    at_ = reinterpret_cast<std::byte*>(copy_->get());
    queue.Copy(reinterpret_cast<std::byte*>(copy_->get()), scalar.data, sizeof(double));
  }
  const std::byte* get() const { return at_; }

 private:
  std::optional<Scratch<double>> copy_;
  const std::byte* at_;
};

template <class In>
void ScaledAxpby(Queue& queue, const std::vector<SpanData>& spans, double a, double b) {
  const SpanData x = spans[0], y = spans[1];
  const DeviceScalar scalar(queue, spans[2], y);
  const std::byte* s = scalar.get();
  ForEach(queue, "AXPBY, scaled", Elements(x), [=] SHARDPROOF_KERNEL(int64_t i) {
    AxpbyElement<In>(x, y, AxpbyFactor<In>(a, Load<double>(s, 0)), In::Round(b), i);
  });
}

template <class In>
void Axpby(Queue& queue, const std::vector<SpanData>& spans, double a, double b) {
  if (spans.size() == 3) return ScaledAxpby<In>(queue, spans, a, b);
  const SpanData x = spans[0], y = spans[1];
  const auto factor = In::Round(a), keep = In::Round(b);
  ForEach(queue, "AXPBY", Elements(x),
          [=] SHARDPROOF_KERNEL(int64_t i) { AxpbyElement<In>(x, y, factor, keep, i); });
}

void Axpby(Queue& queue, const std::vector<SpanData>& spans, double a, double b) {
  const int32_t wide = Wider(spans[0].dtype, spans[1].dtype);
  if (wide == SPF_F64) return Axpby<Ieee<double>>(queue, spans, a, b);
  if (wide == SPF_F32) return Axpby<Ieee<float>>(queue, spans, a, b);
  Axpby<InBf16>(queue, spans, a, b);
}

// One index a chunk, then one for the sums of chunks: each in its order.
template <class Term>
void Accumulate(Queue& queue, const char* name, const SpanData& x, const SpanData& out) {
  const SpanData values = x;
  const int64_t chunks = SumChunks(x);
  const Scratch<double> scratch(queue, chunks);
  double* partial = scratch.get();
  std::byte* total = out.data;
  ForEach(queue, name, chunks,
          [=] SHARDPROOF_KERNEL(int64_t chunk) { partial[chunk] = ChunkSum<Term>(values, chunk); });
  ForEach(queue, name, 1, [=] SHARDPROOF_KERNEL(int64_t) {
    double sum = Load<double>(total, 0);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) sum = sum + partial[chunk];
    Save(total, 0, Canonical(sum));
  });
}

void ScaleOfNorm(Queue& queue, const SpanData& ss, const SpanData& out, double num, double eps,
                 double cap) {
  ForEach(queue, "NORM_SCALE", 1,
          [=] SHARDPROOF_KERNEL(int64_t) { NormScale(ss, out, num, eps, cap); });
}

void StepAdamW(Queue& queue, const std::vector<SpanData>& spans,
               const std::vector<double>& scalars) {
  const AdamW rule = AdamWOf(scalars.data());
  std::byte *p = spans[0].data, *m = spans[1].data, *v = spans[2].data;
  const std::byte* g = spans[3].data;
  ForEach(queue, "ADAMW", Elements(spans[0]),
          [=] SHARDPROOF_KERNEL(int64_t i) { AdamWElement(rule, p, m, v, g, i); });
}

template <class In, class A, class B>
void Multiply(Queue& queue, const GemmCall& call) {
  const GemmShape shape = call.shape;
  const std::byte *a = call.a.data, *b = call.b.data;
  const SpanData c = call.c;
  const auto alpha = In::Round(call.alpha), beta = In::Round(call.beta);
  ForEach(queue, "GEMM", Elements(c), [=] SHARDPROOF_KERNEL(int64_t at) {
    GemmElement<In, A, B>(shape, a, b, c, alpha, beta, at);
  });
}

struct GemmOnDevice {
  Queue& queue;

  template <class In, class A, class B>
  void Run(const GemmCall& call) const {
    Multiply<In, A, B>(queue, call);
  }
};

}  // namespace

void RunLaunchOnDevice(Queue& queue, int32_t kernel, const std::vector<SpanData>& spans,
                       const std::vector<double>& scalars) {
  switch (kernel) {
    case SPF_K_FILL:
      return Fill(queue, spans[0], scalars[0]);
    case SPF_K_AXPBY:
      return Axpby(queue, spans, scalars[0], scalars[1]);
    case SPF_K_SUM_SQUARES:
      return Accumulate<SquareTerm>(queue, "SUM_SQUARES", spans[0], spans[1]);
    case SPF_K_COUNT_NONFINITE:
      return Accumulate<NonFiniteTerm>(queue, "COUNT_NONFINITE", spans[0], spans[1]);
    case SPF_K_COUNT_ZERO:
      return Accumulate<ZeroTerm>(queue, "COUNT_ZERO", spans[0], spans[1]);
    case SPF_K_NORM_SCALE:
      return ScaleOfNorm(queue, spans[0], spans[1], scalars[0], scalars[1], scalars[2]);
    case SPF_K_ADAMW:
      return StepAdamW(queue, spans, scalars);
    case SPF_K_GEMM:
      return WithTypes(GemmCallOf(spans, scalars), GemmOnDevice{queue});
    default:
      throw std::invalid_argument("kernel " + std::to_string(kernel) +
                                  " is none of the named ones");
  }
}

}  // namespace shardproof
