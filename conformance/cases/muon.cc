// askable.h's and illegal.h's rules about Muon.
#include <cmath>
#include <vector>

#include "conformance/cases/askable.h"
#include "conformance/cases/illegal.h"
#include "conformance/cases/real_text.h"

namespace shardproof {
namespace {

bool Uses(const InstanceSpec& spec) { return spec.optimizer == "muon"; }

std::string Unknown(const InstanceSpec& spec, const std::string& knob, const std::string& word,
                    const std::vector<std::string>& known) {
  return Uses(spec) ? UnknownWord(knob, word, known) : "";
}

std::string CoefficientWord(const InstanceSpec& spec, int32_t) {
  return Unknown(spec, "muon_coefficient_type", spec.muon.coefficients,
                 {"quintic", "simple", "polar_express", "cans", "deepseekv4", "cubic5", "aol"});
}

std::string ScaleWord(const InstanceSpec& spec, int32_t) {
  return Unknown(spec, "muon_scale_mode", spec.muon.scale_mode,
                 {"spectral", "unit_rms_norm", "shape_scaling"});
}

std::string PrecisionWord(const InstanceSpec& spec, int32_t) {
  return Unknown(spec, "muon_fp32_matmul_prec", spec.muon.precision, {"highest", "medium"});
}

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
  if (!Uses(spec) || spec.muon.coefficients != "quintic" || spec.muon.ns_steps % 5 == 0) return "";
  return "muon_num_ns_steps = " + std::to_string(spec.muon.ns_steps) +
         " with muon_coefficient_type = quintic: its five steps belong together";
}

std::string PartOfCubic(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.muon.coefficients != "cubic5" || spec.muon.ns_steps == 5) return "";
  return "muon_num_ns_steps = " + std::to_string(spec.muon.ns_steps) +
         " with muon_coefficient_type = cubic5: use 5";
}

// After the Frobenius norm singular values end in [-1.21, 1.21].
std::string Aol(const InstanceSpec& spec, int32_t) {
  if (!Uses(spec) || spec.muon.coefficients != "aol") return "";
  return "muon_coefficient_type = aol: it is made for another normalisation, here it flips signs";
}

}  // namespace

std::vector<IllegalRule> IllegalMuonRules() {
  return {
      {"muon-coefficient-word", CoefficientWord},
      {"muon-scale-word", ScaleWord},
      {"muon-precision-word", PrecisionWord},
      {"muon-momentum", Momentum},
      {"muon-steps", Steps},
      {"muon-part-of-quintic", PartOfQuintic},
      {"muon-part-of-cubic", PartOfCubic},
      {"muon-aol", Aol},
  };
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
  return "";
}

}  // namespace shardproof
