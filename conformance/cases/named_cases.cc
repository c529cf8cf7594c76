// The cases of profiles.h that are written down one by one.
#include "conformance/cases/from_ids.h"
#include "conformance/cases/profiles.h"

namespace shardproof {

std::vector<Case> SharedWorldCases() {
  return FromIds({
      "w8.zero3.name=policy.n2.twin.adamw+zero2.name=value.tp2.etp2+ddp.name=reference.do=ee",
      "w8.zero3.name=policy.twin.grid.tp2.etp2+zero3.name=value.twin.grid.cp2.order=dp-cp-tp.k2",
      "w8.zero3.name=policy.span4.adamw+zero3.name=value.at4",
      "w8.zero3.name=policy.grid.span4+zero2.name=value.grid.at4.tp2.etp2",
      "w8.zero3.name=policy.span6+zero1.name=value.at2.k2.do=tettt",
      "w8.zero3.name=policy.n2.hfsdp+zero3.name=value.n4+zero3.name=reference.bf16.do=eee",
      "w8.zero3.name=policy.pp2.do=ttsrlt+ddp.name=value.ep2.experts",
      "w4.zero3.name=policy+zero3.name=value.twin",
      "w6.zero3.name=policy.n2.twin+zero2.name=value.tp2.etp2.order=dp-tp+ddp.name=reference.at3."
      "do=ee",
      "w4.zero3.name=policy.ub+zero3.name=value.twin.ub+zero3.name=reference.do=ee",
      "w3.zero3.name=policy.tied+zero1.name=value.span2",
      "w5.zero3.name=policy+zero3.name=value.at1.twin",
      "w16.zero3.name=policy.n4.twin+zero3.name=value.tp2.pp2.etp2+zero2.name=reference.cp2.do=eee",
      "w16.zero3.name=policy.span8+zero3.name=value.at8.n2.hfsdp",
      "w8.lw.name=policy.ogr.opg.bs300.adamw.lr0p0625.bcast+zero3.name=value.twin.tp2.etp2."
      "k2+ddp.name=reference.do=ee",
      "w6.zero3.name=value.n2.twin+lw.name=policy.at2.k2.ogr.opg.muon.lr0p0625.do=tettt.aligned",
  });
}

namespace {

std::vector<Case> GridCases() {
  return FromIds({
      // the grids of the published examples, where etp differs from tp and no expert runs
      "w8.zero3.tp2.ep2.pp2",
      "w8.zero3.tp2.ep2.pp2.grid",
      "w16.zero3.tp2.cp2.ep4",
      "w16.zero3.tp2.cp2.ep4.grid",
      "w8.zero3.n2.twin.ep2",
      "w16.zero3.n2.twin.tp2",
      "w16.zero3.n2.twin.grid.tp2.etp2",
      "w8.zero3.twin.tp2.pp2.etp2.order=tp-pp-dp",
      "w8.zero3.twin.grid.tp2.pp2.etp2.order=tp-pp-dp",
      // experts that share no parameter, one that all share
      "w8.zero3.ep8.experts.twin",
      "w8.zero3.experts",
      "w8.zero2.ep4.experts.avg",
      "w6.zero3.ep2.experts.avg.k2",
      "w6.zero3.ep3.experts",
      "w8.zero3.n2.hfsdp.ep4.experts.twin",
      // worlds of one rank, groups of one rank with several microbatches
      "w1.zero3.k3.twin",
      "w1.ddp",
      "w8.zero2.tp8.etp8.k3",
      "w8.zero3.n8.twin",
      "w8.zero3.n8.hfsdp.k2",
  });
}

std::vector<Case> SizeCases() {
  return FromIds({
      // divisors that are no power of two
      "w3.zero3.k3",
      "w6.zero3.k3.seq4",
      "w9.zero2",
      "w9.zero3.n3.twin",
      "w11.zero3",
      "w5.zero3.pertoken.k2",
      "w12.zero3.n3.hfsdp.k2",
      "w16.zero3.k3.seq4",
      // parameters smaller than the world; everything outside units
      "w16.zero3.odd.bias",
      "w16.zero1.odd.bias.units=none.bs50",
      "w8.zero3.units=none.bs1",
      // many steps, several saves
      "w4.zero3.n2.twin.adamw.do=tttetsttltrlttt",
      "w4.zero2.adamw.do=setsltrlt",
      "w8.zero3.layers4.pf9000.recompute",
      "w8.zero3.layers1",
      "w2.zero3.seq32.layers4.twin",
      "w32.zero3.n4.twin.seq4",
      "w24.zero3.n2.seq4",
  });
}

std::vector<Case> OptionCases() {
  return FromIds({
      // buffers registered with their groups: twins, outer groups, experts, casts, one rank
      "w8.zero3.n2.hfsdp.twin.ub.do=tettsltrlt",
      "w8.zero3.n2.twin.ep2.k2.wire16.ub.experts",
      "w8.zero1.n2.ogr.ub.tied.root",
      "w4.zero2.k2.wire16.acc16.ub.frozen=layer",
      "w4.zero3.ep2.k2.ub.moe4",
      "w1.zero3.ub",
      // Muon where every rank has whole matrices: coefficients, scales, precision, splitting
      "w1.ddp.muon",
      "w4.ddp.muon",
      "w3.ddp.muon.nesterov.k2.clip0p5.wd0p125.do=tttt",
      "w8.ddp.muon.coef=simple.scale=unit_rms_norm.ogr.norm",
      "w2.ddp.muon.coef=polar_express.ns8.scale=shape_scaling.bias.tied",
      "w4.ddp.muon.coef=cans.odd.bias.root.wholeqkv.mom0p5",
      "w2.ddp.muon.coef=deepseekv4.ns10.extra0p25.bf16",
      "w4.ddp.muon.coef=cubic5.frozen=layer.do=tsttltrlt",
      "w4.ddp.muon.prec=medium.nesterov.do=tett",
      "w4.ddp.muon.ep2.experts.bs64.units=none",
      "w4.ddp.muon.ep2.moe4.shared.mtp.norm",
      // steps above a norm, which change nothing, between others; gradients that are zero
      "w4.ddp.muon.zeros.skip16.do=ttttt",
      "w8.zero1.ogr.adamw.zeros.skip12.do=tttt",
      "w4.zero2.k2.bf16.adamw.zeros.skip11p8.do=ttsttltt",
      "w4.zero3.k2.adamw.clip0p5.zeros.skip11p8.do=tttt",
      "w8.zero3.n2.hfsdp.adamw.zeros.skip12.do=ttsrlttt",
  });
}

std::vector<Case> NanCases() {
  return FromIds({
      // gradients of one rank are NaN in step 1: the step is left out on every rank
      "w4.ddp.skip1000.do=tttt.nanloss",
      "w4.zero1.k2.ogr.adamw.clip0p5.skip1000.do=tttt.nanloss",
      "w4.zero2.k2.bf16.adamw.zeros.skip1000.do=tttt.nanloss",
      "w4.zero3.twin.adamw.skip1000.ls3.do=tetsltt.nanloss",
      "w8.zero3.n2.hfsdp.k2.adamw.skip1000.do=tttt.nanloss",
      "w4.ddp.muon.skip1000.do=tttt.nanloss",
      "w4.zero3.ep2.k2.adamw.skip1000.do=tttt.nanloss.moe4",
      "w4.zero3.ep2.k2.skip1000.do=tttt.nanloss.moe4.1f1b",
      "w4.lw.ogr.opg.bs300.adamw.lr0p0625.skip1000.do=tttt.nanloss",
      // or the step fails where they are, before they are sent
      "w4.ddp.nan.nanloss",
      "w4.zero1.k2.ogr.nan.nanloss",
      "w4.zero2.k2.wire16.nan.nanloss",
      "w4.zero3.twin.recompute.nan.nanloss",
      "w8.zero3.n2.hfsdp.nan.ls3.nanloss",
      "w1.zero3.k2.nan.nanloss",
      "w4.zero3.ep2.k2.nan.nanloss.moe4",
      "w4.lw.ogr.opg.bs300.lr0p0625.nan.nanloss",
  });
}

// Layers that are split over tp: ranks of tp alone, four of them, one of them, sizes that nobody
// divides, clipping, checkpoints under another tp.
std::vector<Case> SplitCases() {
  return FromIds({
      "w2.ddp.tp2.etp2.split",
      "w2.ddp.split",
      "w8.zero3.twin.tp4.etp4.split.k2.bias.odd",
      "w8.zero1.tp2.etp2.split.ogr.adamw.clip0p5.zeros.do=tett",
      "w8.zero3.n2.hfsdp.tp2.etp2.split.clip0p5.tied.root",
      "w4.zero3.tp2.etp2.split.k2.adamw.do=tts.then.w2.zero1.split.k2.adamw.do=ltt",
      // Muon where every data-parallel rank has all shards: heads on one rank, on several
      "w2.ddp.split.muon.heads4",
      "w2.ddp.tp2.etp2.split.muon.heads4.do=tett",
      "w4.ddp.tp4.etp4.split.k2.muon.heads4.wholeqkv.scale=shape_scaling",
      "w4.ddp.tp2.etp2.split.ogr.muon.coef=simple.tpmode=distributed",
      "w2.ddp.tp2.etp2.split.k2.muon.heads4.coef=cubic5.scale=unit_rms_norm.tpmode=distributed",
      "w4.ddp.tp2.etp2.split.ep2.muon.moe4.prec=medium.tpmode=distributed",
      "w4.ddp.tp4.etp4.split.muon.heads4.scale=unit_rms_norm.tpmode=blockwise",
      "w2.ddp.tp2.etp2.split.k2.muon.do=tts.heads4.then.w2.ddp.split.muon.do=ltt.heads4",
      "w4.zero3.tp2.etp2.split.do=ts.odd.then.w4.zero1.tp4.etp4.split.k2.do=lt.odd",
  });
}

// The vocabulary, too: on one rank, sizes that nobody divides, tied, with parts of the sequence,
// in stages, clipped, counted, labels that are none, checkpoints under another tp, or of a whole
// vocabulary.
std::vector<Case> VocabularyCases() {
  return FromIds({
      "w2.ddp.tp2.etp2.split.splitvocab",
      "w2.ddp.split.splitvocab",
      "w8.zero3.twin.tp4.etp4.split.splitvocab.k2.bias.odd.root",
      "w8.zero3.twin.tp4.etp4.split.sp.splitvocab.k2.bias.odd.root",
      "w4.zero2.tp2.etp2.split.sp.splitvocab.k2.bias.root.recompute",
      "w8.zero1.tp2.etp2.split.splitvocab.ogr.adamw.clip0p5.zeros.do=tett",
      "w8.zero3.n2.hfsdp.tp2.etp2.split.splitvocab.clip0p5.tied.root",
      "w4.zero1.tp2.etp2.split.sp.splitvocab.acc16.wire16.bias.tied",
      "w8.zero2.tp2.pp2.etp2.split.splitvocab.k2.vpp2.layers4.bias.root",
      "w8.zero3.tp2.cp2.etp2.split.splitvocab.ctx.k2.root",
      "w4.lw.tp2.etp2.split.splitvocab.ogr.opg.muon.bias",
      "w4.zero3.tp2.etp2.split.splitvocab.frozen=embedding.bias",
      "w4.ddp.tp2.etp2.split.splitvocab.skip1000.do=tttt.nanloss",
      "w4.zero3.tp2.ep2.etp2.split.splitvocab.ls3.moe4",
      "w4.zero3.tp2.etp2.split.splitvocab.k2.adamw.do=tts.then.w2.zero1.split.k2.adamw.do=ltt",
      "w2.ddp.tp2.etp2.split.do=ts.heads4.then.w4.zero1.tp4.etp4.split.splitvocab.do=lt.heads4",
  });
}

// The same where ranks of tp hold parts of the sequence: all of their gradients are summed over tp
// once, whatever shards, clips, counts, stages or another engine comes after.
std::vector<Case> SequenceCases() {
  return FromIds({
      "w2.ddp.tp2.etp2.split.sp",
      "w2.ddp.split.sp",
      "w8.zero3.twin.tp4.etp4.split.sp.k2.bias.odd",
      "w4.zero2.tp2.etp2.split.sp.k3.bias.recompute.unused=rank",
      "w8.zero1.tp2.etp2.split.sp.ogr.adamw.clip0p5.zeros.do=tett",
      "w8.zero3.n2.hfsdp.tp2.etp2.split.sp.clip0p5.tied.root",
      "w4.zero1.tp2.etp2.split.sp.acc16.wire16.bias",
      "w8.zero2.tp2.pp2.etp2.split.sp.k2.vpp2.layers4.bias.root",
      "w4.lw.tp2.etp2.split.sp.ogr.opg.muon.bias",
      "w2.ddp.tp2.etp2.split.sp.muon.heads4.tpmode=blockwise",
      "w2.ddp.tp2.etp2.split.sp.muon.layers4.bias.tpmode=distributed",
      "w4.zero3.tp2.etp2.split.sp.k2.adamw.do=tts.then.w2.zero1.split.k2.adamw.do=ltt",
      "w4.zero3.tp2.etp2.split.sp.frozen=norms.bias",
  });
}

// Experts of ranks that hold parts of a sequence, of tp and of cp: each rank routes its own, etp is
// 1 and tp is not. Groups of experts have ranks of tp in them; norms, checkpoints, Muon and other
// engines take experts from all of them, and routers and shared experts from each.
std::vector<Case> RoutedPartsCases() {
  return FromIds({
      "w2.ddp.tp2.ep2.split.sp.moe4",
      "w2.ddp.tp2.split.sp.moe4",
      "w4.zero3.grid.tp2.ep2.split.sp.k2.moe4.shared.bias",
      "w4.zero3.tp2.ep4.split.sp.moe8.zloss.aux.cap75",
      "w8.zero1.tp4.ep8.split.sp.k2.ogr.adamw.heads4.moe8.cap150.pad",
      "w8.zero3.n2.hfsdp.tp2.ep2.split.sp.moe4.clip0p5.zeros",
      "w8.zero3.twin.tp2.cp2.ep4.split.sp.ctx.k2.norm.zeros.moe8.shared",
      "w4.lw.tp2.ep2.split.sp.ogr.opg.muon.moe4",
      "w4.zero2.tp2.ep4.split.sp.moe8.score=sigmoid.recompute",
      "w4.zero3.tp2.ep2.split.sp.k2.adamw.moe4.do=tts.then.w2.zero1.ep2.split.k2.adamw.moe4.do=ltt",
      "w4.zero1.tp2.etp2.split.adamw.moe4.do=tts.then.w4.zero3.tp2.ep4.split.sp.adamw.moe4.do=ltt",
      "w4.zero3.cp2.ep2.ctx.k2.moe4.cap75.aux",
      "w4.zero1.cp4.ep4.ctx.moe4.cap125.pad.shared",
      "w4.ddp.tp2.ep4.split.sp.moe4.nan.nanloss",
      "w4.s4.ddp.cp2.ep4.ctx.moe4.nan.nanloss",
      "w2.ddp.tp2.split.sp.muon.moe4",
      "w2.zero3.tp2.split.sp.k2.layers4.moe4",
  });
}

// Samples that are parts of one sequence: with one rank of cp, with an order in which dp_cp lists
// parts side by side or apart, beside split layers, in stages, and across checkpoints, after which
// other ranks have other parts.
std::vector<Case> ContextCases() {
  return FromIds({
      "w2.ddp.cp2.ctx",
      "w2.ddp.ctx.root",
      "w8.zero3.twin.cp4.ctx.k2.bias.odd.root",
      "w4.zero2.cp2.ctx.order=dp-cp-ep-tp-pp.k3.bias.recompute.unused=step",
      "w4.zero2.cp2.ctx.recompute=norm,core_attn.k2",
      "w8.zero1.cp2.ctx.ogr.adamw.clip0p5.zeros.do=tett",
      "w8.zero3.n2.hfsdp.cp2.ctx.clip0p5.tied.root",
      "w4.zero1.cp2.ctx.acc16.wire16.bias",
      "w4.zero1.cp2.ctx.pertoken.k2.ls3",
      "w8.zero2.tp2.cp2.etp2.split.sp.ctx.k2.bias.root",
      "w8.zero2.cp2.pp2.ctx.k2.vpp2.layers4.bias.root",
      "w8.lw.tp2.cp2.etp2.split.ctx.ogr.opg.muon.bias",
      "w4.zero3.cp2.ctx.frozen=embedding.bias",
      "w4.zero3.cp2.ctx.frozen=layer.layers3",
      "w4.zero3.cp2.ctx.root.seq4.k2.adamw.do=tts.then.w2.zero1.root.seq8.k2.adamw.do=ltt",
      "w4.zero3.cp2.ctx.k2.nan.nanloss",
  });
}

// A loss in chunks: with what reads and adds to the head's weight elsewhere, shards it, casts, sums
// or looks at its gradients, evaluates and goes on with another number of chunks.
std::vector<Case> LossCases() {
  return FromIds({
      "w1.ddp.loss8",
      "w2.ddp.loss2",
      "w4.zero3.twin.k2.loss4.tied.bias.odd",
      "w8.zero3.n2.hfsdp.k2.loss2.clip0p5.zeros.root",
      "w4.zero2.loss2.units=none.recompute.unused=rank",
      "w4.zero1.k3.loss4.ogr.adamw.do=tett.pertoken",
      "w4.zero3.loss2.acc16.wire16.bias",
      "w3.zero3.loss8.units=TransformerLayer,Embedding",
      "w4.zero3.reshard0.loss4.frozen=embedding.tied",
      "w4.zero3.doublebuffer.ub.k2.loss4",
      "w4.zero3.tp2.etp2.split.sp.k2.loss2.bias.odd",
      "w4.zero1.k2.loss4.avg.ls10",
      "w2.zero3.k2.loss4.nan.nanloss",
      "w4.lw.k2.loss4.ogr.opg.muon",
      "w4.zero3.ep2.experts.loss2",
      "w4.zero3.ep2.k2.loss2.moe4",
      "w4.zero3.k2.loss4.adamw.do=tts.then.w2.zero1.k4.adamw.do=ltt",
      // what is frozen is in the checkpoint, too
      "w4.zero3.frozen=layer.do=tts.then.w2.zero3.k2.frozen=layer.do=lets",
      "w2.ddp.k2.frozen=embedding.do=ts.then.w4.zero1.frozen=embedding.do=lt",
  });
}

// Parameters that have no values after create: the first call is each of those that may be, by new
// engines too; what is tied, frozen, padded, cast, split, in stages or of owners gets them, and so
// do engines of the next leg. One of two engines in a world has values.
std::vector<Case> MetaCases() {
  return FromIds({
      "w1.ddp.meta.do=etrstrslt",
      "w2.ddp.meta.adamw.do=setrlt",
      "w3.zero3.meta.adamw.do=tsrlett.tied.bias.odd.frozen=norms",
      "w4.zero3.twin.k2.bf16.meta.adamw.do=tsrlt.root.frozen=layer",
      "w8.zero3.n2.hfsdp.ub.meta.do=etsrlt.bias",
      "w4.zero3.reshard0.doublebuffer.meta.do=tsrlt.layers3",
      "w4.zero2.k2.bs300.units=none.meta.adamw.do=srlett",
      "w4.zero1.ogr.bs300.meta.adamw.do=tsrltt.odd",
      "w4.zero3.ep2.k2.meta.adamw.do=tsrlt.moe4.shared",
      "w4.zero3.ep2.k2.meta.do=tsrlt.moe4.1f1b",
      "w8.zero2.tp2.pp2.etp2.split.sp.k2.meta.do=tsrlt.layers4.vpp2",
      "w4.lw.ogr.opg.bs300.meta.muon.lr0p0625.do=etsrlett.frozen=layer.aligned",
      "w4.lw.bf16.meta.adamw.lr0p0625.do=srlt.tied.gradbuf",
      "w4.zero3.name=policy.meta.do=tsrlt+zero3.name=value",
      "w4.zero3.k2.meta.adamw.do=tts.then.w2.zero1.k4.meta.adamw.do=ltt",
      "w2.zero1.k4.adamw.do=tts.then.w4.lw.k2.ogr.opg.meta.adamw.do=ltt",
  });
}

// Copies of units for backward, where few cases have what meets them: modules that run again in
// whole layers, parts of them or units that are parts, outer shards with evaluations between, pools
// and registered memory, layers that run twice, frozen and unused ones, other schedules,
// checkpoints.
std::vector<Case> CopyCases() {
  return FromIds({
      "w1.zero3.copies",
      "w2.zero3.k2.recompute.copies.layers3",
      "w2.zero3.units=MLP,Attention.recompute.copies",
      "w4.zero3.twin.k2.recompute=norm,core_attn.copies.layers3",
      "w8.zero3.n2.hfsdp.do=tettsrlt.copies.layers3.adamw",
      "w2.zero3.k2.recompute.doublebuffer.copies.layers5.unused=step",
      "w4.zero3.ub.doublebuffer.copies.layers4",
      "w4.zero3.k2.pf0.copies.layers3.reused.tied",
      "w4.zero3.copies.frozen=layer.bias.odd.unused=rank",
      "w4.zero3.ep2.k2.copies.moe4.shared.recompute=moe",
      "w8.zero3.twin.ep2.k3.copies.layers3.moe8.1f1b",
      "w8.zero3.ep2.k3.recompute=norm.copies.layers3.moe8.1f1b.dw.fine0",
      "w4.zero3.pp2.k2.copies.layers4.vpp2",
      "w4.zero3.k2.copies.adamw.do=tts.then.w2.zero1.k4.adamw.do=ltt",
  });
}

// Programs of ranks differ, and so does what is used last: buckets have one order all the same.
std::vector<Case> OrderCases() {
  return FromIds({"w4.zero1.odd.unused=rank", "w8.zero3.odd.unused=rank"});
}

// Who owns the order of collectives, where few cases have all who communicate: norms, all-to-alls,
// messages of stages, outer groups, parts of units, checkpoints, registered memory, two engines.
std::vector<Case> CommScheduleCases() {
  return FromIds({
      "w4.zero3.ep2.k2.onecomm.do=tetsrlt.moe4",
      "w8.zero3.n2.hfsdp.ep2.onecomm.clip0p5.experts",
      "w8.zero3.reshard2.k2.onecomm",
      "w8.zero1.tp2.etp2.split.sp.ogr.onecomm.adamw.clip0p5.zeros",
      "w8.zero2.tp2.pp2.etp2.split.sp.k2.onecomm.layers4.bias.root.vpp2",
      "w8.ddp.ep2.pp4.k4.onecomm.layers8.moe4.vpp2.1f1b",
      "w4.zero2.ep2.k2.onecomm.moe4.1f1b.dw.er",
      "w4.zero3.ep2.k3.onecomm.layers3.moe4.1f1b",
      "w8.lw.ep2.k2.ogr.opg.onecomm.bs300.muon.lr0p0625.moe4.shared.mtp",
      "w4.lw.tp2.etp2.split.ogr.opg.onecomm.muon.lr0p0625.heads4.tpmode=distributed.aligned",
      "w8.zero3.n2.grid.onecomm.ub",
      "w4.zero3.name=policy.onecomm+zero3.name=value.onecomm",
      "w4.zero3.name=policy.onequeue+zero3.name=value.twin.onequeue",
      "w8.zero3.twin.ep4.k3.onequeue.layers3.moe8.1f1b.dw",
      "w8.zero3.n2.hfsdp.onequeue.ub",
      "w4.zero3.k2.onecomm.adamw.do=tts.then.w2.zero1.k4.onequeue.adamw.do=ltt",
  });
}

}  // namespace

std::vector<Case> NamedCases() {
  return Joined({GridCases(), SizeCases(), OptionCases(), NanCases(), SplitCases(), SequenceCases(),
                 VocabularyCases(), RoutedPartsCases(), ContextCases(), LossCases(), MetaCases(),
                 CopyCases(), OrderCases(), CommScheduleCases()});
}

}  // namespace shardproof
