#include "reference/moe/exchange.h"

#include <stdexcept>
#include <string>

namespace reference {
namespace {

struct Ends {
  spf_addr from = 0, to = 0;
  int32_t value = -1;  // of whose shape both are, but for the number of rows
};

// What the operation reads and what it writes: values forward, their gradients backward.
Ends EndsOf(const Operation& operation, const Activations& activations) {
  const uint8_t table = operation.phase == SPF_FWD ? SPF_IN_ACT : SPF_IN_DACT;
  const spf_addr* address = operation.phase == SPF_FWD ? activations.act() : activations.dact();
  Ends ends;
  for (const spf_use& use : UsesOf(operation)) {
    if (use.table != table) continue;
    if (use.access == SPF_ADD) {
      throw std::logic_error(std::string(operation.node->name) +
                             " adds what it receives: an all-to-all can only write");
    }
    (use.access == SPF_READ ? ends.from : ends.to) = address[use.id];
    if (use.access == SPF_READ) ends.value = use.id;
  }
  if (ends.value < 0) throw std::logic_error(std::string(operation.node->name) + " reads nothing");
  return ends;
}

Splits SplitsOf(const Operation& operation, const spf_value& value, int32_t ranks, Counts& counts) {
  const spf_node& node = *operation.node;
  if (node.send_counts < 0) return SplitEqually(value.max_rows * value.row_elems, ranks);
  return SplitRows(counts.Rows(node.send_counts), counts.Rows(node.recv_counts), value.row_elems,
                   operation.phase != SPF_FWD);
}

}  // namespace

Splits SplitRows(const std::vector<int64_t>& send_rows, const std::vector<int64_t>& recv_rows,
                 int64_t row_elems, bool backward) {
  const auto elements = [row_elems](const std::vector<int64_t>& rows) {
    std::vector<uint64_t> pieces;
    for (int64_t n : rows) pieces.push_back(Count(n * row_elems));
    return pieces;
  };
  if (backward) return {elements(recv_rows), elements(send_rows)};
  return {elements(send_rows), elements(recv_rows)};
}

Splits SplitEqually(int64_t elements, int32_t ranks) {
  if (elements % ranks != 0) {
    throw std::logic_error(std::to_string(elements) + " elements have no " + std::to_string(ranks) +
                           " equal pieces");
  }
  const std::vector<uint64_t> pieces(static_cast<size_t>(ranks), Count(elements / ranks));
  return {pieces, pieces};
}

void Exchange(Host& host, const Communicator& ep, const Operation& operation, int32_t microbatch,
              spf_stream stream, Activations& activations) {
  const Ends ends = EndsOf(operation, activations);
  const spf_value& value = host.model().values[ends.value];
  const Splits splits = SplitsOf(operation, value, ep.size(), activations.counts());
  if (ep.size() == 1) {
    host.Copy(stream, ends.to, ends.from, splits.send[0] * spf::SizeOf(value.dtype));
    return;
  }
  const bool counts = value.dtype == SPF_I64;
  spf_collective op =
      spf::Host::Collective(SPF_ALL_TO_ALL_V, ep.handle, stream, value.dtype, ends.from, ends.to, 0,
                            spf::For(counts ? SPF_FOR_EXPERT_COUNTS : SPF_FOR_EXPERT_TOKENS,
                                     operation.node->module, microbatch));
  op.send_counts = splits.send.data();
  op.recv_counts = splits.recv.data();
  host.Communicate({op});
}

}  // namespace reference
