// plugin.h: which engine does an address name?
//
// Making a Plugin of a library runs foreign code, at once (its constructors) and later. A program
// that must survive it makes one in a process of its own only (isolation/).
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "conformance/abi/shardproof.h"

namespace shardproof {

// builtin:reference, or lib:PATH[:args]. Throws std::invalid_argument that says what is wrong with
// the address, or why the library cannot be used (not found, no shardproof_plugin, another major
// version, a missing function).
class Plugin {
 public:
  // on_step, if any, hears before foreign code is entered what it is: "loading the library",
  // "shardproof_plugin", "unloading the library".
  using OnStep = std::function<void(const char* step)>;
  explicit Plugin(const std::string& address, const OnStep& on_step = nullptr);
  // A library stays loaded: code of it may still be referenced by what it left behind.
  ~Plugin() = default;
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  // Runs the library's destructors, and what it has given to atexit. Nothing of the table may be
  // used afterwards.
  void Unload(const OnStep& on_step);

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
