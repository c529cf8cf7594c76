// askable.h's and illegal.h's rules about Muon.
#include <cmath>
#include <vector>

#include "conformance/cases/askable.h"
#include "conformance/cases/illegal.h"
#include "conformance/cases/real_text.h"

namespace shardproof {
namespace {

bool Uses(const InstanceSpec& spec) { return spec.optimizer == Optimizer::kMuon; }

std::string Momentum(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || (spec.muon.momentum >= 0 && spec.muon.momentum < 1)) return "";
  return "muon_momentum = " + RealText(spec.muon.momentum) + ": from 0 to below 1";
}

std::string Steps(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || (spec.muon.ns_steps >= 1 && spec.muon.ns_steps <= 100)) return "";
  return "muon_num_ns_steps = " + std::to_string(spec.muon.ns_steps) + ": 1 to 100 steps";
}

// Six steps leave singular values in [0.064, 0.165], seven in [0.25, 0.62].
std::string PartOfQuintic(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.muon.coefficients != MuonCoefficients::kQuintic ||
      spec.muon.ns_steps % 5 == 0)
    return "";
  return "muon_num_ns_steps = " + std::to_string(spec.muon.ns_steps) +
         " with muon_coefficient_type = quintic: its five steps belong together";
}

std::string PartOfCubic(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.muon.coefficients != MuonCoefficients::kCubic5 || spec.muon.ns_steps == 5)
    return "";
  return "muon_num_ns_steps = " + std::to_string(spec.muon.ns_steps) +
         " with muon_coefficient_type = cubic5: use 5";
}

// After the Frobenius norm singular values end in [-1.21, 1.21].
std::string Aol(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.muon.coefficients != MuonCoefficients::kAol) return "";
  return "muon_coefficient_type = aol: it is made for another normalisation, here it flips signs";
}

}  // namespace

std::vector<IllegalRule> IllegalMuonRules() {
  return {
      WordRule("muon-coefficient-word", "muon_coefficient_type", {"w2.ddp.muon.coef=newton"}),
      WordRule("muon-scale-word", "muon_scale_mode", {"w3.ddp.muon.scale=rms"}),
      WordRule("muon-precision-word", "muon_fp32_matmul_prec", {"w2.ddp.muon.prec=low"}),
      WordRule("muon-tp-mode-word", "muon_tp_mode", {"w2.ddp.tp2.etp2.split.muon.tpmode=gathered"}),
      {"muon-momentum", Momentum, {"w2.ddp.muon.mom1"}},
      {"muon-steps", Steps, {"w4.ddp.muon.ns0"}},
      {"muon-part-of-quintic",
       PartOfQuintic,
       {"w4.ddp.muon.ns6", "w2.ddp.muon.ns7", "w8.zero1.muon.ns8"}},
      {"muon-part-of-cubic", PartOfCubic, {"w4.ddp.muon.coef=cubic5.ns4"}},
      {"muon-aol", Aol, {"w4.ddp.muon.coef=aol", "w3.zero3.muon.coef=aol.ns4"}},
  };
}

std::string MuonTpProblem(const InstanceSpec& spec) {
  const Choice<MuonTpMode>& mode = spec.muon.tp_mode;
  if (mode == MuonTpMode::kDuplicated || !mode.known()) return "";
  const std::string says = "tpmode = " + mode.Text() + ": ";
  if (!spec.tensor_parallel || spec.tp == 1)
    return says + "needs split and tp, else no matrix is split";
  if (mode == MuonTpMode::kDistributed && spec.tp > 2)
    return says + "of tp = " + std::to_string(spec.tp) +
           " ranks sums depend on the order of ranks, and 2 are asked";
  return "";
}

std::string MuonProblem(const InstanceSpec& spec) {
  const MuonSpec& muon = spec.muon;
  if (!Uses(spec))
    return muon == MuonSpec{} ? "" : "options of muon without muon: they say nothing";
  if (!std::isfinite(muon.momentum + muon.extra_scale + muon.eps))
    return "mom, extra and nseps are finite";
  if (muon.extra_scale < 0 || muon.eps < 0)
    return "extra = " + RealText(muon.extra_scale) + ", nseps = " + RealText(muon.eps) +
           ": neither is negative";
  return MuonTpProblem(spec);
}

}  // namespace shardproof
