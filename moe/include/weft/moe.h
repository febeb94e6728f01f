/* Expert parallelism for mixture-of-experts layers: dispatch sends every token's row once to each
 * PE that owns one of its experts; combine returns the experts' outputs as one sum per token. Link
 * weft::weft.
 *
 * An exchange is created once, for the PEs of a team (its ranks) and the maximum sizes. After that
 * all ranks call, in the same order, dispatch, combine, dispatch, ... Each call is a send and a
 * receive, between which the caller may compute. Rows for PEs on this node are stored into their
 * memory. Each other PE gets at most two writes: a header with the first rows, and the other rows.
 * No call waits for its peers before it sends.
 *
 * Experts: 0 .. experts - 1. Each rank owns a contiguous range, the first experts % ranks ranks one
 * more. An id of -1 means no expert; any other id is an error. If a token names an expert twice,
 * that expert gets one row. Results are bitwise identical in every run: slots, rows and the order
 * of sums depend on the ids alone.
 *
 * Errors: as in weft.h. If one rank's arguments are invalid, it takes part nevertheless
 * (weft_moe_refuse), and all others return WEFT_MISMATCH with its PE and its message. A PE that
 * does not take part within the timeout is named. Then the exchange is broken (WEFT_MOE_ERROR), or
 * continues without that PE (WEFT_MOE_MASK).
 *
 * An exchange of WEFT_MOE_DEVICE works in GPU memory, on streams; see "On a GPU" below.
 *
 * Threads: one at a time may call the functions of one exchange. moe/docs/MOE.md is the guide. */
#ifndef WEFT_MOE_H
#define WEFT_MOE_H

#include <weft/device.h>
#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Exchange -------------------------------------------------------------------------------- */

typedef struct weft_moe* weft_moe_t;
/* What combine needs to know about one dispatch. Private memory of this PE; valid until
 * weft_moe_plan_free, for any number of combines, also after later dispatches. */
typedef struct weft_moe_plan* weft_moe_plan_t;

typedef enum weft_moe_type {
  WEFT_MOE_BF16 = 1,
  WEFT_MOE_F16,
  WEFT_MOE_F32,
  WEFT_MOE_F64,
  WEFT_MOE_E4M3, /* payload only, as are the two below: fp8, saturating */
  WEFT_MOE_E5M2,
  WEFT_MOE_NVFP4 /* pairs of e2m1 in a byte, the first in the low half */
} weft_moe_type;

/* The scales that are sent with a row of fp8 or nvfp4: value = code * scale. */
typedef enum weft_moe_scales {
  WEFT_MOE_SCALES_NONE = 0,
  WEFT_MOE_SCALES_F32,   /* fp8: a float for each 128 values */
  WEFT_MOE_SCALES_UE8M0, /* fp8: a power of two, one byte for each 128 values, rounded up */
  /* An e4m3 byte for each 16 values, then, at the next multiple of 4, a float for the row */
  WEFT_MOE_SCALES_NVFP4
} weft_moe_scales;

/* How the received rows are arranged. */
typedef enum weft_moe_layout {
  WEFT_MOE_RANK_MAJOR =
      1, /* [ranks][max_tokens]: where they arrived, without a copy; counts[ranks] */
  WEFT_MOE_RANK_COMPACT,  /* [rows]: by source rank, then slot, no gaps; counts[ranks] */
  WEFT_MOE_EXPERT_PADDED, /* [local experts][ranks * max_tokens]; counts[local experts] */
  /* [rows]: by local expert, each starting at a multiple of `alignment`; zeros between them */
  WEFT_MOE_EXPERT_COMPACT
} weft_moe_layout;

typedef enum weft_moe_on_timeout {
  /* The call returns WEFT_TIMEOUT, and so does every later call of this exchange; in a CUDA graph:
   * see below */
  WEFT_MOE_ERROR = 0,
  WEFT_MOE_MASK /* missing PEs are masked: their rows are left out, from now on */
} weft_moe_on_timeout;

/* Whether a row is sent once per rank or once per node, between nodes. */
typedef enum weft_moe_row_per {
  WEFT_MOE_ROW_PER_AUTO = 0, /* NODE if nodes have several ranks, and it may be; else RANK */
  WEFT_MOE_ROW_PER_RANK,     /* to each rank that owns one of its experts */
  /* Once to each node, where all ranks read it; a sum comes back as one row per node. In GPU
   * memory: not with WEFT_MOE_MASK */
  WEFT_MOE_ROW_PER_NODE
} weft_moe_row_per;

