// sequence_hint.h: in what do the sequences of a communicator's members differ?
//
// Sequences alone do not tell who is wrong: the most may all leave out what one rank rightly
// issues. So it is said who issues what others do not, and nothing where that is not clear.
#pragma once
#include <string>

#include "conformance/checks/graph/labels.h"
#include "conformance/checks/program/program.h"

namespace shardproof::graph {

// Of collectives that do not meet at odd.position; the odd one against the usual ones: "; in
// train_step 0 ranks 0 and 2 issue 1 operation that rank 1 does not: #3. Let every member issue the
// same sequence".
std::string SequenceHint(const Program& program, const Sequence& sequence, const Odd& odd);

}  // namespace shardproof::graph
