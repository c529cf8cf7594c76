// spaces.h: which spaces of cases have been derived already?
#pragma once
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "conformance/cases/layer_wise_space.h"
#include "conformance/cases/pipeline_space.h"
#include "conformance/cases/schedule_space.h"
#include "conformance/cases/space.h"

namespace shardproof {

// Keeps each space that was asked for: its relations take a second to derive, and a profile and
// what it covers are asked of the same ones.
class Spaces {
 public:
  using Ranks = std::vector<int32_t>;

  const CaseSpace& Dense(const Ranks& worlds) { return In(dense_, worlds); }
  const ScheduleSpace& Schedule(const Ranks& worlds, const Ranks& eps = ScheduleSpace::AllEps()) {
    return In(schedule_, worlds, eps);
  }
  const LayerWiseSpace& LayerWise(const Ranks& worlds) { return In(layer_wise_, worlds); }
  const PipelineSpace& Pipeline(const Ranks& worlds) { return In(pipeline_, worlds); }

 private:
  template <typename Space, typename... Key>
  static const Space& In(std::map<std::tuple<Key...>, Space>& spaces, const Key&... key) {
    const std::tuple<Key...> place(key...);
    const auto found = spaces.find(place);
    return found != spaces.end() ? found->second
                                 : spaces.emplace(place, Space(key...)).first->second;
  }

  std::map<std::tuple<Ranks>, CaseSpace> dense_;
  std::map<std::tuple<Ranks, Ranks>, ScheduleSpace> schedule_;
  std::map<std::tuple<Ranks>, LayerWiseSpace> layer_wise_;
  std::map<std::tuple<Ranks>, PipelineSpace> pipeline_;
};

}  // namespace shardproof
