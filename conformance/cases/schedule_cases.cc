// The cases of profiles.h about experts, schedules and pipelines that are written down one by one.
#include "conformance/cases/from_ids.h"
#include "conformance/cases/profiles.h"

namespace shardproof {
namespace {

// Both ways to shard, weight gradients apart or not, memory of attention released early or not:
// the four combinations that are published, each twice.
void AddCombinations(const std::string& rest, std::vector<std::string>& ids) {
  for (const char* strategy : {"zero3", "zero2"}) {
    for (const char* delay : {"", ".dw"}) {
      for (const char* release : {"", ".er"}) {
        ids.push_back("w4." + std::string(strategy) + rest + ".1f1b" + delay + release);
      }
    }
  }
}

std::vector<Case> SequenceCases() {
  // The sequences of the published schedule: two layers, two microbatches, nothing gathered ahead.
  std::vector<std::string> ids;
  AddCombinations(".ep2.k2.pf0.moe4", ids);
  const std::vector<Case> others = FromIds({
      // numbers of microbatches: nothing to overlap with, the last pair, more of them
      "w4.zero3.ep2.moe4.1f1b",
      "w4.zero3.ep2.k3.moe4.1f1b.dw",
      "w4.zero2.ep2.k5.moe4.1f1b.dw",
      // every schedule of these must go through: gathers beside reductions, on one
      // communicator and on two
      "w8.zero3.ep4.k3.layers3.moe8.1f1b.dw",
      "w8.zero3.twin.ep4.k3.layers3.moe8.1f1b.dw",
      // long enough to see what is hidden
      "w4.zero3.ep2.k8.do=t.layers8.moe4.1f1b",
      // grids: ep of one rank, of all, with replicas, built by the engine, cut for HSDP
      "w1.zero3.k2.moe4",
      "w4.zero3.moe4.k2",
      "w8.zero3.ep8.moe8.k2",
      "w8.zero3.ep8.k2.moe8.1f1b.dw",
      "w8.zero3.tp2.ep2.etp2.k2.moe4.1f1b",
      "w8.zero2.cp2.ep4.k2.moe8.1f1b.dw",
      "w8.zero3.twin.grid.tp2.cp2.ep2.etp2.k2.moe4.1f1b.dw",
      // parts of the sequence are routed over ranks of tp and of cp: etp differs from tp
      "w8.zero3.tp2.ep4.split.sp.k2.moe8.1f1b",
      "w8.zero3.tp2.ep2.etp2.split.splitvocab.k2.moe4.1f1b",
      "w8.zero3.twin.grid.tp2.cp2.ep4.split.sp.ctx.k2.moe4.1f1b.dw",
      "w8.zero2.tp2.pp2.ep4.split.sp.k4.vpp2.layers4.moe4.1f1b",
      "w8.zero3.n2.twin.ep2.k2.moe4.1f1b",
      "w8.zero3.n2.hfsdp.ep4.k2.moe4",
      "w6.zero3.ep3.k2.moe6.1f1b.dw",
      "w6.zero2.ep2.k3.seq4.moe4",
  });
  return Joined({FromIds(ids), others});
}

std::vector<Case> RoutingCases() {
  return FromIds({
      // routing: everybody to the same expert, nobody to one, nobody to a rank; few rows
      "w4.zero3.ep2.k2.moe4.skew=one.1f1b.dw",
      "w4.zero3.ep4.k2.moe4.top1.skew=one.1f1b",
      "w4.zero2.ep2.k2.moe4.skew=empty.1f1b",
      "w8.zero3.ep4.k2.moe8.skew=rank.1f1b.dw",
      "w4.zero3.ep4.k2.moe4.top1.skew=rank",
      "w4.zero3.ep2.k2.moe4.aux.cap100.1f1b",
      "w4.zero3.ep2.k2.moe4.zloss.cap50.1f1b.dw",
      "w4.zero3.ep2.k2.moe4.cap125.pad.1f1b.dw",
      "w4.zero2.ep2.k2.moe8.sigmoid.groups2.aux",
      "w4.zero2.ep2.k2.moe8.presoftmax.zloss.shared.1f1b",
      // layers: dense ones before, between and after, a prediction further ahead
      "w4.zero3.ep2.k2.layers3.moe4.moelayers=odd.1f1b.dw",
      "w4.zero3.ep2.k2.layers4.moe4.moelayers=last.1f1b",
      "w4.zero3.ep2.k2.layers3.moe4.moelayers=first.1f1b.dw.er",
      "w4.zero3.ep2.k2.layers1.moe4.1f1b.dw",
      "w4.zero3.ep2.k2.moe4.mtp",
      "w4.zero3.ep2.k2.moe4.shared.mtp.1f1b.dw",
      "w4.zero2.ep2.k3.layers3.moe4.moelayers=even.mtp.1f1b.dw.er",
      // units that are no layers: an embedding that comes again for the prediction
      "w2.zero3.k2.pf83200.units=TransformerLayer,Embedding.layers1.moe8.moelayers=odd."
      "mtp",
      "w4.zero2.ep2.k3.units=TransformerLayer,Embedding.layers1.moe8.mtp.1f1b.dw",
      // what else a step may do
      "w4.zero3.ep2.k2.bf16.adamw.clip0p5.moe4.1f1b.dw",
      "w4.zero3.ep2.k2.do=tetsrlt.moe4.1f1b.dw",
      "w4.zero3.ep2.k2.recompute.moe4",
      "w4.zero3.ep2.k2.moe4.1f1b.dw.hp.ls3.recompute=norm,core_attn",
      "w4.ddp.ep2.k2.moe4.1f1b",
      "w4.zero1.ep2.k2.moe4.1f1b.dw",
      "w4.ddp.ep2.k2.moe4.zloss.aux.ls3",
      "w4.zero3.ep2.k2.adamw.zeros.skip11p5.do=ttttt.moe4.1f1b",
      // units that are gathered as a whole, and module by module
      "w4.zero3.ep2.k2.moe4.1f1b.fine0",
      "w4.zero3.ep2.k2.pf0.moe4.1f1b.dw.fine0",
      "w4.zero3.ep2.k2.pf0.moe4.1f1b",
      "w4.zero3.ep2.k2.layers3.moe4.1f1b.er.fine0",
      // more experts than tokens; what is left over is in several buckets; evaluation anywhere
      "w2.zero3.ep2.k2.seq2.moe16.top1.1f1b",
      "w4.zero3.ep2.k2.bs64.units=none.bias.root.moe4.1f1b",
      "w4.zero3.ep2.k3.do=ettetste.moe4.1f1b.dw.er",
  });
}

}  // namespace

std::vector<Case> FurtherScheduleCases() {
  std::vector<std::string> ids{"w4.zero3.ep2.k8.layers8.moe4", "w4.zero3.ep2.k8.layers8.moe4.1f1b",
                               "w4.zero3.ep2.k8.layers8.moe4.1f1b.dw",
                               "w4.zero3.ep2.k8.onecomm.layers8.moe4.1f1b"};
  // Three layers: both microbatches meet in the middle one.
  AddCombinations(".ep2.k2.pf0.layers3.moe4", ids);
  return FromIds(ids);
}

std::vector<Case> NamedScheduleCases() { return Joined({SequenceCases(), RoutingCases()}); }

std::vector<Case> PipelineCases() {
  return FromIds({
      "w4.ddp.pp2.k4.layers4.vpp2",
      "w4.ddp.ep2.pp2.k4.layers4.moe4.vpp2",
      "w4.ddp.ep2.pp2.k4.layers4.moe4.vpp2.1f1b",
      "w4.ddp.ep2.pp2.k4.layers4.moe4.vpp2.1f1b.dw",
      "w8.ddp.ep2.pp2.k4.layers8.moe4.moelayers=odd.vpp2.1f1b.dw.er",
      "w8.ddp.ep2.pp4.k4.layers8.moe4.vpp2.1f1b",
      "w4.ddp.ep2.pp2.k2.do=tet.layers4.moe4.vpp2.1f1b",
      "w8.ddp.ep2.pp2.k4.bf16.adamw.clip0p5.layers4.moe8.shared.vpp2.1f1b.dw.ls3",
      "w8.ddp.ep4.pp2.k2.layers4.moe8.top1.aux.skew=rank.vpp2.1f1b",
      "w4.ddp.ep2.pp2.k4.layers6.moe4.vpp3.1f1b.dw",
      "w8.ddp.ep2.pp2.k6.layers4.seq2.moe4.vpp2.1f1b.dw",
      "w4.ddp.pp2.k4.ogr.units=none.layers4.vpp2",  // one bucket of several chunks
      "w4.ddp.ep2.pp2.k4.ogr.units=none.layers4.moe4.vpp2.1f1b",
      // norms over stages, steps that are left out, a stage without experts, one without gradients
      "w4.ddp.pp2.k4.norm.zeros.layers4.vpp2",
      "w4.ddp.ep2.pp2.k4.adamw.clip0p5.skip12.do=tttt.layers4.moe4.vpp2.1f1b",
      "w4.ddp.ep2.pp2.k4.norm.zeros.layers4.moe4.moelayers=first.vpp2.1f1b.dw",
      "w4.ddp.pp2.k4.skip1000.do=tttt.layers4.nanloss.vpp2",
      "w4.ddp.pp2.k4.nan.layers4.nanloss.vpp2",
      "w4.ddp.ep2.pp2.k4.layers4.frozen=layer.moe4.vpp2.1f1b",
      "w4.ddp.pp2.k4.do=etet.layers4.vpp2",
  });
}

}  // namespace shardproof
