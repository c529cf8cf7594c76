/* model_api.h: how does a program that is not C++ run the suite's model?
 *
 * For engines outside of the suite's process (conformance/python is one): the tables of a case, the
 * initial values, what each node computes, digests. libshardproof_model.so exports these functions
 * and nothing else. All memory is the host's. A function that can fail writes a sentence, cut to
 * the room that is given, and says so by its result; nothing is thrown, nothing is kept.
 * Thread-safe: a model is constant once it is open.
 */
#ifndef SHARDPROOF_MODEL_API_H_
#define SHARDPROOF_MODEL_API_H_
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SHARDPROOF_MODEL_API __attribute__((visibility("default")))
#else
#define SHARDPROOF_MODEL_API
#endif

/* Changes when something that exists changes. */
#define SHARDPROOF_MODEL_API_VERSION 1

typedef struct shardproof_model shardproof_model; /* one engine instance of a case, on one rank */

/* Room for a sentence; text is always terminated if bytes > 0. */
typedef struct {
  char *text;
  size_t bytes;
} shardproof_error;

SHARDPROOF_MODEL_API int32_t shardproof_model_api_version(void);

/* What a case asks, as JSON, or NULL with a sentence that names the token. Freed by
 * shardproof_text_free. Keys: id, world, illegal (why; "": legal), defaults (of knobs that engines
 * can be told), instances. Of each instance:
 * name, script, calls ([letter, step], create first), knobs as engines are told them, traits (what
 * they see in tables and groups instead, where it differs from its default), explicit_groups,
 * first_rank, ranks; of a legal case dp_cp, grad_divisor and groups ([name, [world ranks]]: all
 * lists of all families). */
SHARDPROOF_MODEL_API char *shardproof_case_facts(const char *case_id, shardproof_error error);
SHARDPROOF_MODEL_API void shardproof_text_free(char *text);

/* The model of one instance as a world rank sees it; of an illegal case, which no step runs, as
 * rank 0 of a model without parallelism would. NULL with a sentence: no such id, instance or rank.
 */
SHARDPROOF_MODEL_API shardproof_model *shardproof_model_open(const char *case_id, int32_t instance,
                                                             int32_t rank, shardproof_error error);
SHARDPROOF_MODEL_API void shardproof_model_close(shardproof_model *model);

/* Its tables as JSON, alive as long as the model: data_rank, data_ranks (place and number of ranks
 * with different samples), modules [parent, name, type], params [name, module, flags, dtype,
 * [shape], tp_dim], values [name, flags, dtype, max_rows, row_elems, rows_from], nodes [module,
 * kind, name, [uses of FWD], [.. BWD], [.. DGRAD], [.. WGRAD], send_counts, recv_counts, chunk], a
 * use being [table, access, id]. Numbers are those of shardproof.h. */
SHARDPROOF_MODEL_API const char *shardproof_model_tables(const shardproof_model *model);

/* Nodes that run for a sample of a step, in forward order: writes at most room ids, answers how
 * many there are. Negative step or sample: 0. */
SHARDPROOF_MODEL_API int32_t shardproof_model_program(const shardproof_model *model, int64_t step,
                                                      int64_t sample, int32_t *nodes, int32_t room);

/* Elements [offset, offset + count) of a parameter's initial value, F32. 0, or 1 with a sentence.
 */
SHARDPROOF_MODEL_API int32_t shardproof_model_initial_value(const shardproof_model *model,
                                                            int32_t param, int64_t offset,
                                                            int64_t count, float *out,
                                                            shardproof_error error);

/* A whole parameter, gradient or value, contiguous. No elements: data is not looked at. */
typedef struct {
  void *data;
  int64_t count; /* elements */
  int32_t dtype; /* spf_dtype */
  int32_t zero;
} shardproof_buffer;

typedef struct {
  uint32_t size; /* sizeof */
  int32_t node, phase;
  int32_t grad_dtype; /* of grad[]: SPF_F32 or the parameter's; 0 = SPF_F32 */
  int64_t step, sample;
  /* Loss scale of the microbatch, in all its backward phases; aux_scale at routers. Powers of two;
   * 0 = 1. */
  double scale, aux_scale;
  /* By id; only entries that the node's uses of this phase name are read. NULL: it uses none. */
  const shardproof_buffer *param, *grad, *act, *dact;
  const int64_t *rows; /* by value id, of dynamic values; NULL: it uses none */
} shardproof_node_call;

/* Runs one phase of one node. Every buffer's dtype and number of elements must be those of the
 * tables: 1 with a sentence that names the node and the buffer, and nothing was computed. 0: done.
 */
SHARDPROOF_MODEL_API int32_t shardproof_model_compute(const shardproof_model *model,
                                                      const shardproof_node_call *call,
                                                      shardproof_error error);

/* Digest of elements whose first has that index in the logical tensor (conformance/trace/FORMAT.md,
 * "Digests"). 0 with a sentence for what is no spf_dtype; the digest of no elements is 0 too. */
SHARDPROOF_MODEL_API uint64_t shardproof_digest(const void *data, int32_t dtype,
                                                int64_t first_index, int64_t count,
                                                shardproof_error error);

#ifdef __cplusplus
}
#endif
#endif
