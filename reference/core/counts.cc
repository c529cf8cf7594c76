#include "reference/core/counts.h"

#include <numeric>
#include <stdexcept>
#include <string>

#include "reference/core/tables.h"

namespace reference {

Counts::Counts(spf::Host& host, const spf_program& program, int32_t microbatch)
    : host_(host), microbatch_(microbatch), wanted_(static_cast<size_t>(host.model().n_values)) {
  const auto want = [&](int32_t value) {
    if (value >= 0) At(wanted_, value) = true;
  };
  for (const spf_node& node : NodesOf(program)) {
    if (node.kind == SPF_NODE_EXCHANGE) want(node.send_counts), want(node.recv_counts);
    for (const spf_use& use : UsesOf(node, SPF_FWD)) {
      if (use.table != SPF_IN_ACT) continue;
      const spf_value& value = host.model().values[use.id];
      if ((value.flags & SPF_VALUE_DYNAMIC) != 0) want(value.rows_from);
    }
  }
}

void Counts::Fetch(int32_t value, spf_addr device, spf_stream stream) {
  if (!At(wanted_, value) || copied_.contains(value)) return;
  const spf_value& facts = host_.model().values[value];
  Copied& copied = copied_[value];
  copied.rows.resize(static_cast<size_t>(facts.max_rows * facts.row_elems));
  const uint64_t bytes = copied.rows.size() * sizeof(int64_t);
  copied.pinned =
      host_.Alloc(stream, bytes, spf::For(SPF_FOR_EXPERT_COUNTS, -1, microbatch_), SPF_PINNED);
  copied.stream = stream;
  copied.done = host_.Event();
  host_.Copy(stream, copied.pinned, device, bytes);
  host_.Record(copied.done, stream);
}

const std::vector<int64_t>& Counts::Rows(int32_t value) {
  const auto found = copied_.find(value);
  if (found == copied_.end()) {
    throw std::logic_error(std::string(host_.model().values[value].name) +
                           " is needed and was not written before in microbatch " +
                           std::to_string(microbatch_));
  }
  Copied& copied = found->second;
  if (copied.done == nullptr) return copied.rows;
  spf::Check(host_.raw()->event_sync(host_.raw(), copied.done));
  const int64_t* rows = host_.Touch<int64_t>(copied.pinned, copied.rows.size(), SPF_READ);
  copied.rows.assign(rows, rows + copied.rows.size());
  spf::Check(host_.DestroyEvent(std::exchange(copied.done, nullptr)));
  host_.Free(copied.stream, copied.pinned);
  return copied.rows;
}

int64_t Counts::Total(int32_t value) {
  const std::vector<int64_t>& rows = Rows(value);
  return std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

}  // namespace reference
