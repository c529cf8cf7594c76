/* shardproof.h: what does an engine have to export, and what is it given?
 *
 * C99, C11 and C++20. An engine exports one symbol, shardproof_plugin(). It is given a spf_host,
 * through which it reaches process groups, streams, memory, the model's compute and the place for
 * its results. It uses nothing else that touches device bytes, so what it does is observed and not
 * self-reported. README.md in this folder explains the contract to somebody who writes an engine;
 * this header is the reference.
 *
 * Rules that hold for every host call
 *  - First argument: the host. One host per (engine instance, rank); handles of another host are
 *    refused.
 *  - A call "enqueues" (returns at once, takes effect in stream order), "blocks" (returns when its
 *    condition holds), or is "local" (neither). Only group_create, group_destroy, group_register,
 *    group_deregister, event_sync and stream_sync block.
 *  - Result: a spf_status. A refused call did nothing, is in the trace, and is a finding.
 *    last_error() says why. After SPF_ABORTED every call but the destroy/free family returns
 *    SPF_ABORTED: unwind and return it.
 *  - Pointers in argument structs are read before the call returns; nothing that the engine owns
 *    is kept.
 *  - Structs begin with their size. Zero means "default" or "none" in every field.
 *  - There is no clock, no query ("is it done yet?") and no random number: a trace must not depend
 *    on timing.
 *  - Calls come from the thread on which the host entered the engine. No call from inside a
 *    spf_launch.fn.
 */
#ifndef SHARDPROOF_H_
#define SHARDPROOF_H_
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define SPF_ABI_MAJOR 1u /* changes when something that exists changes: refused on mismatch */
#define SPF_ABI_MINOR 5u /* changes when something is appended; test with SPF_HAS */
#define SPF_HAS(host, member) \
  ((host)->size >= offsetof(spf_host, member) + sizeof((host)->member) && (host)->member != 0)

typedef struct spf_host spf_host;
typedef struct spf_engine spf_engine; /* the engine's own, opaque to the suite */
/* A communicator: members, order and identity. NULL = none. */
typedef struct spf_group_s *spf_group;
typedef struct spf_stream_s *spf_stream;
typedef struct spf_event_s *spf_event;
/* A device address. An integer, so that it cannot be dereferenced by accident; bytes are added with
 * plain +. */
typedef uint64_t spf_addr;

typedef enum {
  SPF_OK = 0,
  SPF_REFUSED = 1,     /* the caller broke a precondition; nothing was done */
  SPF_UNSUPPORTED = 2, /* engine: legal case, not implemented.  host: no such kernel or feature */
  SPF_REJECTED = 3,    /* engine: illegal configuration. Only from create, before any collective */
  SPF_NO_MEMORY = 4,   /* the case's device memory is used up; the engine may release and retry */
  SPF_ABORTED = 5,     /* the run is ended (deadlock, a rank died, an error on a communicator) */
  SPF_FAILED = 6       /* engine: anything else that went wrong.  host: the suite itself failed */
} spf_status;

/* Enums are 32 bits wide: no -fshort-enums. */
typedef enum { SPF_U8 = 1, SPF_I32, SPF_I64, SPF_BF16, SPF_F16, SPF_F32, SPF_F64 } spf_dtype;

#ifdef __cplusplus
static_assert(sizeof(spf_dtype) == 4 && sizeof(spf_status) == 4, "-fshort-enums breaks this ABI");
#elif __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(spf_dtype) == 4 && sizeof(spf_status) == 4, "-fshort-enums breaks this ABI");
#endif

/* What bytes or a message are for, in the engine's words: they make messages readable. Checks
   follow the bytes where they can. */
typedef enum {
  SPF_FOR_OTHER = 0,
  SPF_FOR_PARAM_SHARD,
  SPF_FOR_PARAM_FULL,
  SPF_FOR_GRAD,
  SPF_FOR_GRAD_SHARD,
  SPF_FOR_MAIN_PARAM,
  SPF_FOR_OPTIMIZER,
  SPF_FOR_ACTIVATION,
  SPF_FOR_ACTIVATION_GRAD,
  SPF_FOR_SCRATCH,
  SPF_FOR_NORM,
  SPF_FOR_OUTER_GRAD,
  SPF_FOR_EXPERT_TOKENS,
  SPF_FOR_EXPERT_COUNTS,
  SPF_FOR_PIPELINE,
  SPF_FOR_CHECKPOINT
} spf_purpose;
/* module and microbatch are stored plus one, so that zero means none. */
typedef struct {
  int32_t purpose, module1, microbatch1;
} spf_label;

