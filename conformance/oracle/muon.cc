#include "conformance/oracle/muon.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "conformance/common/dtype.h"
#include "conformance/model/launch_kernels.h"

namespace shardproof {
namespace {

struct Abc {
  double a, b, c;
};

constexpr Abc kSimple{3.4445, -4.7750, 2.0315};

// What step i uses: lists of five begin again or stay at their last, as KNOBS.md says.
Abc CoefficientsAt(const std::string& name, size_t i) {
  static constexpr Abc kQuintic[] = {{4.0848, -6.8946, 2.9270},
                                     {3.9505, -6.3029, 2.6377},
                                     {3.7418, -5.5913, 2.3037},
                                     {2.8769, -3.1427, 1.2046},
                                     {2.8366, -3.0525, 1.2012}};
  static constexpr Abc kPolar[] = {{8.2051, -22.9019, 16.4607}, {4.0664, -2.8612, 0.5184},
                                   {3.9096, -2.8234, 0.5250},   {3.2856, -2.4153, 0.4853},
                                   {2.2779, -1.6198, 0.3985},   {1.8726, -1.2307, 0.3585},
                                   {1.8564, -1.2132, 0.3568},   {1.8750, -1.2500, 0.3750}};
  static constexpr Abc kCans[] = {{8.4703, -25.1081, 18.6293},
                                  {4.1828, -3.1087, 0.5806},
                                  {3.9619, -2.9541, 0.5630},
                                  {3.2866, -2.4647, 0.5074},
                                  {2.2737, -1.6447, 0.4162}};
  static constexpr Abc kCubic[] = {{3.3656576, -3.3420992, 0},
                                   {2.5744352, -1.4957376, 0},
                                   {2.5368962, -1.4312570, 0},
                                   {2.4418906, -1.276404, 0},
                                   {2.2230472, -0.963065, 0}};
  if (name == "simple") return kSimple;
  if (name == "quintic") return kQuintic[i % 5];
  if (name == "polar_express") return kPolar[std::min<size_t>(i, 7)];
  if (name == "cans") return kCans[std::min<size_t>(i, 4)];
  if (name == "deepseekv4") return i < 8 ? kSimple : Abc{2, -1.5, 0.5};
  if (name == "cubic5") return kCubic[std::min<size_t>(i, 4)];
  throw std::invalid_argument("muon_coefficient_type = " + name);
}

// A matrix, or a number of an F64 accumulator, in host memory.
class Block {
 public:
  Block(int64_t count, int32_t dtype)
      : count_(static_cast<uint64_t>(count)), dtype_(dtype), bytes_(count_ * DtypeBytes(dtype)) {}
  SpanData Read() { return {bytes_.data(), count_, dtype_, SPF_READ}; }
  SpanData Write() { return {bytes_.data(), count_, dtype_, SPF_WRITE}; }
  SpanData Add() { return {bytes_.data(), count_, dtype_, SPF_ADD}; }

 private:
  uint64_t count_;
  int32_t dtype_;
  std::vector<std::byte> bytes_;
};

SpanData SpanOf(const float* data, size_t count, int32_t access) {
  // A span that is read is not written: RunLaunch takes one type for both.
  auto* bytes = reinterpret_cast<std::byte*>(const_cast<float*>(data));
  return {bytes, count, SPF_F32, access};
}

void Launch(int32_t kernel, const std::vector<SpanData>& spans,
            const std::vector<double>& scalars = {}) {
  const std::string wrong = ValidateLaunch(kernel, spans, scalars);
  if (!wrong.empty())
    throw std::logic_error("oracle, kernel " + std::to_string(kernel) + ": " + wrong);
  RunLaunch(kernel, spans, scalars);
}

// y = a x + b y; y is only written if b is 0.
void Mix(double a, const SpanData& x, double b, SpanData y) {
  y.access = b == 0 ? SPF_WRITE : SPF_ADD;
  Launch(SPF_K_AXPBY, {x, y}, {a, b});
}

double ScaleOf(const std::string& mode, int64_t rows, int64_t cols) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(cols);
  if (mode == "spectral") return std::sqrt(std::max(m, n));
  if (mode == "unit_rms_norm") return std::sqrt(m / n);
  if (mode == "shape_scaling") return std::sqrt(std::max(1.0, m / n));
  throw std::invalid_argument("muon_scale_mode = " + mode);
}

}  // namespace

