// How is an operation written? Where the suite has a name for it (fill, copy, scale-add), so that
// it can follow what the bytes mean; else as a launch with its name and its ranges.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "ranges.h"
#include "row.h"

namespace shardproof::device {

void WriteLaunch(const std::string& name, const Ranges& ranges);

// What one call of an operator reads and writes, as far as the suite has a word for it. Lists of
// tensors (foreach) are several, one each.
struct Elementwise {
  std::string name;  // `aten::add_`
  std::vector<at::Tensor> inputs;
  at::Tensor output;
};
// Writes them all and answers true, or writes nothing: one of them is nothing that the suite has a
// name for.
bool WriteKnown(const std::vector<Elementwise>& operations);

// A copy between tensors of one shape, on the current stream; either may be of the host (pinned or
// not).
void WriteCopy(const at::Tensor& from, const at::Tensor& to);

}  // namespace shardproof::device
