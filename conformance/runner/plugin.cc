#include "conformance/runner/plugin.h"

#include <dlfcn.h>

#include <stdexcept>

namespace shardproof {

namespace {

// The engine that is linked into this program is an ordinary plug-in; it exports the same symbol as
// any other.
const spf_plugin* Builtin(std::string_view name) {
  if (name != "reference") {
    throw std::invalid_argument("builtin:" + std::string(name) +
                                " does not exist: the built-in engine is "
                                "builtin:reference");
  }
  return shardproof_plugin(SPF_ABI_MAJOR);
}

void CheckTable(const spf_plugin* table, const std::string& address) {
  if (table == nullptr) {
    throw std::invalid_argument(
        address + ": shardproof_plugin(" + std::to_string(SPF_ABI_MAJOR) +
        ") returned NULL: the engine was built for another major version of the interface");
  }
  if (table->abi_major != SPF_ABI_MAJOR) {
    throw std::invalid_argument(address + ": built for interface version " +
                                std::to_string(table->abi_major) + ", this suite speaks " +
                                std::to_string(SPF_ABI_MAJOR));
  }
  if (table->size < offsetof(spf_plugin, plan)) {  // what interface 1.0 had
    throw std::invalid_argument(address + ": spf_plugin.size is " + std::to_string(table->size) +
                                ": set it to sizeof(spf_plugin)");
  }
  if (table->create == nullptr || table->train_step == nullptr || table->destroy == nullptr) {
    throw std::invalid_argument(address +
                                ": create, train_step and destroy must be set in spf_plugin");
  }
}

}  // namespace

Plugin::Plugin(const std::string& address, const OnStep& on_step) : address_(address) {
  const auto step = [&](const char* what) {
    if (on_step) on_step(what);
  };
  if (address.starts_with("builtin:")) {
    table_ = Builtin(std::string_view(address).substr(8));
  } else if (address.starts_with("lib:")) {
    std::string path = address.substr(4);
    const size_t colon = path.find(':');
    if (colon != std::string::npos) {
      args_ = path.substr(colon + 1);
      path.resize(colon);
    }
    if (path.find('/') == std::string::npos) path = "./" + path;
    step("loading the library");
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::invalid_argument(address + ": " + dlerror());
    using Entry = const spf_plugin* (*)(uint32_t);
    const auto entry = reinterpret_cast<Entry>(dlsym(library_, "shardproof_plugin"));
    if (entry == nullptr) {
      throw std::invalid_argument(address + ": the library does not export shardproof_plugin");
    }
    step("shardproof_plugin");
    table_ = entry(SPF_ABI_MAJOR);
  } else {
    throw std::invalid_argument("\"" + address +
                                "\" is no engine: use builtin:reference or lib:PATH[:args]");
  }
  CheckTable(table_, address);
}

void Plugin::Unload(const OnStep& on_step) {
  on_step("unloading the library");
  if (library_ != nullptr) dlclose(library_);
  library_ = nullptr;
  table_ = nullptr;
}

}  // namespace shardproof