typedef enum weft_moe_memory { WEFT_MOE_HOST = 0, WEFT_MOE_DEVICE } weft_moe_memory;

typedef struct weft_moe_config {
  weft_team_t team; /* its PEs are the ranks; WEFT_TEAM_INVALID on a PE that does not take part */
  int max_tokens;   /* of one PE in one dispatch */
  int hidden;       /* values in a row; the bytes of a row are a multiple of 16 */
  int experts;      /* at least one for each rank, at most 4096 */
  int topk;         /* 1 .. 32 */
  weft_moe_type payload;
  weft_moe_scales scales;
  weft_moe_type output; /* of combine: BF16, F16, F32 or F64 */
  weft_moe_layout layout;
  int alignment; /* rows; of WEFT_MOE_EXPERT_COMPACT */
  /* Of each receive; 0: WEFT_MOE_TIMEOUT, by default 1800 s for the first dispatch and combine,
   * then 100 */
  double timeout_s;
  weft_moe_on_timeout on_timeout;
  weft_moe_memory memory; /* of WEFT_MOE_DEVICE: after weft_device_init */
  weft_moe_row_per row_per;
  /* WEFT_MOE_DEVICE: of 512 threads, at most; 0: as many as the GPU has multiprocessors. May
   * differ. */
  int blocks;
  /* 1: a dispatch also says where the experts' rows may be written, in weft_moe_rows.outputs, so
   * that combine need not copy them: the ranks of a node read them there. Only WEFT_MOE_DEVICE with
   * rank layouts. */
  int outputs_in_place;
  /* 1: the scales that a dispatch shows lie column by column: [local experts][words][ranks *
   * max_tokens] words of 4 bytes, each a float or four ue8m0, so that products with scaled blocks
   * read those of a block side by side. Only WEFT_MOE_EXPERT_PADDED, with scale_bytes a multiple of
   * 4. */
  int scales_by_column;
} weft_moe_config;

/* Collective over all PEs of the job, each with its own team; the fields are equal on the PEs of
 * one team. On PEs that do not take part, *exchange may only be passed to weft_moe_destroy. Takes
 * symmetric memory: about 2 (WEFT_MOE_RANK_MAJOR: 3) * ranks * max_tokens rows of a dispatch (with
 * outputs_in_place, also of a combine), and 2 * max_tokens * topk rows of a combine. */
WEFT_EXPORT int weft_moe_create(const weft_moe_config* config, weft_moe_t* exchange);
/* The symmetric memory that weft_moe_create takes on each PE for such an exchange, found by the
 * same functions. Local. ranks 0: of the PEs of config->team, in this job. Else of a job with so
 * many PEs, node_size on each node (0: all on one), which need not be there: then this may be
 * called at any time, and config->team is not looked at. WEFT_INVALID_ARGUMENT as for
 * weft_moe_create. */
WEFT_EXPORT int weft_moe_memory_bytes(const weft_moe_config* config,
                                      int ranks,
                                      int node_size,
                                      size_t* bytes);
/* Collective over all PEs of the job. NULL is accepted. Its plans can only be freed afterwards. */
WEFT_EXPORT int weft_moe_destroy(weft_moe_t exchange);

typedef struct weft_moe_shape {
  int rank; /* this PE in the team */
  int ranks;
  int first_expert;
  int local_experts;
  size_t payload_bytes; /* of a row of x */
  size_t scale_bytes;   /* of a row of scales */
  size_t rows_max;      /* of a received x */
  /* The symmetric memory of the exchange; results of WEFT_MOE_RANK_MAJOR are views of it */
  void* memory;
  size_t memory_bytes;
  size_t plan_bytes; /* WEFT_MOE_DEVICE: of the memory for a plan */
} weft_moe_shape;

WEFT_EXPORT int weft_moe_get_shape(weft_moe_t exchange, weft_moe_shape* shape);

/* WEFT_MOE_DEVICE: weft_moe_config.blocks, from the next call of this PE on. Local. */
WEFT_EXPORT int weft_moe_set_blocks(weft_moe_t exchange, int blocks);

/* ---- Dispatch -------------------------------------------------------------------------------- */

