// pickle.h: what does a Python pickle hold, without running anything?
//
// Numbers, texts, lists, tuples (read as lists) and dicts. Whatever makes other objects or calls
// something is refused. The operations are those of Lib/pickletools.py (python/cpython).
#pragma once
#include <string_view>

#include "conformance/trace/flight/value_tree.h"

namespace shardproof::flight {

// bytes must outlive the tree. Throws FormatError, which says at which byte what cannot be read.
Value ReadPickle(std::string_view bytes, ValueTree& tree);

}  // namespace shardproof::flight
