#include "conformance/fabric/sim/sim.h"

#include <stdexcept>

#include "conformance/fabric/sim/world.h"

namespace shardproof {

SimResult RunSim(int world, const SimOptions& options,
                 const std::function<void(Fabric&)>& rank_main) {
  if (world < 1 || world > 64)
    throw std::invalid_argument("sim: world must be 1..64, not " + std::to_string(world));
  if (options.queues < 0)
    throw std::invalid_argument("sim: queues must be 0 or more, not " +
                                std::to_string(options.queues));
  World sim(world, options, rank_main);
  if (options.on_start) {
    options.on_start([&sim](uint64_t address, std::string* text) {
      return DescribeAddress(&sim, address, text);
    });
  }
  return sim.Run();
}

}  // namespace shardproof
