// The one symbol of the shared library.
#include "reference/plugin.h"

extern "C" const spf_plugin* shardproof_plugin(uint32_t host_abi_major) {
  return reference::ReferencePlugin(host_abi_major);
}
