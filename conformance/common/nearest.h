// nearest.h: which word did somebody mean who wrote another one?
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

// The first of the words with the fewest letters to add, leave out, change or swap with their
// neighbour, whatever their case; empty if all are further than a third of what was written.
std::string Nearest(std::string_view written, const std::vector<std::string>& words);

// ". Did you mean X?", or nothing.
std::string DidYouMean(std::string_view written, const std::vector<std::string>& words);

}  // namespace shardproof
