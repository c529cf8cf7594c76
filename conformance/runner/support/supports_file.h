// supports_file.h: how is it written down which values of which knobs an engine takes?
//
//   [strategies]                  # cases without a mixture of experts; also: experts, layer_wise,
//                                 # pipelines
//   strategy = ["optim"]          # values as `shardproof list knobs` has them
//   world = ["1", "2", "4"]
//
//   without = [{ param_dtype = ["bf16"], grad_comm_dtype = ["fp32"] }]    # not together
//   plain = { strategy = "optim" }    # of cases that do not ask for another value; else the first
//   changes = 5                       # most knobs in which a case differs from the plainest one
//
// A knob that is not named keeps its default; of a section that is missing nothing is taken.
#pragma once
#include <string>
#include <string_view>

#include "conformance/cases/support/supported.h"

namespace shardproof {

// TOML 1.0. Throws std::invalid_argument that names file, line and what is wrong there.
Supported ParseSupports(std::string_view text, const std::string& file_name);
// The same, with a comment in front.
std::string SupportsText(const Supported& supported, const std::string& comment);

// Whether all that is named is there. Throws std::invalid_argument that names the file, and the
// knob or value that no case has.
void CheckSupports(const Supported& supported, const std::vector<CaseFactors>& spaces,
                   const std::string& file_name);

}  // namespace shardproof