typedef struct weft_moe_tokens {
  int count; /* 0 .. max_tokens */
  /* [count][hidden] of the payload's type, or, for fp8 and nvfp4, of BF16, F16 or F32, which are
   * then quantised. */
  const void* x;
  weft_moe_type type;
  const void* scales; /* [count][scale_bytes] for a payload that is already quantised, else NULL */
  const int64_t* topk_ids;   /* [count][topk] */
  const float* topk_weights; /* [count][topk], or NULL: then pass them to combine */
} weft_moe_tokens;

/* Sends this PE's tokens. When it returns, all arrays may be reused. Peers may then overwrite the
 * memory of the dispatch before the last one: the rows of a WEFT_MOE_RANK_MAJOR result are valid
 * until the second dispatch after it. */
WEFT_EXPORT int weft_moe_dispatch_send(weft_moe_t exchange, const weft_moe_tokens* tokens);

/* The received rows. Strides are in bytes. WEFT_MOE_RANK_MAJOR sets all addresses but `counts`; the
 * other layouts fill memory of the caller for `rows_max` rows, packed. Rows beyond the counts are
 * undefined unless stated otherwise. */
typedef struct weft_moe_rows {
  void* x;
  void* scales; /* not touched without scales */
  /* [row][topk], rank layouts only: local experts, -1 for those of other ranks and for empty
   * slots */
  int32_t* ids;
  /* [row][topk] in rank layouts, else [row]: the sum of the weights of the lanes of that expert */
  float* weights;
  size_t x_stride;
  size_t scales_stride;
  size_t ids_stride;
  size_t weights_stride;
  int32_t* counts; /* memory of the caller: number of rows of each local expert, or of each rank */
  /* Memory of the caller, one more than counts: where each begins, in rows; the last is the number
   * of rows */
  int64_t* offsets;
  /* Set by weft_moe_dispatch_on_stream: with outputs_in_place [rows_max][hidden] of the type
   * `output`, packed, in the order of x, else NULL. May be written once this dispatch has been
   * received. */
  void* outputs;
} weft_moe_rows;

WEFT_EXPORT int weft_moe_dispatch_recv(weft_moe_t exchange,
                                       weft_moe_rows* rows,
                                       weft_moe_plan_t* plan);
WEFT_EXPORT void weft_moe_plan_free(weft_moe_plan_t plan);

/* For each row of x of the dispatch of `plan`: the rank that it came from, and the token's index
 * there; -1 for unused rows. ranks, tokens: memory of the caller, [rows_max]. */
WEFT_EXPORT int weft_moe_sources(weft_moe_t exchange,
                                 weft_moe_plan_t plan,
                                 int32_t* ranks,
                                 int32_t* tokens);

/* ---- Combine --------------------------------------------------------------------------------- */

typedef enum weft_moe_precision {
  /* Summed in float on the expert's rank in the order of lanes, rounded, summed in rank order; of
   * ranks of another node, with WEFT_MOE_ROW_PER_NODE: summed there in rank order, and rounded only
   * then */
  WEFT_MOE_REDUCED = 1,
  /* Every expert's row is sent back; summed in float in the order of lanes, rounded once */
  WEFT_MOE_EXACT,
  /* Every expert's row is sent back; `out` is [tokens][topk][hidden], without weights or sums */
  WEFT_MOE_LANES,
  /* As WEFT_MOE_REDUCED, but the rows sent are rounded to fp8 e4m3, with a float scale for each 128
   * values: half the bytes of BF16. Output BF16, F16 or F32; hidden a multiple of 16 */
  WEFT_MOE_FP8
} weft_moe_precision;

typedef enum weft_moe_weighting {
  WEFT_MOE_WEIGHTS_OF_DISPATCH = 1,
  WEFT_MOE_WEIGHTS_GIVEN, /* `topk_weights` of this call */
  /* Each row has weight 1. Always so in rank layouts, whose rows the caller has reduced */
  WEFT_MOE_UNWEIGHTED
} weft_moe_weighting;

typedef struct weft_moe_outputs {
  /* Of the type `output`, at the positions of the dispatched rows that they belong to.
   * weft_moe_rows.outputs, on all ranks or on none, are read by the peers where they are, so do not
   * write them until a dispatch that was sent after this combine has been received. The second
   * dispatch after theirs reuses them. */
  const void* rows;
  size_t stride; /* bytes from row to row; 0: packed */
  weft_moe_precision precision;
  weft_moe_weighting weighting;
  const float* topk_weights; /* [tokens][topk] */
} weft_moe_outputs;

