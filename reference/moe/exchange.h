// exchange.h: how do rows travel between the ranks of "ep"?
//
// An EXCHANGE node is one all-to-all: forward it moves the value that the node reads into the value
// that it writes, backward the gradient of the latter into the gradient of the former. Pieces are
// in the order of the ranks. Forward, COUNTS values say how many rows go to and come from each
// rank; backward the two swap, because every gradient returns to where its row came from (EP-25).
// The combine node's forward is the way back already: its tables name the counts the other way
// round. A node without counts has equal pieces.
//
// A rank that sends or receives no rows takes part all the same (EP-29).
#pragma once
#include <cstdint>
#include <vector>

#include "reference/core/activations.h"
#include "reference/core/host.h"
#include "reference/groups/collection.h"

namespace reference {

// Elements per member of "ep".
struct Splits {
  std::vector<uint64_t> send, recv;
};

// The pieces of an exchange: rows times the elements of one row, swapped in backward.
Splits SplitRows(const std::vector<int64_t>& send_rows, const std::vector<int64_t>& recv_rows,
                 int64_t row_elems, bool backward);
// So many elements in equal pieces for so many ranks.
Splits SplitEqually(int64_t elements, int32_t ranks);

// Issues the operation of an EXCHANGE node on this stream. What it writes is allocated before
// (Activations::Before). Blocks the host until the counts that it needs have been copied.
void Exchange(Host& host, const Communicator& ep, const Operation& operation, int32_t microbatch,
              spf_stream stream, Activations& activations);

}  // namespace reference
