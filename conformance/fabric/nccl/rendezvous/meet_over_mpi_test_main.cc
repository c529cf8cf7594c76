// Run under mpirun: ranks meet, exchange values case by case, and notice a process that is gone.
#include <iostream>

#include "conformance/fabric/nccl/rendezvous/case_table.h"
#include "conformance/fabric/nccl/rendezvous/meet_over_mpi.h"

namespace {

using namespace shardproof;

int Check(bool ok, const char* what, int rank) {
  if (!ok) std::cerr << "rank " << rank << ": " << what << "\n";
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  int errors = 0;
  const std::unique_ptr<Store> store = MeetOverMpi(world);
  std::vector<int32_t> all;
  std::vector<std::string> expected;
  for (int32_t rank = 0; rank < world.size(); ++rank) {
    all.push_back(rank);
    expected.push_back("value " + std::to_string(rank));
  }
  for (int item = 0; item < 20; ++item) {
    CaseTable r(*store, "case " + std::to_string(item), world.rank(), world.size());
    const auto values =
        AllGather(r, "values", all, "value " + std::to_string(world.rank()), nullptr);
    errors += Check(values == expected, "the values of all ranks differ", world.rank());
  }
  errors += Check(!store->Broken().has_value(), "nobody is gone", world.rank());
  CaseTable last(*store, "a broken case", world.rank(), world.size());
  if (world.rank() == world.size() - 1) last.Abort("the last rank gives up");
  errors += Check(!last.Get("never", nullptr).has_value(), "an abort ends waits", world.rank());
  errors +=
      Check(last.Aborted() == "the last rank gives up", "the reason is known to all", world.rank());
  CaseTable end(*store, "end", world.rank(), world.size());
  const auto counts = AllGather(end, "errors", all, std::to_string(errors), nullptr);
  int sum = 0;
  for (const std::string& count : counts.value_or(std::vector<std::string>{"1"}))
    sum += std::stoi(count);
  return world.Leave(sum == 0 ? 0 : 1);
}
