/* ddp.c: the smallest engine that conforms. Replicates parameters, all-reduces gradients, plain
 * SGD.
 *
 * It reads two knobs, microbatches and lr. Every other feature is a knob that it does not read, so
 * the suite answers `unsupported` for cases that want more; it declines expert parameters, which
 * are a property of the model, and cases that give it no group dp_cp. */
#include "shardproof_util.h"
#define EACH(i, n) for (int32_t i = 0; i < (n); i++)

struct spf_engine {
  spf_host *h;
  const spf_model *m;
  spf_group dp;
  spf_stream s;
  int32_t rank, n, microbatches;
  double lr;
  int64_t numel;                                   /* of all parameters */
  spf_addr params, grads, acts, dacts, dact_bytes; /* one block each */
  spf_addr *param, *grad, *act, *dact;             /* tables by id into them */
};

static int is_frozen(spf_engine *e, int32_t p) {
  return (e->m->params[p].flags & SPF_PARAM_FROZEN) != 0;
}

static spf_status publish(spf_engine *e, spf_result what, const spf_addr *at) {
  EACH(p, e->m->n_params)
  if (what == SPF_RESULT_PARAM || !is_frozen(e, p))
    SPF_TRY(e->h->publish(e->h, e->s, what, p, 0, e->m->params[p].numel, SPF_F32, at[p]));
  return SPF_OK;
}

static spf_status allocate(spf_engine *e) {
  spf_host *h = e->h;
  spf_addr at = 0, bytes = 0;
  spf_addr **table[4] = {&e->param, &e->grad, &e->act, &e->dact};
  EACH(t, 4) * table[t] =
      calloc((size_t)(t < 2 ? e->m->n_params : e->m->n_values), sizeof(spf_addr));
  EACH(p, e->m->n_params) e->numel += e->m->params[p].numel;
  EACH(v, e->m->n_values) bytes += (spf_value_bytes(&e->m->values[v]) + 7) / 8 * 8;
  e->dact_bytes = bytes;
  SPF_TRY(h->mem_alloc(h, e->s, 4 * (spf_addr)e->numel, SPF_DEVICE, spf_for(SPF_FOR_PARAM_FULL),
                       &e->params));
  SPF_TRY(
      h->mem_alloc(h, e->s, 4 * (spf_addr)e->numel, SPF_DEVICE, spf_for(SPF_FOR_GRAD), &e->grads));
  EACH(p, e->m->n_params) {
    e->param[p] = e->params + at, e->grad[p] = e->grads + at,
    at += 4 * (spf_addr)e->m->params[p].numel;
    SPF_TRY(h->init(h, e->s, p, 0, e->m->params[p].numel, SPF_F32, e->param[p]));
  }
  return SPF_OK;
}

/* Activations live for one microbatch: between steps an engine holds what its strategy keeps. */
static spf_status allocate_activations(spf_engine *e) {
  spf_host *h = e->h;
  spf_addr at = 0;
  SPF_TRY(h->mem_alloc(h, e->s, e->dact_bytes, SPF_DEVICE, spf_for(SPF_FOR_ACTIVATION), &e->acts));
  SPF_TRY(h->mem_alloc(h, e->s, e->dact_bytes, SPF_DEVICE, spf_for(SPF_FOR_ACTIVATION_GRAD),
                       &e->dacts));
  EACH(v, e->m->n_values) {
    e->act[v] = e->acts + at, e->dact[v] = e->dacts + at,
    at += (spf_value_bytes(&e->m->values[v]) + 7) / 8 * 8;
  }
  return SPF_OK;
}

static spf_status create(spf_host *h, spf_engine **out) {
  spf_engine *e = *out = calloc(1, sizeof *e);
  e->h = h, e->m = h->model(h);
  e->microbatches = (int32_t)spf_knob(h, "microbatches", 1), e->lr = spf_knob(h, "lr", 0);
  if (e->microbatches < 1)
    return h->explain(h, "microbatches: a step has at least one"), SPF_REJECTED;
  EACH(p, e->m->n_params)
  if (e->m->params[p].flags & SPF_PARAM_EXPERT)
    return h->explain(h, "expert parameters"), SPF_UNSUPPORTED;
  if (!(e->dp = h->group(h, "dp_cp")))
    return h->explain(h, "it builds no groups, and is given no group dp_cp"), SPF_UNSUPPORTED;
  SPF_TRY(h->group_info(h, e->dp, &e->rank, &e->n, NULL));
  SPF_TRY(h->stream_create(h, "main", 0, &e->s));
  SPF_TRY(allocate(e));
  return publish(e, SPF_RESULT_PARAM, e->param);
}

