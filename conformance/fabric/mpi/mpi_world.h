// mpi_world.h: how does a program under mpirun run case after case, whatever the engine does?
//
// Every process of the job makes one MpiWorld and calls its methods in the same order (lockstep).
// Engine code runs in forked children only: a crash, an exit, an endless loop or a deadlock ends
// the case, not the job. See README.md.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/fabric/fabric.h"
#include "conformance/fabric/mpi/case_end.h"

namespace shardproof {

class MpiWorld {
 public:
  // Initialises MPI. message_bytes: address space for messages in each direction, a rank.
  MpiWorld(int* argc, char*** argv, uint64_t message_bytes = uint64_t{1} << 30);
  ~MpiWorld();  // finalises MPI
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const;
  int size() const;  // processes in the job

  // Runs rank_main in a child of each of the first `world` processes; the others wait. Returns on
  // all processes when the case is over. What rank_main changes in memory is lost; its answer (any
  // bytes) comes back in RankEnd::blob. Throws std::invalid_argument if world is not in 1..size().
  // Collective.
  CaseEnd RunCase(int world, const MpiOptions& options,
                  const std::function<std::string(Fabric&)>& rank_main);

  // Rank 0's text, on all processes. Collective.
  std::string Broadcast(std::string from_rank0);

  // The texts of all processes, by rank, on rank 0; nothing on the others. Collective.
  std::vector<std::string> Gather(const std::string& text);

  // The end: rank 0's code, on all processes, for the program to return. Where MPI_Finalize is
  // known to hang (leave.h) the process ends here with it, without destructors. Collective.
  int Leave(int code_of_rank0);

  // The end of the job where this process alone can not go on: the others wait for it. What it has
  // written arrives.
  [[noreturn]] void Abort(int code);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardproof
