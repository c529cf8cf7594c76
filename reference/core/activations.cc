#include "reference/core/activations.h"

namespace reference {

Activations::Activations(spf::Host& host, const spf_program& program, int32_t microbatch)
    : host_(host),
      microbatch_(microbatch),
      counts_(host, program, microbatch),
      act_(static_cast<size_t>(host.model().n_values)),
      dact_(act_.size()),
      rows_(act_.size()) {}

int64_t Activations::RowsOf(int32_t id) {
  const spf_value& value = host_.model().values[id];
  const bool dynamic = (value.flags & SPF_VALUE_DYNAMIC) != 0;
  return dynamic ? counts_.Total(value.rows_from) : value.max_rows;
}

void Activations::Before(const Operation& operation, spf_stream stream) {
  for (const spf_use& use : UsesOf(operation)) {
    if ((use.table != SPF_IN_ACT && use.table != SPF_IN_DACT) || use.access == SPF_READ) continue;
    const ValueRef ref{use.table == SPF_IN_DACT, use.id};
    if (At(ref) != 0) continue;
    Allocate(ref, stream, operation.node->module);
    const spf_value& value = host_.model().values[use.id];
    const uint64_t elements = Count(reference::At(rows_, use.id) * value.row_elems);
    if (use.access == SPF_ADD) host_.Fill(stream, At(ref), elements, value.dtype, 0);
  }
}

spf_addr Activations::Allocate(const ValueRef& ref, spf_stream stream, int32_t module) {
  const spf_value& value = host_.model().values[ref.value];
  const int64_t rows = reference::At(rows_, ref.value) = RowsOf(ref.value);
  const spf_purpose purpose = ref.gradient ? SPF_FOR_ACTIVATION_GRAD : SPF_FOR_ACTIVATION;
  const uint64_t bytes = Count(rows * value.row_elems) * spf::SizeOf(value.dtype);
  return At(ref) = host_.Alloc(stream, bytes, spf::For(purpose, module, microbatch_));
}

void Activations::After(const Operation& operation, spf_stream stream) {
  if (operation.phase != SPF_FWD) return;
  for (const spf_use& use : UsesOf(operation)) {
    if (WritesValue(use) && (host_.model().values[use.id].flags & SPF_VALUE_COUNTS) != 0)
      counts_.Fetch(use.id, At({false, use.id}), stream);
  }
}

void Activations::Free(const std::vector<ValueRef>& dead, spf_stream stream) {
  for (const ValueRef& value : dead) host_.Free(stream, At(value));
}

}  // namespace reference
