// id_field.h: how is one field of an instance written as a token of an id, and read back?
#pragma once
#include <charconv>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof::ids {

// One field of an instance: how its token is written (empty: at the default) and read (false: not
// this field's).
struct Field {
  std::function<std::string(const InstanceSpec&)> write;
  std::function<bool(const std::string& token, InstanceSpec&)> read;
};

// A member of the instance, of its model, of the model's mixture of experts, or of the options of
// Muon or of layer-wise engines.
template <typename T>
class Access {
 public:
  Access(T InstanceSpec::*member) : own_(member) {}      // NOLINT: implicit, tables read better
  Access(T ModelConfig::*member) : of_model_(member) {}  // NOLINT
  Access(T MoeConfig::*member) : of_moe_(member) {}      // NOLINT
  Access(T MuonSpec::*member) : of_muon_(member) {}      // NOLINT
  Access(T LayerWiseSpec::*member) : of_layer_wise_(member) {}  // NOLINT
  T& operator()(InstanceSpec& spec) const {
    if (own_ != nullptr) return spec.*own_;
    if (of_muon_ != nullptr) return spec.muon.*of_muon_;
    if (of_layer_wise_ != nullptr) return spec.layer_wise.*of_layer_wise_;
    return of_model_ != nullptr ? spec.model.*of_model_ : spec.model.moe.*of_moe_;
  }

 private:
  T InstanceSpec::*own_ = nullptr;
  T ModelConfig::*of_model_ = nullptr;
  T MoeConfig::*of_moe_ = nullptr;
  T MuonSpec::*of_muon_ = nullptr;
  T LayerWiseSpec::*of_layer_wise_ = nullptr;
};

template <typename T>
T Get(Access<T> access, const InstanceSpec& spec) {
  InstanceSpec copy = spec;
  return access(copy);
}

template <typename T>
T Usual(Access<T> access) {
  InstanceSpec usual;
  return access(usual);
}

// What follows the key in a token that begins with it.
inline bool After(const std::string& token, const std::string& key, std::string* rest) {
  if (token.compare(0, key.size(), key) != 0) return false;
  *rest = token.substr(key.size());
  return !rest->empty();
}

template <typename T>
bool ReadInteger(const std::string& text, T* value) {
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, *value);
  return !text.empty() && read.ec == std::errc() && read.ptr == end &&
         text == std::to_string(*value);
}

// "tied"; a default of true is written as "raw" is for quantised: the token names the other value.
Field Flag(const std::string& token, Access<bool> access);

// "k3"
template <typename Owner, typename T>
Field Integer(const std::string& key, T Owner::*member) {
  const Access<T> access(member);
  const T usual = Usual(access);
  return {[=](const InstanceSpec& spec) {
            const T value = Get(access, spec);
            return value == usual ? "" : key + std::to_string(value);
          },
          [=](const std::string& token, InstanceSpec& spec) {
            std::string rest;
            return After(token, key, &rest) && ReadInteger(rest, &access(spec));
          }};
}

// "lr0p5": a 'p' stands for the decimal point, because '.' ends tokens.
Field Real(const std::string& key, Access<double> access);

// Frequent words have a token of their own ("zero3"); any other is written as "strategy=word".
Field Word(const std::string& key, Access<std::string> access,
           const std::vector<std::pair<std::string, std::string>>& short_words,
           bool always = false);

}  // namespace shardproof::ids
