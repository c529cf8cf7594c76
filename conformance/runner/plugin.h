// plugin.h: which engine does an address name?
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "conformance/abi/shardproof.h"

namespace shardproof {

// builtin:reference, or lib:PATH[:args]. Throws std::invalid_argument that says what is wrong with
// the address, or why the library cannot be used (not found, no shardproof_plugin, another major
// version, a missing function).
class Plugin {
 public:
  explicit Plugin(const std::string& address);
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const spf_plugin& table() const { return *table_; }
  // NULL where the engine has none, or was built before interface 1.2.
  decltype(spf_plugin::plan) plan() const {
    return table_->size >= offsetof(spf_plugin, plan) + sizeof table_->plan ? table_->plan
                                                                            : nullptr;
  }
  const std::string& address() const { return address_; }
  const std::string& args() const {
    return args_;
  }  // text after the path, for the knob plugin_args

 private:
  std::string address_, args_;
  void* library_ = nullptr;
  const spf_plugin* table_ = nullptr;
};

}  // namespace shardproof
