#include "conformance/model/launch_kernels.h"

#include <stdexcept>

#include "conformance/abi/shardproof.h"
#include "conformance/model/launch_math.h"

namespace shardproof {
namespace {

using namespace launch_math;

void RunFill(const SpanData& y, double value) {
  for (int64_t i = 0; i < Elements(y); ++i) Store(y, i, value);
}

template <class In>
void RunAxpby(const std::vector<SpanData>& spans, double a, double b) {
  const SpanData &x = spans[0], &y = spans[1];
  const auto factor =
      spans.size() == 3 ? AxpbyFactor<In>(a, ValueOf<double>(spans[2], 0)) : In::Round(a);
  for (int64_t i = 0; i < Elements(x); ++i) AxpbyElement<In>(x, y, factor, In::Round(b), i);
}

void RunAxpby(const std::vector<SpanData>& spans, double a, double b) {
  const int32_t wide = Wider(spans[0].dtype, spans[1].dtype);
  if (wide == SPF_F64) return RunAxpby<Ieee<double>>(spans, a, b);
  if (wide == SPF_F32) return RunAxpby<Ieee<float>>(spans, a, b);
  RunAxpby<InBf16>(spans, a, b);
}

template <class Term>
void Accumulate(const SpanData& x, const SpanData& out) {
  auto sum = Load<double>(out.data, 0);
  for (int64_t chunk = 0; chunk < SumChunks(x); ++chunk) sum = sum + ChunkSum<Term>(x, chunk);
  Save(out.data, 0, Canonical(sum));
}

void RunAdamW(const std::vector<SpanData>& spans, const std::vector<double>& scalars) {
  const AdamW rule = AdamWOf(scalars.data());
  for (int64_t i = 0; i < Elements(spans[0]); ++i)
    AdamWElement(rule, spans[0].data, spans[1].data, spans[2].data, spans[3].data, i);
}

struct GemmOnHost {
  template <class In, class A, class B>
  void Run(const GemmCall& call) const {
    const auto alpha = In::Round(call.alpha), beta = In::Round(call.beta);
    for (int64_t at = 0; at < Elements(call.c); ++at)
      GemmElement<In, A, B>(call.shape, call.a.data, call.b.data, call.c, alpha, beta, at);
  }
};

}  // namespace

void RunLaunch(int32_t kernel, const std::vector<SpanData>& spans,
               const std::vector<double>& scalars) {
  switch (kernel) {
    case SPF_K_FILL:
      return RunFill(spans[0], scalars[0]);
    case SPF_K_AXPBY:
      return RunAxpby(spans, scalars[0], scalars[1]);
    case SPF_K_SUM_SQUARES:
      return Accumulate<SquareTerm>(spans[0], spans[1]);
    case SPF_K_COUNT_NONFINITE:
      return Accumulate<NonFiniteTerm>(spans[0], spans[1]);
    case SPF_K_COUNT_ZERO:
      return Accumulate<ZeroTerm>(spans[0], spans[1]);
    case SPF_K_NORM_SCALE:
      return NormScale(spans[0], spans[1], scalars[0], scalars[1], scalars[2]);
    case SPF_K_ADAMW:
      return RunAdamW(spans, scalars);
    case SPF_K_GEMM:
      return WithTypes(GemmCallOf(spans, scalars), GemmOnHost());
    default:
      throw std::invalid_argument("kernel " + std::to_string(kernel) +
                                  " is none of the named ones");
  }
}

}  // namespace shardproof