/* ------------------------------------------------------------------ facts: the model, as tables */

/* One module of the tree. Modules are numbered so that a parent precedes its children; 0 is the
 * root. */
typedef struct {
  int32_t parent; /* -1 for the root */
  const char *name, *type;
} spf_module;

enum {
  SPF_PARAM_FROZEN = 1,
  SPF_PARAM_EXPERT = 2, /* reduced and gathered over expt_dp, not dp_cp */
  /* since 1.4; only with sequence_parallel = 1: what nodes add to its gradient is that of this
   * rank's part of the sequence. The engine sums it over "tp" before it is used. */
  SPF_PARAM_SEQUENCE_PARALLEL = 4
};
/* One logical parameter held by this rank, or this rank's shard of one. A tied weight is one
 * parameter that several nodes use. The name is unique in the whole world: two ranks that hold the
 * same name hold the same tensor, whole where tp_dim is -1. Else each holds a shard of it: equal
 * pieces of dimension tp_dim, in the order of the ranks of "tp". Shape, numel, and the offsets of
 * init and publish are those of what is held. */
typedef struct {
  const char *name;
  int32_t module; /* the module that owns it */
  uint32_t flags;
  spf_dtype dtype; /* in which nodes read it */
  int32_t n_dim;
  int64_t shape[4], numel;
  int32_t tp_dim; /* dimension split over the group "tp", or -1 */
} spf_param;

enum {
  SPF_VALUE_DYNAMIC = 1, /* its number of rows depends on data: the engine passes it in rows[] */
  SPF_VALUE_COUNTS = 2,  /* I64 row counts per member of the group "ep" */
  /* F32 scalar: the sum of this microbatch's token losses. With loss_chunks > 1 (since 1.5) the
   * losses of all chunks add to it: zero it before the first, publish it after the last. */
  SPF_VALUE_LOSS = 4,
  SPF_VALUE_FROM_PREV = 8,
  SPF_VALUE_TO_NEXT = 16 /* pipeline boundary */
};
/* One activation (per microbatch). The engine allocates it and frees it: max_rows * row_elems
 * elements, or rows * row_elems if it is dynamic, where rows = the sum of the COUNTS value
 * rows_from (-1 if not dynamic). Its gradient has the same shape; its dtype is dtype (values of
 * integer dtype have none). */
typedef struct {
  const char *name;
  uint32_t flags;
  spf_dtype dtype;
  int64_t max_rows, row_elems;
  int32_t rows_from;
} spf_value;

typedef enum { SPF_IN_PARAM = 0, SPF_IN_GRAD, SPF_IN_ACT, SPF_IN_DACT } spf_table;
/* ADD reads and writes: zero it before the first. Parameter gradients are always ADD. A value's
 * gradient is WRITE if the value has one reader in the program and ADD in all of them if it has
 * several. */
typedef enum { SPF_READ = 1, SPF_WRITE = 2, SPF_ADD = 3 } spf_access;
typedef struct {
  uint8_t table, access; /* spf_table, spf_access */
  uint16_t zero;
  int32_t id; /* parameter or value */
} spf_use;
typedef struct {
  int32_t n;
  const spf_use *use;
} spf_uses;

