/* wrong_scale.c: ddp.c with one mistake. The sum over ranks is never divided: every gradient is dp
 * times too large. */
#define DDP_TRAIN_STEP wrong_train_step
#include "shardproof_util.h"
static spf_status wrong_train_step(spf_engine *e, int64_t step);
#include "ddp.c"

static spf_status wrong_train_step(spf_engine *e, int64_t step) {
  SPF_TRY(spf_fill_f32(e->h, e->s, e->grads, e->numel, 0));
  EACH(mb, e->microbatches) SPF_TRY(run_microbatch(e, step, mb, 1));
  SPF_TRY(spf_all_reduce_f32(e->h, e->s, e->dp, e->grads, e->numel, SPF_FOR_GRAD));
  SPF_TRY(spf_axpby_f32(e->h, e->s, 1.0 / e->microbatches, e->grads, 0, e->grads,
                        e->numel)); /* and e->n? */
  SPF_TRY(publish(e, SPF_RESULT_GRAD, e->grad));
  return update(e);
}
