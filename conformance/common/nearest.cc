#include "conformance/common/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace shardproof {

namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Letters added, left out, changed, or swapped with their neighbour.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t changed = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Nearest(std::string_view written, const std::vector<std::string>& words) {
  constexpr size_t kLongest = 100;  // of what anybody meant to write
  if (written.size() > kLongest) return "";
  const std::string lower = Lower(written);
  std::string nearest;
  size_t best = std::max<size_t>(1, lower.size() / 3) + 1;
  for (const std::string& word : words) {
    const size_t distance = Distance(lower, Lower(word));
    if (distance >= best) continue;
    best = distance;
    nearest = word;
  }
  return nearest;
}

std::string DidYouMean(std::string_view written, const std::vector<std::string>& words) {
  const std::string nearest = Nearest(written, words);
  return nearest.empty() ? "" : ". Did you mean " + nearest + "?";
}

}  // namespace shardproof
