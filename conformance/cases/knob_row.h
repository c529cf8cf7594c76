// knob_row.h: how is a row of the knob table written down?
//
// As a kind of value (Flag, Number, Real, Text, Word), the member of the instance that holds it,
// its token, and what is said of it; In() lists the values that a space combines:
//
//     Flag(&InstanceSpec::recompute, "recompute", {.name = "recompute", .meaning = "..."})
//         .In({Space::kDense}),
#pragma once
#include <charconv>
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/knob.h"
#include "conformance/cases/real_text.h"

namespace shardproof::rows {

// What a row says besides its kind.
struct About {
  std::string name;
  std::string values = {}, meaning = {};
  Told told = Told::kIfSet;
  For only = For::kAll;
};

// The part of an instance that has the member.
template <typename Spec>
auto& PartOf(Spec& spec, InstanceSpec*) {
  return spec;
}
template <typename Spec>
auto& PartOf(Spec& spec, ModelConfig*) {
  return spec.model;
}
template <typename Spec>
auto& PartOf(Spec& spec, MoeConfig*) {
  return spec.model.moe;
}
template <typename Spec>
auto& PartOf(Spec& spec, MuonSpec*) {
  return spec.muon;
}
template <typename Spec>
auto& PartOf(Spec& spec, LayerWiseSpec*) {
  return spec.layer_wise;
}

template <typename T>
struct Access {
  template <typename Owner>
  Access(T Owner::*member)  // NOLINT: implicit, tables read better
      : of([member](InstanceSpec& spec) -> T& {
          return PartOf(spec, static_cast<Owner*>(nullptr)).*member;
        }),
        get([member](const InstanceSpec& spec) -> const T& {
          return PartOf(spec, static_cast<Owner*>(nullptr)).*member;
        }),
        usual(get(InstanceSpec{})) {}

  std::function<T&(InstanceSpec&)> of;
  std::function<const T&(const InstanceSpec&)> get;
  T usual;
};

// How values are written for engines and in names of factors.
inline std::string ValueText(double value) { return RealText(value); }
inline std::string ValueText(const std::string& value) { return value.empty() ? "none" : value; }
template <typename E>
std::string ValueText(const Choice<E>& value) {
  return value.Text();
}
template <std::integral T>
std::string ValueText(T value) {
  return std::to_string(value);
}

inline std::vector<bool> AllValues(bool*) { return {false, true}; }
template <typename E>
std::vector<Choice<E>> AllValues(Choice<E>*) {
  std::vector<Choice<E>> all;
  for (const std::string& word : Choice<E>::Words()) all.push_back(Choice<E>::Parse(word));
  return all;
}

// A row whose value is a T.
template <typename T>
struct Row : Knob {
  Row(const Access<T>& its, About about) : access(its) {
    name = std::move(about.name);
    values = std::move(about.values);
    meaning = std::move(about.meaning);
    told = about.told;
    only = about.only;
    text = [its](const InstanceSpec& spec) { return ValueText(its.get(spec)); };
  }

  Row&& In(Space space, const std::vector<T>& combined) && {
    Factor& factor = factors[space];
    for (size_t i = 0; i < combined.size(); ++i) factor.shown.push_back(ValueText(T(combined[i])));
    factor.set = [its = access, combined](InstanceSpec& spec, size_t value) {
      its.of(spec) = combined[value];
    };
    return std::move(*this);
  }
  // All values of a flag, or all words.
  Row&& In(const std::vector<Space>& spaces) && {
    for (Space space : spaces) std::move(*this).In(space, AllValues(static_cast<T*>(nullptr)));
    return std::move(*this);
  }
  Row&& Says(std::function<std::string(const InstanceSpec&, int32_t world)> what) && {
    says = std::move(what);
    return std::move(*this);
  }

  Access<T> access;
};

// "tied"; a default of true is written as "raw" is for quantised: the token names the other value.
Row<bool> Flag(const Access<bool>& access, const std::string& token, About about);
// "k3"
Row<int32_t> Number(const Access<int32_t>& access, const std::string& key, About about);
Row<int64_t> Number(const Access<int64_t>& access, const std::string& key, About about);
// "lr0p5": a 'p' stands for the decimal point, because '.' ends tokens.
Row<double> Real(const Access<double>& access, const std::string& key, About about);
// "units=Embedding"
Row<std::string> Text(const Access<std::string>& access, const std::string& key, About about);
// The same; some values have tokens of their own.
using ShortWords = std::vector<std::pair<std::string, std::string>>;  // value, token
Row<std::string> Text(const Access<std::string>& access, const std::string& key,
                      const ShortWords& short_words, About about);

// "fp32, bf16"
std::string Listed(const std::vector<std::string>& words);

// Some words have tokens of their own ("zero3"); any other is written as "strategy=word". kAlways:
// the default is written, too.
enum class Written { kIfSet, kAlways };
struct WordTokens {
  std::string key;
  ShortWords short_words;
  Written written = Written::kIfSet;
};
void SetWordTokens(Knob& knob, const WordTokens& tokens, const std::string& usual,
                   std::function<std::string(const InstanceSpec&)> get,
                   std::function<void(InstanceSpec&, const std::string&)> set);

template <typename E, typename Owner>
Row<Choice<E>> Word(Choice<E> Owner::*member, const std::string& key,
                    const std::vector<std::pair<E, std::string>>& short_words, About about,
                    Written written = Written::kIfSet) {
  const Access<Choice<E>> access(member);
  Row<Choice<E>> row(access, std::move(about));
  row.words = Choice<E>::Words();
  if (row.values.empty()) row.values = Listed(row.words);
  WordTokens tokens{key, {}, written};
  for (const auto& [value, token] : short_words)
    tokens.short_words.emplace_back(Choice<E>(value).Text(), token);
  SetWordTokens(
      row, tokens, access.usual.Text(),
      [access](const InstanceSpec& spec) { return access.get(spec).Text(); },
      [access](InstanceSpec& spec, const std::string& word) {
        access.of(spec) = Choice<E>::Parse(word);
      });
  return row;
}

// What engines are told but no token says: derived from others, or set by no case.
Knob Derived(About about,
             std::function<std::string(const InstanceSpec&, int32_t world)> says = nullptr);

// --- tokens

// What follows the key in a token that begins with it.
bool After(const std::string& token, const std::string& key, std::string* rest);
// Only as this suite writes it: no '+', no leading zeros.
template <std::integral T>
bool ReadInteger(const std::string& text, T* value) {
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, *value);
  return !text.empty() && read.ec == std::errc() && read.ptr == end &&
         text == std::to_string(*value);
}

}  // namespace shardproof::rows
