// launch_kernels.h's ValidateLaunch.
#include <cmath>

#include "conformance/abi/shardproof.h"
#include "conformance/model/launch_kernels.h"

namespace shardproof {
namespace {

const char* AccessName(int32_t access) {
  static constexpr const char* kNames[] = {"none", "SPF_READ", "SPF_WRITE", "SPF_ADD"};
  return access >= 0 && access <= 3 ? kNames[access] : "unknown";
}

bool IsReal(int32_t dtype) { return dtype == SPF_F32 || dtype == SPF_BF16 || dtype == SPF_F64; }

// Collects the first thing that is wrong.
class Validator {
 public:
  Validator(const std::vector<SpanData>& spans, const std::vector<double>& scalars)
      : spans_(spans), scalars_(scalars) {}

  bool Counts(size_t least_spans, size_t most_spans, size_t scalars, const char* form) {
    if (spans_.size() < least_spans || spans_.size() > most_spans) {
      return Fail(std::to_string(spans_.size()) + " spans, its form is " + form);
    }
    if (scalars_.size() != scalars)
      return Fail(std::to_string(scalars_.size()) + " scalars, its form is " + form);
    return true;
  }
  bool Access(size_t span, int32_t access) {
    return spans_[span].access == access ||
           Fail(Name(span) + " has access " + AccessName(spans_[span].access) + ": declare " +
                AccessName(access));
  }
  bool Real(size_t span) {
    return IsReal(spans_[span].dtype) ||
           Fail(Name(span) + " has dtype " + std::to_string(spans_[span].dtype) +
                ": use SPF_F32, SPF_BF16 or SPF_F64");
  }
  bool Dtype(size_t span, int32_t dtype, const char* name) {
    return spans_[span].dtype == dtype ||
           Fail(Name(span) + " has dtype " + std::to_string(spans_[span].dtype) + ": use " + name);
  }
  bool Count(size_t span, uint64_t count) {
    return spans_[span].count == count ||
           Fail(Name(span) + " has " + std::to_string(spans_[span].count) +
                " elements, must have " + std::to_string(count));
  }
  bool Scalar64(size_t span, int32_t access) {
    return Dtype(span, SPF_F64, "SPF_F64") && Count(span, 1) && Access(span, access);
  }
  bool Fail(const std::string& why) {
    why_ = why;
    return false;
  }
  std::string why() const { return why_; }

 private:
  static std::string Name(size_t span) { return "spans[" + std::to_string(span) + "]"; }

  const std::vector<SpanData>& spans_;
  const std::vector<double>& scalars_;
  std::string why_;
};

void ValidateFill(Validator& v, const std::vector<SpanData>& spans,
                  const std::vector<double>& scalars) {
  if (!v.Counts(1, 1, 1, "y ; v") || !v.Access(0, SPF_WRITE)) return;
  const int32_t dtype = spans[0].dtype;
  if (IsReal(dtype)) return;
  double low = 0, high = 0;
  switch (dtype) {
    case SPF_U8:
      high = 255;
      break;
    case SPF_I32:
      low = -2147483648.0;
      high = 2147483647.0;
      break;
    case SPF_I64:
      low = -9007199254740992.0;
      high = 9007199254740992.0;
      break;
    default:
      v.Fail("spans[0] has dtype " + std::to_string(dtype) + ", which FILL does not know");
      return;
  }
  const double value = scalars[0];
  if (!(value >= low && value <= high) || std::trunc(value) != value) {
    v.Fail("v = " + std::to_string(value) + " is no value of the integer dtype of spans[0]");
  }
}

void ValidateAxpby(Validator& v, const std::vector<SpanData>& spans,
                   const std::vector<double>& scalars) {
  if (!v.Counts(2, 3, 2, "x y [s] ; a b") || !v.Real(0) || !v.Real(1) || !v.Access(0, SPF_READ))
    return;
  if (!v.Count(1, spans[0].count) || !v.Access(1, scalars[1] == 0 ? SPF_WRITE : SPF_ADD)) return;
  if (spans.size() == 3) v.Scalar64(2, SPF_READ);
}

void ValidateAdamW(Validator& v, const std::vector<SpanData>& spans,
                   const std::vector<double>& scalars) {
  if (!v.Counts(4, 4, 6, "p m v g ; lr b1 b2 eps wd t")) return;
  for (size_t i = 0; i < 4; ++i) {
    if (!v.Dtype(i, SPF_F32, "SPF_F32") || !v.Count(i, spans[0].count)) return;
    if (!v.Access(i, i == 3 ? SPF_READ : SPF_ADD)) return;
  }
  const double t = scalars[5];
  if (!(t >= 1 && t <= 1e6) || std::trunc(t) != t)
    v.Fail("t = " + std::to_string(t) + ": the first step is 1");
}

void ValidateGemm(Validator& v, const std::vector<double>& scalars) {
  if (!v.Counts(3, 3, 7, "A B C ; m n k ta tb alpha beta")) return;
  for (size_t i = 0; i < 3; ++i) {
    if (!v.Real(i)) return;
    if (!(scalars[i] >= 1 && scalars[i] <= 1e6) || std::trunc(scalars[i]) != scalars[i]) {
      v.Fail("m, n and k are positive integers");
      return;
    }
  }
  for (size_t i = 3; i < 5; ++i) {
    if (scalars[i] != 0 && scalars[i] != 1) {
      v.Fail("ta and tb are 0 or 1");
      return;
    }
  }
  const auto m = static_cast<uint64_t>(scalars[0]), n = static_cast<uint64_t>(scalars[1]),
             k = static_cast<uint64_t>(scalars[2]);
  if (!v.Count(0, m * k) || !v.Count(1, k * n) || !v.Count(2, m * n)) return;
  if (!v.Access(0, SPF_READ) || !v.Access(1, SPF_READ)) return;
  v.Access(2, scalars[6] == 0 ? SPF_WRITE : SPF_ADD);
}

}  // namespace

std::string ValidateLaunch(int32_t kernel, const std::vector<SpanData>& spans,
                           const std::vector<double>& scalars) {
  Validator v(spans, scalars);
  switch (kernel) {
    case SPF_K_FILL:
      ValidateFill(v, spans, scalars);
      break;
    case SPF_K_AXPBY:
      ValidateAxpby(v, spans, scalars);
      break;
    case SPF_K_SUM_SQUARES:
    case SPF_K_COUNT_NONFINITE:
    case SPF_K_COUNT_ZERO:
      if (v.Counts(2, 2, 0, "x out") && v.Real(0) && v.Access(0, SPF_READ)) v.Scalar64(1, SPF_ADD);
      break;
    case SPF_K_NORM_SCALE:
      if (v.Counts(2, 2, 3, "ss out ; num eps cap") && v.Scalar64(0, SPF_READ))
        v.Scalar64(1, SPF_WRITE);
      break;
    case SPF_K_ADAMW:
      ValidateAdamW(v, spans, scalars);
      break;
    case SPF_K_GEMM:
      ValidateGemm(v, scalars);
      break;
    default:
      v.Fail("kernel " + std::to_string(kernel) + " is none of the named ones");
  }
  return v.why();
}

}  // namespace shardproof
