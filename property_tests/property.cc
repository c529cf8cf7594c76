#include "property_tests/property.h"

#include <rapidcheck/detail/Configuration.h>
#include <rapidcheck/detail/TestListener.h>

#include <cstdlib>

namespace shardproof {
namespace {

using rc::detail::CaseDescription;
using rc::detail::CaseResult;

uint64_t SeedOfName(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

class SeedPrinter : public rc::detail::TestListener {
 public:
  SeedPrinter(std::string name, std::string params, std::ostream& log)
      : name_(std::move(name)), params_(std::move(params)), log_(log) {}

  void onTestCaseFinished(const CaseDescription& description) override {
    ++evaluations_;
    if (description.result.type != CaseResult::Type::Failure) return;
    log_ << "property '" << name_ << "' fails at evaluation " << evaluations_ << "; run again with "
         << params_ << "\n"
         << "  " << description.result.description << "\n  shrinking ..." << std::endl;
  }

  void onShrinkTried(const CaseDescription&, bool accepted) override {
    shrinks_ += accepted ? 1 : 0;
  }

  void onTestFinished(const rc::detail::TestMetadata&,
                      const rc::detail::TestResult& result) override {
    if (!result.is<rc::detail::SuccessResult>())
      log_ << "  " << shrinks_ << " shrinks accepted" << std::endl;
  }

 private:
  std::string name_, params_;
  std::ostream& log_;
  int evaluations_ = 0, shrinks_ = 0;
};

rc::detail::TestParams ParamsFor(const std::string& name, const PropertyOptions& options) {
  rc::detail::TestParams params;
  if (std::getenv("RC_PARAMS") != nullptr) {
    params = rc::detail::configuration().testParams;
  } else {
    params.seed = SeedOfName(name);
    params.maxSuccess = options.evaluations;
  }
  if (options.seed) params.seed = *options.seed;
  return params;
}

}  // namespace

uint64_t PropertySeed(const std::string& name, const PropertyOptions& options) {
  return ParamsFor(name, options).seed;
}

PropertyResult RunProperty(const std::string& name, const rc::detail::Property& property,
                           const PropertyOptions& options) {
  const rc::detail::TestParams params = ParamsFor(name, options);
  const std::string text = "RC_PARAMS=\"seed=" + std::to_string(params.seed) +
                           " max_success=" + std::to_string(params.maxSuccess) + "\"";
  std::ostream& log = *options.log;
  log << "property '" << name << "': " << text << std::endl;
  SeedPrinter printer(name, text, log);
  rc::detail::TestMetadata metadata;
  metadata.id = name;
  metadata.description = name;
  const rc::detail::TestResult result =
      rc::detail::checkProperty(property, metadata, params, printer, {});
  rc::detail::printResultMessage(result, log);
  log << std::endl;
  PropertyResult answer;
  answer.held = result.is<rc::detail::SuccessResult>();
  if (result.is<rc::detail::FailureResult>()) {
    for (const auto& [type, value] : result.get<rc::detail::FailureResult>().counterExample) {
      answer.counterexample += (answer.counterexample.empty() ? "" : "; ") + value;
    }
  }
  return answer;
}

bool JudgeWaived(const std::string& name, const PropertyWaiver& waiver,
                 const PropertyResult& result, std::ostream& log) {
  if (waiver.reason.empty()) {
    log << "property '" << name << "' is waived without a reason" << std::endl;
    return false;
  }
  if (result.held) {
    log << "property '" << name << "' holds: remove its waiver (" << waiver.reason << ")"
        << std::endl;
    return false;
  }
  if (result.counterexample != waiver.counterexample) {
    log << "property '" << name << "' is waived at " << waiver.counterexample << ", but fails at "
        << result.counterexample << std::endl;
    return false;
  }
  log << "property '" << name << "' is waived: " << waiver.reason << std::endl;
  return true;
}

}  // namespace shardproof