/* BWD is DGRAD, then WGRAD. */
typedef enum { SPF_FWD = 0, SPF_BWD = 1, SPF_DGRAD = 2, SPF_WGRAD = 3 } spf_phase;
/* An EXCHANGE is not computed: the engine moves the value read into the value written, all_to_all_v
 * over "ep"; send_counts and recv_counts name the COUNTS values that govern it, or -1 for equal
 * pieces. An ALL_REDUCE is not computed either: its phase has one use, of access ADD, and the
 * engine sums that value (forward) or gradient (backward: BWD or DGRAD) over "tp", between its
 * writer and its readers.
 * With sequence_parallel some values have max_rows = sequence / tp: the rows of this rank's part of
 * the sequence, in the order of the ranks of "tp". ALL_GATHER and REDUCE_SCATTER nodes are not
 * computed. A phase has one use READ and one WRITE, and the engine moves the one into the other
 * over "tp" (with one rank: copies it); FWD, values: as the node is called; BWD or DGRAD, their
 * gradients: the other way round. A phase without uses, as WGRAD always, needs nothing.
 * With vocab_parallel embedding and head have tp_dim 0, and the maxima of logits are such an
 * ALL_GATHER, forward alone: of [sequence, 1] of each rank to [tp * sequence, 1].
 * ALL_GATHER_CP is the same over "cp": forward it gathers keys and values of the whole sequence in
 * the order of its ranks, backward it reduce-scatters (a sum) their gradients. */
typedef enum {
  SPF_NODE_COMPUTE = 0,
  SPF_NODE_INPUT, /* writes the microbatch's tokens and labels; needs spf_compute.sample */
  SPF_NODE_EXCHANGE,
  SPF_NODE_ALL_REDUCE,     /* since 1.3; only with tensor_parallel = 1 */
  SPF_NODE_ALL_GATHER,     /* since 1.4; only with sequence_parallel = 1 or vocab_parallel = 1 */
  SPF_NODE_REDUCE_SCATTER, /* since 1.4; only with sequence_parallel = 1 */
  SPF_NODE_ALL_GATHER_CP   /* since 1.5; only with context_parallel = 1 */
} spf_node_kind;
/* One invocation in the forward program. A module used twice is two nodes; one that does not run in
 * this microbatch is not in the program. uses[phase] is complete: the engine may derive all
 * liveness from it. */
typedef struct {
  int32_t id, module, kind, layer, chunk;
  const char *name;
  spf_uses uses[4]; /* by spf_phase */
  int32_t send_counts, recv_counts;
} spf_node;

typedef struct {
  uint32_t size;
  int32_t n_modules, n_params, n_values;
  const spf_module *modules;
  const spf_param *params;
  const spf_value *values;
} spf_model;
/* Nodes in forward order for one (step, microbatch) on this rank; backward is the reverse.
 * With loss_chunks = n > 1 (since 1.5) a program with a head ends in n pairs of nodes, the head and
 * the loss of one n-th of the rows of what the head reads. In training each pair runs forward, then
 * backward (the loss, then the head), before the next pair; all that is before them runs backward
 * once, after the last. So their backward does not follow the reverse. Each head adds to the
 * gradient of what it reads, and to that of its weight. */
typedef struct {
  uint32_t size;
  int32_t n_nodes;
  const spf_node *nodes;
} spf_program;

/* ------------------------------------------------------------------ arguments */

/* Pieces of an ALL_TO_ALL_V are packed in rank order. */
typedef enum {
  SPF_ALL_GATHER = 1, /* send[count] -> recv[group * count] */
  SPF_ALL_GATHER_V,   /* send[recv_counts[me]] -> recv[sum recv_counts] */
  SPF_REDUCE_SCATTER, /* send[group * count] -> recv[count] */
  SPF_ALL_REDUCE,     /* send[count] -> recv[count] */
  SPF_BROADCAST,      /* root's send[count] -> everybody's recv[count] */
  SPF_ALL_TO_ALL_V,   /* send pieces of send_counts[r] -> recv pieces of recv_counts[r] */
  SPF_SEND,
  SPF_RECV /* count elements, peer */
} spf_collective_kind;
typedef enum { SPF_SUM = 0, SPF_AVG } spf_reduction;
/* In place means exactly: all_gather(_v): send is my slice of recv; reduce_scatter: recv is my
 * slice of send; all_reduce and broadcast: send == recv. Any other overlap of send and recv is
 * refused. Counts are elements. */
