// host_facts.h: do all hosts of a job run the same suite on the same engine?
//
// A host may have an older build of either, or none of the engine. Its ranks would then differ from
// the others in ways that look like the engine's mistakes, so the facts are compared before
// anything runs.
#pragma once
#include <string>
#include <vector>

namespace shardproof {

// Of one rank.
struct HostFacts {
  std::string host;
  std::string suite;   // its version and the contents of the program
  std::string engine;  // the contents of the library, or why they cannot be read; empty: built in
};

// Here. address: of --impl.
HostFacts FactsHere(const std::string& address);

std::string PackFacts(const HostFacts& facts);
// Throws std::runtime_error: it was packed by another suite.
HostFacts UnpackFacts(const std::string& packed);

// What is not the same on all, with hosts and ranks; empty: nothing. by_rank: packed.
std::string HostsDisagree(const std::vector<std::string>& by_rank, const std::string& address);

// "hosts: near: ranks 0 to 1; far: rank 2". Empty: all ranks are on one.
std::string HostsLine(const std::vector<std::string>& by_rank);

}  // namespace shardproof
