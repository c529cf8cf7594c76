// labels.h: do collectives that meet say that they are for the same thing?
//
// Labels are the engine's own words. Two collectives of one shape at one position carry whatever
// their ranks hand them, so only labels tell that gradients of one module meet those of another. A
// label that is left out agrees with any.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// Where members of a collective are of different kinds: whom to blame, and who are the most.
struct Odd {
  size_t position = 0;
  size_t odd = 0;             // member: of the kind that fewest have
  std::vector<size_t> usual;  // members: of the kind that most have
};

// The first position, common to all members, at which labels contradict each other. microbatches:
// not only purpose and module.
std::optional<Odd> FirstLabelsThatDiffer(const Program& program, const Sequence& sequence,
                                         bool microbatches);

// The first message that one side labels with one microbatch, and the other side with another.
std::optional<size_t> FirstOfAnotherMicrobatch(const Program& program, const Sequence& messages);

}  // namespace shardproof::graph
