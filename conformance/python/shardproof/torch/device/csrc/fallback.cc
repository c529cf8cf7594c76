// Any operator without a kernel of its own runs on the CPU, on aliases of its arguments' bytes. No
// bytes are copied but those of fresh results, and what it touched is written.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include <cstring>
#include <set>

#include "alias.h"
#include "device.h"
#include "generator.h"
#include "launches.h"
#include "memory.h"
#include "ranges.h"
#include "streams.h"

namespace shardproof::device {
namespace {

using at::Tensor;
using c10::IValue;

// In-place operators that do not read what they write.
bool OnlyWrites(const std::string& name) {
  static const std::set<std::string> names = {
      "aten::zero_",   "aten::fill_",         "aten::uniform_", "aten::normal_",
      "aten::random_", "aten::bernoulli_",    "aten::eye",      "aten::exponential_",
      "aten::copy_",   "aten::_foreach_zero_"};
  return names.count(name) > 0;
}

// Operators whose tensors CUDA wants on one device; the CPU's kernels under the aliases could not
// tell.
bool WantsOneDevice(const std::string& name) {
  static const std::set<std::string> names = {
      "aten::add",   "aten::add_", "aten::sub",   "aten::sub_",     "aten::mul", "aten::mul_",
      "aten::div",   "aten::div_", "aten::mm",    "aten::addmm",    "aten::bmm", "aten::baddbmm",
      "aten::where", "aten::mv",   "aten::addmv", "aten::embedding"};
  return names.count(name) > 0;
}

class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : op_(op),
        name_(op.operator_name().name),
        stack_(*stack),
        first_(stack->size() - op.schema().arguments().size()),
        original_(stack->begin() + static_cast<int64_t>(first_), stack->end()) {}

  void Run() {
    for (size_t i = 0; i < original_.size(); ++i) TakeArgument(i);
    TORCH_CHECK(!(host_tensor_ && WantsOneDevice(name_)),
                "Expected all tensors to be on the same device, but ", name_,
                " got tensors of the cpu and of ", CurrentDevice());
    {
      std::optional<DrawOnDevice> draw;
      if (op_.hasTag(at::Tag::nondeterministic_seeded)) draw.emplace(generator_);
      op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    }
    PutReturns();
    Write();
  }

 private:
  int AccessOf(const c10::Argument& argument) const {
    if (argument.alias_info() == nullptr || !argument.alias_info()->isWrite()) return kRead;
    return argument.is_out() || OnlyWrites(name_) ? kWrite : kReadWrite;
  }

  Tensor Take(const Tensor& tensor, size_t i) {
    if (!OnDevice(tensor)) {
      host_tensor_ = host_tensor_ || (tensor.defined() && tensor.dim() > 0);
      return tensor;
    }
    const c10::Argument& argument = op_.schema().arguments()[i];
    const int access = AccessOf(argument);
    ranges_.Add(tensor, access);
    if (access & kRead) inputs_.push_back(tensor);
    if (access & kWrite) outputs_.push_back(tensor);
    // Kernels may resize what they are given, which an alias cannot: a result of its own, copied
    // after.
    if (argument.is_out() && original_[i].isTensor()) {
      return at::empty({0}, tensor.options().device(c10::kCPU));
    }
    return HostAlias(tensor);
  }

  void TakeArgument(size_t i) {
    IValue& value = stack_[first_ + i];
    if (value.isTensor()) {
      value = Take(value.toTensor(), i);
    } else if (value.isTensorList()) {
      lists_ = true;
      c10::List<Tensor> list;
      for (const Tensor& tensor : value.toTensorVector()) list.push_back(Take(tensor, i));
      value = list;
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> list;
      for (const std::optional<Tensor>& tensor : value.toOptionalTensorList().vec()) {
        list.push_back(tensor ? std::optional<Tensor>(Take(*tensor, i)) : std::nullopt);
      }
      value = list;
    } else if (value.isDevice() && value.toDevice().type() == kDeviceType) {
      value = c10::Device(c10::kCPU);
    } else if (value.isGenerator() && value.toGenerator().device().type() == kDeviceType) {
      generator_ = value.toGenerator();
      value = IValue();
    }
  }