/* Forward of one microbatch, then (backward != 0) the same nodes in reverse. */
static spf_status run_microbatch(spf_engine *e, int64_t step, int32_t mb, int backward) {
  spf_host *h = e->h;
  const spf_program *prog = h->program(h, step, mb);
  SPF_TRY(allocate_activations(e));
  spf_compute c = {.size = sizeof c,
                   .microbatch = mb,
                   .sample = (int64_t)mb * e->n + e->rank,
                   .scale = 1,
                   .param = e->param,
                   .grad = e->grad,
                   .act = e->act,
                   .dact = e->dact};
  SPF_TRY(spf_fill_f32(h, e->s, e->dacts, (int64_t)e->dact_bytes / 4, 0));
  EACH(i, backward ? 2 * prog->n_nodes : prog->n_nodes) {
    const spf_node *node = &prog->nodes[i < prog->n_nodes ? i : 2 * prog->n_nodes - 1 - i];
    c.node = node->id, c.phase = i < prog->n_nodes ? SPF_FWD : SPF_BWD;
    if (node->uses[c.phase].n) SPF_TRY(h->compute(h, e->s, &c));
  }
  EACH(v, e->m->n_values)
  if (e->m->values[v].flags & SPF_VALUE_LOSS)
    SPF_TRY(h->publish(h, e->s, SPF_RESULT_LOSS, mb, 0, 1, SPF_F32, e->act[v]));
  SPF_TRY(h->mem_free(h, e->s, e->acts));
  return h->mem_free(h, e->s, e->dacts);
}

static spf_status update(spf_engine *e) {
  EACH(p, e->m->n_params)
  if (!is_frozen(e, p))
    SPF_TRY(spf_axpby_f32(e->h, e->s, -e->lr, e->grad[p], 1, e->param[p], e->m->params[p].numel));
  return publish(e, SPF_RESULT_PARAM, e->param);
}

static spf_status train_step(spf_engine *e, int64_t step) {
  SPF_TRY(spf_fill_f32(e->h, e->s, e->grads, e->numel, 0));
  EACH(mb, e->microbatches) SPF_TRY(run_microbatch(e, step, mb, 1));
  SPF_TRY(spf_all_reduce_f32(e->h, e->s, e->dp, e->grads, e->numel, SPF_FOR_GRAD));
  SPF_TRY(
      spf_axpby_f32(e->h, e->s, 1.0 / (e->n * e->microbatches), e->grads, 0, e->grads, e->numel));
  SPF_TRY(publish(e, SPF_RESULT_GRAD, e->grad));
  return update(e);
}

static spf_status eval_step(spf_engine *e, int64_t step) {
  EACH(mb, e->microbatches) SPF_TRY(run_microbatch(e, step, mb, 0));
  return SPF_OK;
}

static void destroy(spf_engine *e) {
  spf_addr *table[4] = {e->param, e->grad, e->act, e->dact};
  e->h->mem_free(e->h, e->s, e->params), e->h->mem_free(e->h, e->s, e->grads);
  EACH(i, 4) free(table[i]);
  if (e->s) e->h->stream_destroy(e->h, e->s);
  free(e);
}

#ifndef DDP_TRAIN_STEP /* the wrong_*.c beside this file put a step with a mistake here */
#define DDP_TRAIN_STEP train_step
#endif
const spf_plugin *shardproof_plugin(uint32_t abi_major) {
  static const spf_plugin plugin = {.size = sizeof plugin,
                                    .abi_major = SPF_ABI_MAJOR,
                                    .name = "ddp.c",
                                    .version = "1",
                                    .create = create,
                                    .train_step = DDP_TRAIN_STEP,
                                    .eval_step = eval_step,
                                    .destroy = destroy};
  return abi_major == SPF_ABI_MAJOR ? &plugin : NULL;
}