typedef struct {
  uint32_t size;
  int32_t kind, dtype, reduction;
  spf_group group;
  spf_stream stream;
  spf_addr send, recv;
  uint64_t count;
  const uint64_t *send_counts, *recv_counts;
  int32_t peer; /* root or peer, as a rank of the group */
  spf_label label;
} spf_collective;

enum { SPF_COMPUTE_RECOMPUTE = 1 /* a forward node run again for the backward pass */ };
typedef struct {
  uint32_t size;
  int32_t node, phase, microbatch;
  uint32_t flags;
  int32_t grad_dtype; /* of grad[]: the parameter's dtype or SPF_F32; 0 = SPF_F32 */
  int64_t sample;     /* INPUT nodes: index of the microbatch within the step's global batch */
  /* Nodes that originate a loss gradient (losses: one scale in a microbatch; a router's auxiliary
   * losses: right if the same): a power of two; 0 = 1. */
  double scale;
  /* Tables by id: only the entries that uses[phase] names are read. Full parameters, contiguous. */
  const spf_addr *param, *grad, *act, *dact;
  /* By value id, for dynamic values; may be NULL if the node uses none. No rows: no address. */
  const int64_t *rows;
} spf_compute;

/* Device maths that is not the model's. Each kernel: its spans, in the order given ([s] is
 * optional), its scalars after the semicolon, and what it does. Scalars are rounded to the wider
 * dtype of the operands, then each elementary operation rounds once in it (no contraction), then
 * the result is rounded to the destination: the same bits on every fabric. a == 0 still multiplies:
 * clear with FILL. What is not a number is stored as one quiet NaN. Sums over x are F64: chunks of
 * 4096 elements, each from 0 in order of its elements, added to out in order of chunks. GEMM sums
 * over k in order. Spans that overlap are all read, or the very same range; C of GEMM overlaps
 * nothing. */
typedef enum {
  /* fn, with the engine's own declaration of ranges and accesses */
  SPF_K_CUSTOM = 0,
  /* y ; v
   * y = v */
  SPF_K_FILL,
  /* y
   * contents are dead from here on (poisoned): release inside a pool */
  SPF_K_DISCARD,
  /* x y [s] ; a b
   * y = (a*s)*x + b*y ; b == 0: y is only written (WRITE, else ADD). s: one element, F64, READ; it
   * is rounded as a and b are, to the wider dtype of x and y. Casts, adds, scales */
  SPF_K_AXPBY,
  /* x out
   * out(F64) += sum x*x */
  SPF_K_SUM_SQUARES,
  /* x out
   * out(F64) += how many are NaN or infinite */
  SPF_K_COUNT_NONFINITE,
  /* x out
   * out(F64) += how many are zero */
  SPF_K_COUNT_ZERO,
  /* ss out ; num eps cap
   * out(F64) = min(cap, num / (sqrt(ss) + eps)). The root alone: CUSTOM, or the host */
  SPF_K_NORM_SCALE,
  /* p m v g ; lr b1 b2 eps wd t
   * F32, decoupled decay, bias corrected with step t (1 first) */
  SPF_K_ADAMW,
  /* A B C ; m n k ta tb alpha beta
   * row-major C = alpha op(A) op(B) + beta C ; beta == 0: C is only written (WRITE, else ADD) */
  SPF_K_GEMM
} spf_kernel;
typedef struct {
  spf_addr addr;
  uint64_t count; /* elements */
  int32_t dtype;
  int32_t access; /* spf_access */
} spf_span;
typedef struct {
  uint32_t size;
  int32_t kernel;
  int32_t n_spans, n_scalars;
  const spf_span *spans;
  const double *scalars;
  /* CUSTOM only. stream: cudaStream_t or NULL; data[i] is a pointer that fn may pass to a kernel
   * (stream != NULL) or dereference (stream == NULL). arg is copied (arg_bytes). Must not call the
   * host, block, or throw. */
  void (*fn)(void *stream, void *const *data, const void *arg);
  const void *arg;
  uint64_t arg_bytes;
  spf_label label;
} spf_launch;

typedef enum {
  SPF_DEVICE = 0,
  SPF_PINNED = 1,     /* host memory that streams can copy to and from. mem_alloc and mem_free take
                       * effect at the call, in the order of the host, not of the stream */
  SPF_REGISTRABLE = 2 /* since 1.1: device memory that group_register accepts. Dear: keep it */
} spf_place;

