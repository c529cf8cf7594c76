// facts.h: what do model_api.h's functions say about a case and a model, as JSON?
#pragma once
#include <string>

#include "conformance/cases/case.h"
#include "conformance/model/model.h"

namespace shardproof::c_api {

// Where a rank stands in an instance: which samples it takes, which part of the model it holds.
struct RankPlace {
  int32_t data_rank = -1, data_ranks = 1;
  ModelRank model;
};
// REQUIRES: the case is legal.
RankPlace PlaceOf(const InstanceSpec& spec, int32_t world, int32_t rank);

std::string CaseFacts(const Case& c);
std::string ModelTables(const Model& model, const RankPlace& place);

}  // namespace shardproof::c_api
