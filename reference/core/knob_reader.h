// knob_reader.h: what is the text of a knob as a number, a flag or a word?
#pragma once
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "reference/core/config.h"

namespace reference {

[[noreturn]] inline void Reject(const std::string& name, const std::string& value,
                                const std::string& why) {
  throw Rejected(name + " = " + value + ": " + why);
}

// Typed access to the knobs; every malformed value is refused.
class Knobs {
 public:
  explicit Knobs(const KnobReader& read) : read_(read) {}

  std::optional<std::string> Text(const char* name) const {
    const char* text = read_(name);
    return text ? std::optional<std::string>(text) : std::nullopt;
  }

  std::optional<int64_t> Integer(const char* name, int64_t least) const {
    const auto text = Text(name);
    if (!text) return std::nullopt;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || end != text->data() + text->size())
      Reject(name, *text, "not an integer");
    if (value < least) Reject(name, *text, "must be at least " + std::to_string(least));
    return value;
  }

  std::optional<int32_t> Integer32(const char* name, int64_t least) const {
    const std::optional<int64_t> value = Integer(name, least);
    if (value > INT32_MAX) Reject(name, std::to_string(*value), "too large");
    return value;
  }
  int32_t Size(const char* name) const { return Integer32(name, 1).value_or(1); }

  bool Flag(const char* name, bool otherwise = false) const {
    const int64_t value = Integer(name, 0).value_or(otherwise ? 1 : 0);
    if (value > 1) Reject(name, std::to_string(value), "must be 0 or 1");
    return value == 1;
  }

  double Real(const char* name, double otherwise) const {
    const auto text = Text(name);
    if (!text) return otherwise;
    char* end = nullptr;
    const double value = std::strtod(text->c_str(), &end);
    if (text->empty() || *end != '\0' || !std::isfinite(value))
      Reject(name, *text, "not a finite number");
    if (value < 0) Reject(name, *text, "must not be negative");
    return value;
  }

  // Scaling by it and back rounds nothing.
  double PowerOfTwo(const char* name, double otherwise) const {
    const double value = Real(name, otherwise);
    int exponent = 0;
    if (std::frexp(value, &exponent) != 0.5) Reject(name, *Text(name), "is no power of two");
    return value;
  }

  // The value that belongs to one of these words; the first is the default.
  template <class T>
  T OneOf(const char* name, const std::vector<std::pair<std::string, T>>& words) const {
    const std::string text = Text(name).value_or(words.front().first);
    std::string known;
    for (const auto& [word, value] : words) {
      if (word == text) return value;
      known += (known.empty() ? "" : ", ") + word;
    }
    Reject(name, text, "must be one of " + known);
  }

  spf_dtype Dtype(const char* name) const {
    return OneOf<spf_dtype>(name, {{"fp32", SPF_F32}, {"bf16", SPF_BF16}});
  }

 private:
  const KnobReader& read_;
};

}  // namespace reference
