// Under mpirun with three ranks: every refusal on real processes. Rank 0 reports.
#include <cstdio>

#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/host/refusal_cases.h"

namespace shardproof {
namespace {

// Each rank refuses all the local calls.
int LocalRefusals(MpiWorld& world) {
  std::vector<RefusalCase> local;
  for (const RefusalCase& c : RefusalCases()) {
    if (c.call != "communicate") local.push_back(c);
  }
  const CaseEnd end =
      world.RunCase(3, {}, [&](Fabric& fabric) { return RunRefusalCases(fabric, local); });
  if (world.rank() != 0) return 0;
  int bad = local.size() > 40 ? 0 : 1;
  for (const RankEnd& rank : end.ranks) {
    if (rank.returned && rank.blob.empty()) continue;
    std::printf("local refusals: %s %s\n%s", ToText(rank.kind), rank.detail.c_str(),
                rank.blob.c_str());
    ++bad;
  }
  return bad;
}

// Rank 0's communicate is refused, which ends the run for those who wait for it.
int CollectiveRefusal(MpiWorld& world, const RefusalCase& c) {
  const CaseEnd end = world.RunCase(3, {}, [&](Fabric& fabric) -> std::string {
    if (fabric.rank() == 0) return RunRefusalCases(fabric, {c});
    int32_t made = -1;
    std::string key;
    const int32_t group = fabric.OpenGroup("w", {0, 1, 2});
    return fabric.CreateGroup(group, {1, 2}, &made, &key) == SPF_ABORTED ? "" : "was not aborted";
  });
  if (world.rank() != 0) return 0;
  int bad = 0;
  for (const RankEnd& rank : end.ranks) {
    if (rank.returned && rank.blob.empty()) continue;
    std::printf("%s: %s %s %s\n", c.name.c_str(), ToText(rank.kind), rank.detail.c_str(),
                rank.blob.c_str());
    ++bad;
  }
  return bad;
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) {
  shardproof::MpiWorld world(&argc, &argv);
  int bad = shardproof::LocalRefusals(world), cases = 0;
  for (const shardproof::RefusalCase& c : shardproof::RefusalCases()) {
    if (c.call != "communicate") continue;
    bad += shardproof::CollectiveRefusal(world, c);
    ++cases;
  }
  if (world.rank() == 0) std::printf("%d wrong, %d collectives refused\n", bad, cases);
  return world.Leave(bad == 0 && cases > 0 ? 0 : 1);
}