/* Sends the experts' rows back. When it returns, `rows` may be reused. With WEFT_MOE_WEIGHTS_GIVEN
 * and WEFT_MOE_REDUCED it waits for the peers' weights, within the timeout. */
WEFT_EXPORT int weft_moe_combine_send(weft_moe_t exchange,
                                      weft_moe_plan_t plan,
                                      const weft_moe_outputs* outputs);
/* out: [tokens][hidden] of the type `output`; tokens without an expert are zeros. */
WEFT_EXPORT int weft_moe_combine_recv(weft_moe_t exchange, void* out);

/* ---- Failures -------------------------------------------------------------------------------- */

typedef enum weft_moe_step { WEFT_MOE_DISPATCH = 1, WEFT_MOE_COMBINE } weft_moe_step;

/* Call it instead of a send and a receive whose arguments are invalid on this PE. The peers' calls
 * return WEFT_MISMATCH with its PE and `text`, whatever call they make at this point. Waits until
 * they do, so that all ranks are in step for later calls. The other functions do this
 * automatically; this one is for callers that check arguments themselves. */
WEFT_EXPORT int weft_moe_refuse(weft_moe_t exchange, weft_moe_step step, const char* text);

/* active[rank]: 1, or 0 for a rank that is masked after a timeout (WEFT_MOE_MASK) or was left out.
 * As seen by this PE. */
WEFT_EXPORT int weft_moe_active(weft_moe_t exchange, uint8_t* active);

/* Masks `rank` at once, as after a timeout with WEFT_MOE_MASK. Between calls; all other ranks must
 * do the same at the same point. On a GPU: synchronize the stream first. */
WEFT_EXPORT int weft_moe_leave_out(weft_moe_t exchange, int rank);

/* Collective over all ranks, including those that were late or left out. Afterwards all ranks are
 * in step and none is masked. Calls that a rank had begun are dropped; results that are read in
 * place become invalid on ranks that were behind. A broken exchange works again. Needs every rank's
 * process: one that died cannot come back. On a GPU: synchronize the streams first, and capture
 * graphs anew in WEFT_MOE_RANK_MAJOR. */
WEFT_EXPORT int weft_moe_rejoin(weft_moe_t exchange);

/* ---- On a GPU -------------------------------------------------------------------------------- *
 * Exchanges of WEFT_MOE_DEVICE. Ranks of one node must have each other's GPU memory mapped (NVLink,
 * PCIe): weft_moe_create returns WEFT_INVALID_ARGUMENT or WEFT_MISMATCH on all PEs if one has not.
 * Rows for other nodes are sent by puts; then combine supports only WEFT_MOE_REDUCED and
 * WEFT_MOE_FP8.
 *
 * Rows, ids, weights, scales, counts, offsets, plans and sums are in memory of this GPU; x, rows
 * and out at multiples of 16 bytes. Each call enqueues one kernel (two for more than 2,048 ids) and
 * returns; the kernel takes the number of the call from GPU memory, so calls can be captured in a
 * CUDA graph and replayed. Calls of one exchange must follow each other in stream order: order
 * different streams by events.
 *
 * A kernel needs all its blocks running at once, as they wait for peers. So calls of several
 * exchanges of a process on different streams take turns, in the order in which they are made,
 * unless the GPU has room for the blocks of all of them (weft_moe_config.blocks): make them in the
 * same order on all PEs, as with any collective. Graphs are not ordered so: replay those that hold
 * calls behind each other, or give their exchanges few enough blocks together. The same holds for
 * other kernels that wait for peers (NCCL's): leave them multiprocessors. On a stream of a green
 * context, or in a process that MPS limits, give no more blocks than it has multiprocessors. A
 * kernel that finds no room for all its blocks waits for the timeout, and the message says how many
 * ran.
 *
 * Errors that only a kernel can see (a missing rank, a rank that refuses, an id that is not an
 * expert) are returned by weft_moe_check and by the next call. Until then a missing rank counts as
 * one that sends nothing, and such an id as -1. No kernel waits longer than the timeout. Weft's log
 * says which rank is missing, once, also if nobody calls. Replays of a graph call nothing: with
 * WEFT_MOE_ERROR a kernel that was captured ends with an error of CUDA where a rank is missing, and
 * so do later ones; the CUDA context is lost then, as after any fault in a kernel, and
 * weft_device_check says why. */

