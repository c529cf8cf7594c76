// plugin.h: how is the reference engine linked into a program?
#pragma once
#include "conformance/abi/shardproof.h"

namespace reference {

// The engine's plug-in table, or NULL if the host speaks another major version. The shared library
// exports the same table as shardproof_plugin().
const spf_plugin* ReferencePlugin(uint32_t host_abi_major);

}  // namespace reference
