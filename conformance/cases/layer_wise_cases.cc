// The cases of profiles.h about layer-wise engines that are written down one by one.
#include "conformance/cases/from_ids.h"
#include "conformance/cases/profiles.h"

namespace shardproof {

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
      // layers that are split over tp: owners of shards, norms over them, a checkpoint
      "w4.lw.tp2.etp2.split.k2.ogr.opg.bs300.adamw.lr0p0625.norm.zeros.do=tetslett",
      "w8.lw.twin.tp2.ep2.etp2.split.k2.ogr.lr0p0625.clip0p5.bias.moe4.shared.padded",
      // Muon on shards of owners: gathered over tp, added up, each by itself; experts are whole
      "w4.lw.tp2.etp2.split.ogr.opg.bs300.muon.lr0p0625.heads4.do=tetslett",
      "w8.lw.twin.tp2.ep2.etp2.split.k2.ogr.muon.lr0p0625.bias.moe4.shared.mtp.nesterov.padded",
      "w4.lw.tp2.etp2.split.ogr.opg.muon.lr0p0625.heads4.tpmode=distributed.aligned",
      "w4.lw.tp2.etp2.split.k2.bs300.muon.lr0p0625.prec=medium.tpmode=distributed.bcast",
      "w8.lw.tp4.etp4.split.ogr.muon.lr0p0625.heads4.tpmode=blockwise",
      // a momentum of other microbatches than the step's: no sum over microbatches
      "w2.lw.ctx.k2.acc16.muon.lr0p0625.unused=rank",
      // ranks of experts are those of tp: what goes over them are experts, and no exchange of
      // shards
      "w2.lw.tp2.split.sp.muon.lr0p0625.moe4.tpmode=blockwise",
      // the vocabulary split as well: owners of its ranges
      "w4.lw.tp2.etp2.split.splitvocab.k2.ogr.opg.bs300.adamw.lr0p0625.norm.zeros.do=tetslett",
  });
}

}  // namespace shardproof