/* Results. id: parameter, or microbatch for LOSS, else 0. offset and count in elements of the
 * logical tensor, or of this rank's shard of it (spf_param.tp_dim). */
typedef enum {
  SPF_RESULT_PARAM = 1, /* authoritative value after create, load and every step that changed it;
                         * F32 (main weights) or BF16 (what nodes read), one dtype on all ranks */
  SPF_RESULT_GRAD,      /* reduced and scaled gradient of this step, before clipping */
  SPF_RESULT_LOSS,      /* F32: sum of the microbatch's token losses, unscaled */
  SPF_RESULT_GRAD_NORM, /* F64: 2-norm of the gradient before clipping; each logical element once */
  SPF_RESULT_ZERO_COUNT /* F64: how many logical gradient elements are zero */
} spf_result;

/* Lifecycle hooks that an engine may announce with mark(). Announcing is optional: without marks
 * the effects alone are judged. module: the module id, 0 for the root ones; microbatch: -1 where
 * none applies. */
typedef enum {
  SPF_HOOK_FORWARD = 1,        /* H0  the root's forward is entered */
  SPF_HOOK_PRE_FORWARD,        /* H1  before a module's forward: its parameters become available */
  SPF_HOOK_REGISTER_BACKWARD,  /* H2  the unit's post-backward is armed */
  SPF_HOOK_POST_FORWARD,       /* H3  after a unit's forward: its parameters may go */
  SPF_HOOK_ROOT_PRE_BACKWARD,  /* H4  once per backward, before any unit's */
  SPF_HOOK_PRE_BACKWARD,       /* H5  before a unit's first backward operation */
  SPF_HOOK_POST_BACKWARD,      /* H6  after a unit's last read of its parameters in backward */
  SPF_HOOK_ACCUMULATE,         /* H7  a unit's gradients are handed to the reduction */
  SPF_HOOK_ROOT_POST_BACKWARD, /* H8  once per backward, after every unit's: for stragglers */
  SPF_HOOK_FINISH_GRAD_SYNC,   /* H9  once per step: all reductions are drained */
  SPF_HOOK_INSTALL_WEIGHTS,    /* H10 after the optimizer: main weights go to model weights */
  SPF_HOOK_START_PARAM_SYNC,   /* H11 first microbatch: gathers may be launched ahead */
  SPF_HOOK_ZERO_GRAD,          /* H12 once per step: accumulators are cleared */
  SPF_HOOK_OPTIMIZER_STEP      /* between H9 and H10 */
} spf_hook;

/* ------------------------------------------------------------------ what the engine is given */

struct spf_host {
  uint32_t size, abi_major, abi_minor, zero;
  const char *(*last_error)(spf_host *);
  /* Says something for the report: the reason of SPF_UNSUPPORTED, SPF_REJECTED, SPF_FAILED. */
  void (*explain)(spf_host *, const char *text);

  /* facts: local, constant for the life of the engine */
  /* NULL = not set. A set knob that is never read: unsupported. */
  const char *(*knob)(spf_host *, const char *name);
  const spf_model *(*model)(spf_host *);
  /* Any step, any time. */
  const spf_program *(*program)(spf_host *, int64_t step, int32_t microbatch);
  /* "world", or one of the explicit collection; NULL = not provided. */
  spf_group (*group)(spf_host *, const char *name);

  /* groups */
  /* Blocks: collective over parent, like a split; ranks of the parent, own rank among them, or
   * n = 0 to join none (*out = NULL). */
  spf_status (*group_create)(spf_host *, spf_group parent, const char *name, int32_t n,
                             const int32_t *ranks, spf_group *out);
  spf_status (*group_info)(spf_host *, spf_group, int32_t *rank, int32_t *n,
                           const int32_t **world_ranks);
  /* Blocks: collective over the group, after its work. */
  spf_status (*group_destroy)(spf_host *, spf_group);

