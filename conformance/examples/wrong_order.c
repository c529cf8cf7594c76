/* wrong_order.c: ddp.c with one mistake. Gradients are reduced parameter by parameter as they
 * happen to become ready, and that order differs from rank to rank. */
#define DDP_TRAIN_STEP wrong_train_step
#include "shardproof_util.h"
static spf_status wrong_train_step(spf_engine *e, int64_t step);
#include "ddp.c"

static spf_status wrong_train_step(spf_engine *e, int64_t step) {
  SPF_TRY(spf_fill_f32(e->h, e->s, e->grads, e->numel, 0));
  EACH(mb, e->microbatches) SPF_TRY(run_microbatch(e, step, mb, 1));
  EACH(i, e->m->n_params) {
    int32_t p = e->rank % 2 ? e->m->n_params - 1 - i : i; /* the same order everywhere? */
    if (is_frozen(e, p)) continue;
    SPF_TRY(spf_all_reduce_f32(e->h, e->s, e->dp, e->grad[p], e->m->params[p].numel, SPF_FOR_GRAD));
  }
  SPF_TRY(
      spf_axpby_f32(e->h, e->s, 1.0 / (e->n * e->microbatches), e->grads, 0, e->grads, e->numel));
  SPF_TRY(publish(e, SPF_RESULT_GRAD, e->grad));
  return update(e);
}