  Tensor Fresh(const Tensor& result) {
    if (!result.defined() || result.device().type() != c10::kCPU) return result;
    const Tensor dense = result.is_non_overlapping_and_dense() ? result : result.contiguous();
    Tensor out =
        at::empty_strided(dense.sizes(), dense.strides(), dense.options().device(CurrentDevice()));
    if (dense.numel() > 0) std::memcpy(out.data_ptr(), dense.const_data_ptr(), dense.nbytes());
    ranges_.Add(out, kWrite);
    outputs_.push_back(out);
    return out;
  }

  void PutBack(const Tensor& tensor, const Tensor& result, bool own_result) {
    const bool resized = tensor.sizes() != result.sizes();
    if (!OnDevice(tensor) || !(resized || own_result)) return;
    if (resized) at::native::resize_output(tensor, result.sizes());
    HostAlias(tensor).copy_(result);
    if (resized) ranges_.Add(tensor, kWrite);
  }

  // A result that is an argument: its original, resized if the operator resized the alias.
  IValue Original(const c10::AliasInfo& alias, const IValue& result) {
    const auto& arguments = op_.schema().arguments();
    for (size_t i = 0; i < original_.size(); ++i) {
      const c10::AliasInfo* other = arguments[i].alias_info();
      if (other == nullptr || other->beforeSets() != alias.beforeSets()) continue;
      if (original_[i].isTensor() && result.isTensor()) {
        PutBack(original_[i].toTensor(), result.toTensor(), arguments[i].is_out());
      }
      return original_[i];
    }
    TORCH_CHECK(false, "shardproof: ", name_, " returns none of its arguments");
  }

  void PutReturns() {
    const auto& returns = op_.schema().returns();
    const size_t first = stack_.size() - returns.size();
    for (size_t i = 0; i < returns.size(); ++i) {
      IValue& value = stack_[first + i];
      const c10::AliasInfo* alias = returns[i].alias_info();
      if (alias != nullptr && alias->isWrite()) {
        value = Original(*alias, value);
        continue;
      }
      TORCH_CHECK(alias == nullptr, "shardproof: the view ", op_.operator_name(),
                  " is not supported on the recorded device");
      if (value.isTensor()) {
        value = Fresh(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<Tensor> list;
        for (const Tensor& tensor : value.toTensorVector()) list.push_back(Fresh(tensor));
        value = list;
      } else {
        to_host_ = true;
      }
    }
  }

  // A foreach of n tensors is n operations; other lists have no word of the suite.
  std::vector<Elementwise> Parts() const {
    const std::string foreach = "aten::_foreach_";
    if (name_.compare(0, foreach.size(), foreach) != 0) {
      if (lists_ || outputs_.size() != 1) return {};
      return {{name_, inputs_, outputs_[0]}};
    }
    const size_t n = outputs_.size();
    if (n == 0 || inputs_.size() % n != 0) return {};
    std::vector<Elementwise> parts;
    for (size_t i = 0; i < n; ++i) {
      Elementwise part{"aten::" + name_.substr(foreach.size()), {}, outputs_[i]};
      for (size_t k = i; k < inputs_.size(); k += n) part.inputs.push_back(inputs_[k]);
      parts.push_back(std::move(part));
    }
    return parts;
  }

  // The host waits for what it is told: a number, or how large a result is.
  bool Waits() const {
    if (to_host_) return true;
    if (!op_.hasTag(at::Tag::dynamic_output_shape)) return false;
    if (name_ != "aten::index") return true;
    for (const Tensor& tensor : inputs_) {
      if (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte) return true;
    }
    return false;
  }

  void Write() {
    const std::vector<Elementwise> parts = Parts();
    if (!ranges_.empty() && (parts.empty() || !WriteKnown(parts))) WriteLaunch(name_, ranges_);
    if (Waits()) SyncStream(CurrentStream());
  }

  const c10::OperatorHandle& op_;
  const std::string name_;
  torch::jit::Stack& stack_;
  const size_t first_;                  // place of the first argument on the stack
  const std::vector<IValue> original_;  // arguments
  Ranges ranges_;
  std::vector<Tensor> inputs_, outputs_;
  at::Generator generator_ = DefaultGenerator();
  bool host_tensor_ = false;
  bool lists_ = false;
  bool to_host_ = false;
};

void Fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op, stack).Run(); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&Fallback>());
}

}  // namespace
}  // namespace shardproof::device
