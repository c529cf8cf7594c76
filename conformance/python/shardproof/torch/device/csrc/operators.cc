// The operators that need a kernel of their own: memory, views, copies.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/TensorShape.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <limits>

#include "alias.h"
#include "device.h"
#include "launches.h"
#include "memory.h"
#include "streams.h"
#include "transfers.h"

namespace shardproof::device {

using at::Tensor;

at::Tensor RawHostAlias(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return at::from_blob(
      tensor.numel() > 0 ? tensor.data_ptr() : nullptr, tensor.sizes(), tensor.strides(),
      [](void*) {},
      tensor.options().device(c10::kCPU).requires_grad(false).pinned_memory(std::nullopt));
}

at::Tensor HostAlias(const Tensor& tensor) {
  if (tensor.defined() && tensor.numel() > 0) WaitForTransfers(tensor.const_data_ptr());
  return RawHostAlias(tensor);
}

namespace {

const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

// Makes the device that a caller names the current one while memory is allocated.
class OnIndex {
 public:
  explicit OnIndex(std::optional<c10::Device> device)
      : before_(ExchangeDevice(device && device->has_index() ? device->index()
                                                             : c10::DeviceIndex{-1})) {}
  ~OnIndex() { ExchangeDevice(before_); }
  OnIndex(const OnIndex&) = delete;
  OnIndex& operator=(const OnIndex&) = delete;

 private:
  c10::DeviceIndex before_;
};

Tensor Empty(c10::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<c10::Device> device, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
  const OnIndex on(device);
  return at::detail::empty_generic(size, &DeviceAllocator(), kKeys, c10::dtype_or_default(type),
                                   format);
}

Tensor EmptyStrided(c10::IntArrayRef size, c10::IntArrayRef stride,
                    std::optional<at::ScalarType> type, std::optional<at::Layout>,
                    std::optional<c10::Device> device, std::optional<bool>) {
  const OnIndex on(device);
  return at::detail::empty_strided_generic(size, stride, &DeviceAllocator(), kKeys,
                                           c10::dtype_or_default(type));
}

Tensor CopyFrom(const Tensor& self, const Tensor& target, bool non_blocking) {
  if (target.numel() == 0) return target;
  const Tensor from = self.sizes() == target.sizes() ? self : self.expand(target.sizes());
  const Tensor source = OnDevice(from) ? HostAlias(from) : from;
  (OnDevice(target) ? HostAlias(target) : target).copy_(source);
  WriteCopy(from, target);
  const bool with_host = !OnDevice(from) || !OnDevice(target);
  if (with_host && !non_blocking) SyncStream(CurrentStream());
  // Copy.cu, copy_kernel_cuda: the host's allocator is told which stream uses the pinned block.
  if (with_host && non_blocking) {
    UseOnStream((OnDevice(from) ? target : from).const_data_ptr(), CurrentStream());
  }
  return target;
}

Tensor CopyFromAndResize(const Tensor& self, const Tensor& target) {
  if (self.sizes() != target.sizes()) target.resize_(self.sizes());
  return CopyFrom(self, target, false);
}

Tensor AsStrided(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                 std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(
      self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
      offset ? std::optional<int64_t>(offset->guard_int(__FILE__, __LINE__)) : std::nullopt);
}

Tensor View(const Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

Tensor ReshapeAlias(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size),
                                    C10_AS_INTARRAYREF_SLOW(stride));
}

Tensor Unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

const Tensor& Resize(const Tensor& self, c10::SymIntArrayRef size,
                     std::optional<at::MemoryFormat>) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(C10_AS_INTARRAYREF_SLOW(size));
  const size_t need =
      static_cast<size_t>(impl->numel() + impl->storage_offset()) * self.element_size();
  if (need > self.storage().nbytes()) {
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), need);
  }
  return self;
}

Tensor& SetStorageAt(Tensor& self, at::Storage storage, int64_t offset, c10::IntArrayRef size,
                     c10::IntArrayRef stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  if (stride.data() != nullptr) {
    impl->set_sizes_and_strides(size, stride);
  } else {
    impl->set_sizes_contiguous(size);
  }
  return self;
}

Tensor& SetStorage(Tensor& self, at::Storage storage) {
  const auto elements = static_cast<int64_t>(storage.nbytes() / self.element_size());
  return SetStorageAt(self, std::move(storage), 0, {elements}, {});
}

