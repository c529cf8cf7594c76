// The cases of profiles.h about layer-wise engines that are written down one by one.
#include "conformance/cases/from_ids.h"
#include "conformance/cases/profiles.h"

namespace shardproof {

std::vector<Case> IllegalLayerWiseCases() {
  return FromIds({
      // options without the strategy
      "w4.ddp.aligned",
      "w8.zero3.bcast",
      "w2.zero1.gradbuf",
      "w4.lw.ub",
      "w2.lw.ogr.opg.ub.aligned",
      // words that no engine knows
      "w4.lw.layout=sliced",
      "w3.lw.transport=gossip",
      "w8.lw.ogr.opg.buffer=params",
      // owners of a part of the data-parallel ranks
      "w8.lw.n2",
      "w6.lw.n3.ogr.opg.aligned",
      "w8.lw.n2.twin.adamw.ep2.moe4",
      // gathers by bucket without buckets that are ready one by one
      "w4.lw.opg",
      "w8.lw.opg.bf16.bcast",
      // what equal shards, gathered in place, have no use for
      "w4.lw.aligned.bcast",
      "w5.lw.ogr.opg.aligned.padded",
      "w8.lw.ogr.opg.aligned.gradbuf",
      // pieces with padding in the storage of gradients
      "w4.lw.padded.gradbuf",
      "w3.lw.ogr.opg.bf16.bs300.padded.gradbuf",
      // gradients that are smaller than the values they would hold
      "w4.lw.acc16.gradbuf",
      "w3.lw.ogr.opg.wire16.acc16.muon.bcast.gradbuf",
  });
}

std::vector<Case> NamedLayerWiseCases() {
  return FromIds({
      // owners' values travel in each way, before the step returns and during the next forward
      "w8.lw.lr0p0625",
      "w8.lw.ogr.opg.bs300.lr0p0625",
      "w8.lw.ogr.opg.bs300.lr0p0625.bcast.gradbuf",
      "w3.lw.ogr.opg.bs1000.adamw.lr0p0625.odd.bias.aligned",
      // nothing to gather: one rank, groups of one, an expert that one rank has
      "w1.lw.ogr.opg.adamw.lr0p0625",
      "w4.lw.tp4.etp4.k2.ogr.opg.lr0p0625",
      "w4.lw.ep4.k2.ogr.opg.bs300.lr0p0625.moe4.bcast",
      // fewer parameters in a bucket than ranks, and no elements of most of them
      "w16.lw.ogr.opg.bs1.muon.lr0p0625.seq4.padded",
      "w11.lw.ogr.opg.lr0p0625.bias",
      // a module that a step leaves out, one that runs twice
      "w4.lw.k2.ogr.opg.bs1.lr0p0625.layers3.unused=step.gradbuf",
      "w4.lw.k2.ogr.opg.bs1.adamw.lr0p0625.reused.tied",
      // chains of dense and of expert buckets, on twins
      "w8.lw.twin.ep2.k2.ogr.opg.bs300.muon.lr0p0625.moe4.shared.mtp",
      // values still to be gathered when the model is saved, evaluated and loaded into
      "w4.lw.ogr.opg.bs300.adamw.lr0p0625.do=tsetsttlterlett.bcast",
      "w4.lw.ogr.opg.bs300.muon.lr0p0625.do=tsetsttlterlett.aligned",
      // steps above a norm, which change nothing, between others: the first ones, a later one
      "w4.lw.ogr.opg.bs300.adamw.lr0p0625.zeros.skip15p605.do=tetttt",
      "w4.lw.ogr.opg.bs300.muon.lr0p0625.skip15p65.do=tetttt.gradbuf",
      "w8.lw.ep2.k2.ogr.adamw.lr0p0625.zeros.skip9.do=ttsttltt.moe4.aligned",
  });
}

}  // namespace shardproof
