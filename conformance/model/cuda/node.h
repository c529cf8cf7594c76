// node.h: how does a node of the model run on a GPU?
#pragma once
#include "conformance/cuda/queue.h"
#include "conformance/model/model.h"

namespace shardproof {

// Model::Compute on the device: puts one phase of one node into the queue and returns. args as
// there, but the pointers in its tables are device pointers (the tables themselves, and rows, are
// read on the host before the return), and no probe. The same bits as Model::Compute with quantised
// models; close to it otherwise. Throws what Model::Compute throws.
void RunNode(Queue& queue, const Model& model, const NodeArgs& args, ModelRank rank);

}  // namespace shardproof
