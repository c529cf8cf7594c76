// choice.h: what is the value of a knob that is one of a few words?
//
// A word that an engine may know is an enumerator; any other word is kept as it is, because engines
// are asked for such words too, and must refuse them. Reading and writing words happens here alone.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

// Specialised for each enumeration: kWords, the word of each enumerator in the enumerators' order.
template <typename E>
struct WordsOf;

template <typename E>
class Choice {
 public:
  Choice(E value = E{}) : value_(value) {}  // NOLINT: implicit, an enumerator is a choice

  static Choice Parse(const std::string& word) {
    const auto& words = WordsOf<E>::kWords;
    const auto at = std::find(words.begin(), words.end(), word);
    if (at != words.end()) return static_cast<E>(at - words.begin());
    Choice choice;
    choice.unknown_ = word;
    return choice;
  }

  bool known() const { return !unknown_; }
  // REQUIRES: known(), else throws std::logic_error.
  E value() const {
    if (!known()) throw std::logic_error("no engine knows the word " + *unknown_);
    return value_;
  }
  std::string Text() const {
    return known() ? std::string(WordsOf<E>::kWords[static_cast<size_t>(value_)]) : *unknown_;
  }

  static std::vector<std::string> Words() {
    return {WordsOf<E>::kWords.begin(), WordsOf<E>::kWords.end()};
  }

  bool operator==(const Choice&) const = default;

 private:
  E value_;
  std::optional<std::string> unknown_;  // a word that is none; then value_ says nothing
};

}  // namespace shardproof
