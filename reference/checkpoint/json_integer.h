// json_integer.h: how is a whole number read from a file that may be damaged?
#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace reference {

struct NoInteger : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// nlohmann's own conversion takes 1e300, true and -1 for a uint64_t. Throws NoInteger for what is
// no whole number from 0 to most.
template <typename Json>
int64_t IntegerOf(const Json& value, int64_t most = std::numeric_limits<int64_t>::max()) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<uint64_t>();
    if (number <= static_cast<uint64_t>(most)) return static_cast<int64_t>(number);
  }
  throw NoInteger(value.dump().substr(0, 40) + " where a whole number from 0 to " +
                  std::to_string(most) + " is due");
}

template <typename Json>
std::vector<int64_t> IntegersOf(const Json& list) {
  std::vector<int64_t> numbers;
  for (const Json& value : list) numbers.push_back(IntegerOf(value));
  return numbers;
}

}  // namespace reference