Tensor& SetTensor(Tensor& self, const Tensor& source) {
  if (self.is_same(source)) return self;
  return SetStorageAt(self, source.storage(), source.storage_offset(), source.sizes(),
                      source.strides());
}

Tensor& SetNothing(Tensor& self) {
  auto empty = c10::make_intrusive<at::StorageImpl>(at::StorageImpl::use_byte_size_t(), 0,
                                                    &DeviceAllocator(), true);
  return SetStorage(self, at::Storage(std::move(empty)));
}

void RecordStream(Tensor& self, c10::Stream stream) {
  UseOnStream(self.storage().data(), stream.id());
}

std::vector<Tensor> NotEmpty(const at::ITensorListRef& tensors) {
  std::vector<Tensor> some;
  for (const Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.dim() > 0, "zero-dimensional tensor cannot be concatenated");
    if (tensor.dim() != 1 || tensor.numel() != 0) some.push_back(tensor);
  }
  return some;
}

Tensor& CatOut(const at::ITensorListRef& tensors, int64_t dimension, Tensor& out) {
  const std::vector<Tensor> some = NotEmpty(tensors);
  if (some.empty()) return out;
  const int64_t d = c10::maybe_wrap_dim(dimension, some[0].dim());
  std::vector<int64_t> size = some[0].sizes().vec();
  size[static_cast<size_t>(d)] = 0;
  for (const Tensor& tensor : some) {
    TORCH_CHECK(OnDevice(tensor),
                "Expected all tensors to be on the same device, but cat got one of ",
                tensor.device(), " and one of ", CurrentDevice());
    size[static_cast<size_t>(d)] += tensor.size(d);
  }
  if (out.sizes() != c10::IntArrayRef(size)) out.resize_(size);
  int64_t at = 0;
  for (const Tensor& tensor : some) {
    out.narrow(d, at, tensor.size(d)).copy_(tensor);
    at += tensor.size(d);
  }
  return out;
}

Tensor Cat(const at::ITensorListRef& tensors, int64_t dimension) {
  TORCH_CHECK(tensors.size() > 0, "torch.cat(): expected a non-empty list of Tensors");
  const std::vector<Tensor> some = NotEmpty(tensors);
  at::ScalarType type = tensors.front().scalar_type();
  for (const Tensor& tensor : some) type = c10::promoteTypes(type, tensor.scalar_type());
  Tensor out = at::empty({0}, tensors.front().options().dtype(type));
  return CatOut(tensors, dimension, out);
}

void ForeachCopy(at::TensorList self, at::TensorList source, bool non_blocking) {
  TORCH_CHECK(self.size() == source.size(), "_foreach_copy_: ", self.size(), " targets, ",
              source.size(), " sources");
  for (size_t i = 0; i < self.size(); ++i) {
    const Tensor target = self[i];
    target.copy_(source[i], non_blocking);
  }
}

void SplitCopyOut(const Tensor& self, c10::SymIntArrayRef sizes, int64_t dimension,
                  at::TensorList out) {
  const std::vector<int64_t> lengths = C10_AS_INTARRAYREF_SLOW(sizes).vec();
  TORCH_CHECK(lengths.size() == out.size(), "split_with_sizes_copy: ", lengths.size(), " sizes, ",
              out.size(), " outputs");
  int64_t at = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const Tensor piece = self.narrow(dimension, at, lengths[i]);
    const Tensor target = out[i];
    if (target.sizes() != piece.sizes()) target.resize_(piece.sizes());
    target.copy_(piece);
    at += lengths[i];
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &Empty);
  m.impl("empty_strided", &EmptyStrided);
  m.impl("_copy_from", &CopyFrom);
  m.impl("_copy_from_and_resize", &CopyFromAndResize);
  m.impl("as_strided", &AsStrided);
  m.impl("view", &View);
  m.impl("_reshape_alias", &ReshapeAlias);
  m.impl("unfold", &Unfold);
  m.impl("resize_", &Resize);
  m.impl("set_.source_Tensor", &SetTensor);
  m.impl("set_.source_Storage", &SetStorage);
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(SetStorageAt));
  m.impl("set_", &SetNothing);
  m.impl("record_stream", &RecordStream);
  m.impl("cat", &Cat);
  m.impl("cat.out", &CatOut);
  m.impl("_foreach_copy_", &ForeachCopy);
  m.impl("split_with_sizes_copy.out", &SplitCopyOut);
}

}  // namespace
}  // namespace shardproof::device
