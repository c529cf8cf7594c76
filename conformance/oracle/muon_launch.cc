#include "conformance/oracle/muon_launch.h"

#include <stdexcept>
#include <string>

#include "conformance/abi/shardproof.h"

namespace shardproof {

SpanData SpanOf(const float* data, size_t count, int32_t access) {
  // A span that is read is not written: RunLaunch takes one type for both.
  auto* bytes = reinterpret_cast<std::byte*>(const_cast<float*>(data));
  return {bytes, count, SPF_F32, access};
}

void LaunchHere(int32_t kernel, const std::vector<SpanData>& spans,
                const std::vector<double>& scalars) {
  const std::string wrong = ValidateLaunch(kernel, spans, scalars);
  if (!wrong.empty())
    throw std::logic_error("oracle, kernel " + std::to_string(kernel) + ": " + wrong);
  RunLaunch(kernel, spans, scalars);
}

void Mix(double a, const SpanData& x, double b, SpanData y) {
  y.access = b == 0 ? SPF_WRITE : SPF_ADD;
  LaunchHere(SPF_K_AXPBY, {x, y}, {a, b});
}

}  // namespace shardproof
