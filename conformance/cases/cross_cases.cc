// Features that no one space of a covering array combines.
#include "conformance/cases/from_ids.h"
#include "conformance/cases/profiles.h"

namespace shardproof {

std::vector<Case> CrossCases() {
  return FromIds({
      // every two features of feature_pairs_test.cc that are in no other case together
      "w4.ddp.ep2.k2.loss2.muon.zeros.moe4.zloss.aux.nseps0p5",
      "w4.ddp.ep2.k2.muon.skip16p75.nan.do=ttttt.moe4.sigmoid.mtp.nseps0p5",
      "w4.ddp.ep2.k2.avg.muon.tied.moe4.top1.cap125.nseps0p5",
      "w4.ddp.ep2.k2.ub.muon.moe4.shared.doublebuffer.nseps0p5",
      "w4.zero3.ep2.k2.ub.skip13p75.do=ttttt.moe4.shared.doublebuffer",
      "w4.ddp.pp2.k4.wire16.pf0.muon.layers4.odd.vpp2.nseps0p5",
      "w4.ddp.ep2.k2.bf16.acc16.muon.wd0p0625.moe4.mtp.1f1b.nseps0p5",
      "w4.ddp.grid.ep2.k2.muon.clip0p5.frozen=norms.moe4.mtp.nseps0p5",
      "w4.ddp.k2.opg.onecomm.meta.muon.unused=rank.nseps0p5",
      "w4.zero3.reshard2.ep2.k2.skip11p75.nan.do=ttttt.moe4.zloss.aux",
      "w4.zero3.ep2.k2.zeros.moe4.sigmoid.mtp.doublebuffer.copies",
      "w4.zero3.reshard2.ep2.k2.ub.zeros.moe4.top1.cap125",
      "w4.ddp.n2.ep2.k2.onequeue.bs300.muon.moe4.aux.nseps0p5",
      "w4.zero3.ep2.k2.avg.wire16.moe4.zloss.aux.mtp",
      "w4.zero3.ep2.pp2.k4.avg.bf16.acc16.layers4.moe4.sigmoid.cap125.vpp2",
      "w4.ddp.twin.tp2.split.splitvocab.k2.units=none.muon.ls3.nseps0p5",
      "w4.zero3.ep2.k2.loss2.nan.moe4.top1.cap125.doublebuffer",
      "w4.zero3.ep2.pp2.k4.wd0p0625.layers4.moe4.zloss.aux.vpp2.doublebuffer",
      "w4.zero3.ep2.k2.loss2.ub.tied.moe4.sigmoid.aux",
      "w4.zero3.reshard0.ep2.k2.bf16.acc16.moe4.top1.aux.mtp",
      "w8.ddp.tp2.cp2.ep2.split.sp.ctx.k2.muon.moe4.sigmoid.recompute=core_attn.nseps0p5",
      "w4.zero3.ep2.k2.clip0p5.moe4.zloss.aux.cap125.copies",
      "w4.zero3.ep2.k2.wire16.skip28p25.do=ttttt.moe4.top1.cap125.copies",
      "w4.zero3.reshard2.ep2.k2.loss2.nan.moe4.sigmoid.shared",
      "w4.zero3.ep2.k2.ub.tied.moe4.zloss.shared.mtp",
      "w4.zero3.ep2.k2.opg.wd0p0625.moe4.top1.aux.cap125",
      "w4.zero3.reshard0.ep2.k2.bs300.moe4.sigmoid.zloss.cap125",
      "w4.ddp.k2.ogr.pertoken.muon.norm.reused.nseps0p5",
      "w4.zero3.ep2.k2.avg.wire16.wd0p0625.moe4.sigmoid.shared",
      "w4.zero3.k2.ub.ls3.recompute=core_attn.doublebuffer.copies",
      "w4.ddp.k2.recompute.muon.do=tsrlet.bias.nseps0p5",
      "w8.zero3.tp2.cp2.ep2.split.sp.ctx.k2.bs300.clip0p5.moe4.top1",
      "w4.ddp.ep2.k2.avg.wire16.tied.moe4.1f1b.doublebuffer",
      "w4.zero3.reshard2.ep2.k2.moe4.mtp.ls3.recompute=core_attn",
      "w4.zero3.cp2.ep2.ctx.k2.opg.clip0p5.moe4.sigmoid.zloss",
      "w4.zero3.reshard0.ep2.k2.bf16.acc16.moe4.zloss.shared",
      "w4.zero3.k2.pf0.zeros.skip12p5.do=ttttt",
      "w4.zero3.pp2.k4.ub.layers4.vpp2",
      "w4.zero3.ep2.pp2.k4.layers4.moe4.mtp",
      "w4.ddp.k2.muon.root.nseps0p5",
      // three that two of them do not tell
      "w2.ddp.tp2.split.muon.ns10",
      "w2.ddp.tp2.split.muon.nseps0p5",
      "w4.zero2.tp2.split.sp.zeros.skip23p75.do=ttttt",
      "w4.zero3.k2.skip12p5.do=ttttt.ls3.copies",
      "w4.zero3.ep2.k2.skip16.do=ttttt.moe4.mtp",
      "w4.zero3.ep2.k2.adamw.wd0p0625.moe4.1f1b",
      "w4.zero3.meta.do=etett.copies",
      "w4.zero3.n2.hfsdp.recompute.do=tett.copies",
      "w4.ddp.tp2.pp2.split.k2.clip0p5.layers4.vpp2",
  });
}

}  // namespace shardproof
