/* wrong_wait.c: ddp.c with one mistake. The all-reduce runs on a stream of its own, and the compute
 * stream does not wait for it: on most runs the numbers are right. */
#define DDP_TRAIN_STEP wrong_train_step
#include "shardproof_util.h"
static spf_status wrong_train_step(spf_engine *e, int64_t step);
#include "ddp.c"

static spf_status wrong_train_step(spf_engine *e, int64_t step) {
  spf_host *h = e->h;
  spf_stream comm;
  spf_event ready;
  SPF_TRY(spf_fill_f32(h, e->s, e->grads, e->numel, 0));
  EACH(mb, e->microbatches) SPF_TRY(run_microbatch(e, step, mb, 1));
  SPF_TRY(h->stream_create(h, "comm", 0, &comm));
  SPF_TRY(h->event_create(h, &ready));
  SPF_TRY(h->event_record(h, ready, e->s));
  SPF_TRY(h->event_wait(h, ready, comm));
  SPF_TRY(spf_all_reduce_f32(h, comm, e->dp, e->grads, e->numel, SPF_FOR_GRAD));
  SPF_TRY(h->event_record(h, ready, comm)); /* and the wait for it on e->s? */
  SPF_TRY(spf_axpby_f32(h, e->s, 1.0 / (e->n * e->microbatches), e->grads, 0, e->grads, e->numel));
  SPF_TRY(h->event_destroy(h, ready));
  SPF_TRY(h->stream_destroy(h, comm));
  SPF_TRY(publish(e, SPF_RESULT_GRAD, e->grad));
  return update(e);
}