  /* streams and events: as in CUDA, including that a wait on an event never recorded is no edge */
  spf_status (*stream_create)(spf_host *, const char *name, int32_t priority, spf_stream *out);
  spf_status (*stream_destroy)(spf_host *, spf_stream);
  spf_status (*stream_sync)(spf_host *, spf_stream); /* blocks */
  spf_status (*event_create)(spf_host *, spf_event *out);
  spf_status (*event_destroy)(spf_host *, spf_event);            /* local; recorded waits hold */
  spf_status (*event_record)(spf_host *, spf_event, spf_stream); /* enqueues */
  spf_status (*event_wait)(spf_host *, spf_event, spf_stream);   /* enqueues: the stream waits */
  spf_status (*event_sync)(spf_host *, spf_event);               /* blocks */

  /* memory: alloc and free count as writes of the whole block at their place in the stream; those
   * of SPF_PINNED at their place in the order of the host: wait for what uses it before the free */
  spf_status (*mem_alloc)(spf_host *, spf_stream, uint64_t bytes, spf_place, spf_label,
                          spf_addr *out);
  spf_status (*mem_free)(spf_host *, spf_stream, spf_addr);
  spf_status (*copy)(spf_host *, spf_stream, spf_addr dst, spf_addr src, uint64_t bytes);
  /* Local. Declares that this thread now reads and/or writes these bytes of a SPF_PINNED block. */
  spf_status (*host_access)(spf_host *, spf_addr, uint64_t bytes, spf_access, void **out);

  /* work: all enqueue */
  /* n > 1: one group, all or nothing. */
  spf_status (*communicate)(spf_host *, int32_t n, const spf_collective *ops);
  spf_status (*compute)(spf_host *, spf_stream, const spf_compute *);
  spf_status (*launch)(spf_host *, spf_stream, const spf_launch *);

  /* values in, values out: enqueue */
  spf_status (*init)(spf_host *, spf_stream, int32_t param, int64_t offset, int64_t count,
                     spf_dtype, spf_addr dst);
  spf_status (*publish)(spf_host *, spf_stream, spf_result, int32_t id, int64_t offset,
                        int64_t count, spf_dtype, spf_addr src);

  /* announcements: local */
  spf_status (*mark)(spf_host *, spf_hook, int32_t module, int32_t microbatch);

  /* since 1.1: user buffers. Collectives on the group may read and write a registered block without
   * a copy. Then in each collective either all members' send (and all members' recv) lie in blocks
   * registered with its group, at the same offset in the block, or none's does; in place, the
   * offset of the larger buffer counts. (NCCL's user buffer registration: ncclCommRegister,
   * ncclCommWindowRegister.) */
  /* Blocks: collective over the group; block is the start of a SPF_REGISTRABLE one, all of one
   * size. */
  spf_status (*group_register)(spf_host *, spf_group, spf_addr block);
  /* Blocks: after this rank's work on the group. Before mem_free and group_destroy. */
  spf_status (*group_deregister)(spf_host *, spf_group, spf_addr block);
};

/* ------------------------------------------------------------------ what the engine exports */

typedef struct {
  uint32_t size, abi_major, abi_minor;
  uint32_t stack_bytes; /* needed per rank when ranks are fibers; 0 = 256 KiB */
  const char *name, *version;
  spf_status (*create)(spf_host *, spf_engine **out);
  spf_status (*train_step)(spf_engine *, int64_t step); /* may return with device work in flight */
  spf_status (*eval_step)(spf_engine *, int64_t step);
  spf_status (*save)(spf_engine *, const char *folder); /* returns when the files are complete */
  spf_status (*load)(spf_engine *, const char *folder);
  void (*destroy)(spf_engine *); /* also after a failed call, if create set *out */
  /* since 1.2, optional: what this rank will issue in that train step, as text for people; all !=
   * 0: every single step of it. Valid until the next call. Issues nothing. */
  const char *(*plan)(spf_engine *, int64_t step, int32_t all);
} spf_plugin; /* NULL eval_step, save, load, plan: unsupported */

const spf_plugin *shardproof_plugin(uint32_t host_abi_major);

#ifdef __cplusplus
}
#endif
#endif /* SHARDPROOF_H_ */
