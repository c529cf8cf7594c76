// partners.h: which other run must a case's run agree with?
//
// A relation between two runs says more than each alone: it needs no oracle. Each case is paired
// with one partner, chosen by its id among the relations that apply, so that a profile exercises
// all of them; and with those that always apply.
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof {

struct Partner {
  Case spec;                // what the partner runs
  bool new_timing = false;  // under another timing of the same case
  std::string requirement;  // under which a difference is reported
  bool sequences = false;   // collective sequences must agree too; for twins up to the communicator
  std::string why;          // "without twins"
  bool always = false;      // the case is never judged without it
};

// Relations that apply to a legal case with one engine; empty for others.
std::vector<Partner> PartnersOf(const Case& c);
// Those that the case is run with: the ones that always apply, and one of the others, which the id
// picks.
std::vector<Partner> PartnersToRun(const Case& c);

}  // namespace shardproof