typedef enum weft_moe_phase { WEFT_MOE_BOTH = 0, WEFT_MOE_SEND, WEFT_MOE_RECEIVE } weft_moe_phase;

/* As weft_moe_dispatch_send and weft_moe_dispatch_recv. `tokens` and its arrays are used by the
 * send, which has read them when it completes in the stream; `rows` is used by the receive, and not
 * needed by the send. `plan`: shape's plan_bytes of GPU memory, 16-byte aligned, the same for both
 * phases, written by both; until it is overwritten, it may be used for any number of combines. With
 * WEFT_MOE_RANK_MAJOR the addresses in `rows` are set when the call returns. */
WEFT_EXPORT int weft_moe_dispatch_on_stream(weft_moe_t exchange,
                                            weft_moe_phase phase,
                                            const weft_moe_tokens* tokens,
                                            weft_moe_rows* rows,
                                            void* plan,
                                            weft_stream_t stream);

/* As weft_moe_combine_send and weft_moe_combine_recv. Both phases get the same `outputs`; `out` is
 * for the receive. */
WEFT_EXPORT int weft_moe_combine_on_stream(weft_moe_t exchange,
                                           weft_moe_phase phase,
                                           void* plan,
                                           const weft_moe_outputs* outputs,
                                           void* out,
                                           weft_stream_t stream);

/* As weft_moe_sources. */
WEFT_EXPORT int weft_moe_sources_on_stream(
    weft_moe_t exchange, const void* plan, int32_t* ranks, int32_t* tokens, weft_stream_t stream);

/* Where this PE's tokens go, of which programs ask before a dispatch. All arrays are in GPU memory,
 * and belong to the caller. */
typedef struct weft_moe_destinations {
  int tokens;
  int topk;    /* 1 .. 32 */
  int experts; /* ranks .. 4096 */
  int ranks;   /* 1 .. 64 */
  /* [tokens][topk]; what is no expert's is passed over, and an expert that a token names twice
   * counts once */
  const int64_t* topk_ids;
  int32_t* tokens_of_rank;   /* [ranks] */
  int32_t* tokens_of_expert; /* [experts] */
  uint8_t* is_in_rank;       /* [tokens][ranks]: 1, or 0 */
} weft_moe_destinations;

/* Fills the arrays, by one kernel. No exchange is needed. */
WEFT_EXPORT int weft_moe_count_destinations_on_stream(const weft_moe_destinations* destinations,
                                                      weft_stream_t stream);

/* Experts and weights of the rows of a WEFT_MOE_RANK_COMPACT dispatch, for programs that want ids
 * of 64 bits, rows beyond those that came marked, or counts by expert. All arrays are in GPU
 * memory, and belong to the caller. */
typedef struct weft_moe_row_routes {
  int rows; /* to be shown, also more than the dispatch has room for */
  /* [rows][topk]: local experts; -1 for those of other ranks, and in rows that did not come */
  int64_t* ids;
  float* weights; /* [rows][topk], 0 where the id is -1; or NULL */
  /* [local experts + 1]: the rows that name each expert, then those that came; or NULL */
  int64_t* counts;
} weft_moe_row_routes;

/* Fills `routes` from what a dispatch has left in `rows`, by one kernel behind it. */
WEFT_EXPORT int weft_moe_row_routes_on_stream(weft_moe_t exchange,
                                              const weft_moe_rows* rows,
                                              const weft_moe_row_routes* routes,
                                              weft_stream_t stream);

/* As weft_moe_refuse; the peers learn only that this PE refused, not the reason. */
WEFT_EXPORT int weft_moe_refuse_on_stream(weft_moe_t exchange,
                                          weft_moe_step step,
                                          weft_stream_t stream);

/* WEFT_OK, or the error that kernels which have ended found: WEFT_TIMEOUT (again with every later
 * call, with WEFT_MOE_ERROR), WEFT_MISMATCH or WEFT_INVALID_ARGUMENT (once). Synchronize the stream
 * first. */
WEFT_EXPORT int weft_moe_check(weft_moe_t exchange);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_MOE_H */