MuonShape MuonShapeOf(const spf_model& tables, int32_t id) {
  const spf_param& param = tables.params[id];
  if (param.n_dim != 2 || (param.flags & SPF_PARAM_FROZEN) != 0) return {};
  bool inside = false;
  for (int32_t m = param.module; m >= 0; m = tables.modules[m].parent) {
    const std::string_view type = tables.modules[m].type;
    inside = inside || type == "TransformerLayer" || type == "MTP";
  }
  if (!inside) return {};
  const std::string_view name = tables.modules[param.module].name;
  return {param.shape[1], param.shape[0], name.ends_with("attention.qkv")};
}

std::vector<float> NewtonSchulz(const MuonRule& rule, int64_t rows, int64_t cols,
                                const std::vector<float>& u) {
  const int32_t dtype = rule.bf16 ? SPF_BF16 : SPF_F32;
  const int64_t side = std::min(rows, cols), inner = std::max(rows, cols);
  const bool tall = rows > cols;
  Block squares(1, SPF_F64), inverse(1, SPF_F64);
  Block x(rows * cols, dtype), y(rows * cols, dtype), gram(side * side, dtype),
      mixed(side * side, dtype);
  const auto m = static_cast<double>(rows), n = static_cast<double>(cols),
             s = static_cast<double>(side), k = static_cast<double>(inner);
  const SpanData input = SpanOf(u.data(), u.size(), SPF_READ);
  Launch(SPF_K_SUM_SQUARES, {input, squares.Add()});
  Launch(SPF_K_NORM_SCALE, {squares.Read(), inverse.Write()}, {1, rule.eps, 1e15});
  Launch(SPF_K_AXPBY, {input, x.Write(), inverse.Read()}, {1, 0});
  for (int32_t step = 0; step < rule.ns_steps; ++step) {
    const Abc f = CoefficientsAt(rule.coefficients, static_cast<size_t>(step));
    Launch(SPF_K_GEMM, {x.Read(), x.Read(), gram.Write()},
           {s, s, k, tall ? 1.0 : 0.0, tall ? 0.0 : 1.0, 1, 0});
    if (f.c != 0) {
      Mix(1, gram.Read(), 0, mixed.Write());
      Launch(SPF_K_GEMM, {gram.Read(), gram.Read(), mixed.Add()}, {s, s, s, 0, 0, f.c, f.b});
    }
    Block& b = f.c == 0 ? gram : mixed;
    Mix(1, x.Read(), 0, y.Write());
    Launch(SPF_K_GEMM, {tall ? x.Read() : b.Read(), tall ? b.Read() : x.Read(), y.Add()},
           {m, n, s, 0, 0, f.c == 0 ? f.b : 1.0, f.a});
    std::swap(x, y);
  }
  std::vector<float> out(u.size());
  Mix(1, x.Read(), 0, SpanOf(out.data(), out.size(), SPF_WRITE));
  return out;
}

void UpdateMuon(const MuonRule& rule, double scale, const MuonShape& shape,
                const std::vector<float>& grad, std::vector<float>& momentum,
                std::vector<float>& weight) {
  const size_t n = grad.size();
  std::vector<float> x(n);
  const double beta = rule.momentum;
  const auto span = [n](const std::vector<float>& of) { return SpanOf(of.data(), n, SPF_READ); };
  Mix(scale, span(grad), 0, span(x));
  Mix(1 - beta, span(x), beta, span(momentum));
  if (rule.nesterov) Mix(beta, span(momentum), 1 - beta, span(x));
  const std::vector<float>& u = rule.nesterov ? x : momentum;
  const int64_t parts = shape.fused_qkv && rule.split_qkv ? 3 : 1;
  const int64_t rows = shape.rows / parts;
  if (rows * parts != shape.rows) throw std::invalid_argument("Q, K and V are no thirds");
  const auto elements = static_cast<size_t>(rows * shape.cols);
  for (int64_t part = 0; part < parts; ++part) {
    const auto from = u.begin() + static_cast<int64_t>(elements) * part;
    const std::vector<float> o =
        NewtonSchulz(rule, rows, shape.cols, {from, from + static_cast<int64_t>(elements)});
    const double factor = rule.extra_scale * ScaleOf(rule.scale_mode, rows, shape.cols);
    Mix(-(rule.lr * factor), SpanOf(o.data(), elements, SPF_READ), 1 - rule.lr * rule.weight_decay,
        SpanOf(weight.data() + elements * static_cast<size_t>(part), elements, SPF_ADD));
  }
}

}  // namespace shardproof
