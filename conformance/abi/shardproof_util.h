/* shardproof_util.h: what saves an engine in C some lines?
 *
 * Header-only, C99, not part of the ABI. */
#ifndef SHARDPROOF_UTIL_H_
#define SHARDPROOF_UTIL_H_
#include <stdlib.h>
#include <string.h>

#include "shardproof.h"

#define SPF_TRY(call)                              \
  do {                                             \
    spf_status spf_status_ = (call);               \
    if (spf_status_ != SPF_OK) return spf_status_; \
  } while (0)

static inline spf_label spf_for(spf_purpose purpose) {
  spf_label label = {0, 0, 0};
  label.purpose = (int32_t)purpose;
  return label;
}

/* The number a knob holds, or otherwise if it is not set. */
static inline double spf_knob(spf_host *h, const char *name, double otherwise) {
  const char *text = h->knob(h, name);
  return text ? atof(text) : otherwise;
}

static inline uint64_t spf_dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case SPF_U8:
      return 1;
    case SPF_BF16:
    case SPF_F16:
      return 2;
    case SPF_I32:
    case SPF_F32:
      return 4;
    default:
      return 8;
  }
}

/* Bytes of one value that is not dynamic. */
static inline uint64_t spf_value_bytes(const spf_value *v) {
  return (uint64_t)(v->max_rows * v->row_elems) * spf_dtype_bytes((int32_t)v->dtype);
}

static inline spf_status spf_launch_kernel(spf_host *h, spf_stream s, spf_kernel kernel,
                                           int32_t n_spans, const spf_span *spans,
                                           int32_t n_scalars, const double *scalars) {
  spf_launch l;
  memset(&l, 0, sizeof l);
  l.size = (uint32_t)sizeof l;
  l.kernel = (int32_t)kernel;
  l.n_spans = n_spans;
  l.spans = spans;
  l.n_scalars = n_scalars;
  l.scalars = scalars;
  return h->launch(h, s, &l);
}

/* y[n] = v */
static inline spf_status spf_fill_f32(spf_host *h, spf_stream s, spf_addr y, int64_t n, double v) {
  spf_span span;
  span.addr = y, span.count = (uint64_t)n, span.dtype = SPF_F32, span.access = SPF_WRITE;
  return spf_launch_kernel(h, s, SPF_K_FILL, 1, &span, 1, &v);
}

/* y[n] = a x + b y; with b == 0 y is only written */
static inline spf_status spf_axpby_f32(spf_host *h, spf_stream s, double a, spf_addr x, double b,
                                       spf_addr y, int64_t n) {
  spf_span span[2];
  double ab[2];
  span[0].addr = x, span[0].count = (uint64_t)n, span[0].dtype = SPF_F32, span[0].access = SPF_READ;
  span[1].addr = y, span[1].count = (uint64_t)n, span[1].dtype = SPF_F32;
  span[1].access = b == 0 ? SPF_WRITE : SPF_ADD;
  ab[0] = a, ab[1] = b;
  return spf_launch_kernel(h, s, SPF_K_AXPBY, 2, span, 2, ab);
}

/* In place, sum. */
static inline spf_status spf_all_reduce_f32(spf_host *h, spf_stream s, spf_group g, spf_addr x,
                                            int64_t n, spf_purpose purpose) {
  spf_collective c;
  memset(&c, 0, sizeof c);
  c.size = (uint32_t)sizeof c;
  c.kind = SPF_ALL_REDUCE;
  c.dtype = SPF_F32;
  c.group = g;
  c.stream = s;
  c.send = c.recv = x;
  c.count = (uint64_t)n;
  c.label = spf_for(purpose);
  return h->communicate(h, 1, &c);
}
#endif /* SHARDPROOF_UTIL_H_ */
