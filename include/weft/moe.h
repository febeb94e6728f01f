/* Expert parallelism for mixture-of-experts layers: dispatch sends every token's row once to each PE that owns one of
 * its experts, combine brings the experts' outputs back as one sum for each token. Link weft::weft.
 *
 * An exchange is made once for the PEs of a team (its ranks) and the largest sizes; then, on all of them and in the
 * same order, dispatch, combine, dispatch, ... Each is a send and a receive, between which the caller may compute. Rows
 * of PEs on this node are stored into their memory; to each other PE go at most two writes: a header with the first
 * rows, and the other rows. No call waits for its peers before it sends.
 *
 * Experts: 0 .. experts - 1. Each rank owns a run of them, the first experts % ranks ranks one more. An id of -1 is no
 * route. A token that names an expert twice has one row there.
 * Results are the same bits in every run: slots, rows and the order of sums follow from the ids alone.
 *
 * Errors: as in weft.h. If one rank's arguments are wrong, it takes part all the same (weft_moe_refuse), and all
 * others return WEFT_MISMATCH with its PE and its text. Who does not come within the timeout is named; then the
 * exchange is broken (WEFT_MOE_ERROR), or goes on without that PE (WEFT_MOE_MASK).
 *
 * An exchange of WEFT_MOE_DEVICE works in GPU memory, on streams; see "On a GPU" below.
 *
 * Threads: one at a time calls the functions of one exchange. docs/MOE.md is the guide. */
#ifndef WEFT_MOE_H
#define WEFT_MOE_H

#include <weft/device.h>
#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Exchange ------------------------------------------------------------------------------------ */

typedef struct weft_moe* weft_moe_t;
/* What combine needs to know of one dispatch. Own memory of this PE; valid until weft_moe_plan_free, for any number of
 * combines, also after later dispatches. */
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

/* What travels with a row of fp8 or nvfp4: value = code * scale. */
typedef enum weft_moe_scales {
  WEFT_MOE_SCALES_NONE = 0,
  WEFT_MOE_SCALES_F32,   /* fp8: a float for each 128 values */
  WEFT_MOE_SCALES_UE8M0, /* fp8: a power of two, one byte for each 128 values, rounded up */
  WEFT_MOE_SCALES_NVFP4 /* an e4m3 byte for each 16 values, then, at the next multiple of 4, a float for the row */
} weft_moe_scales;

/* How the received rows lie. */
typedef enum weft_moe_layout {
  WEFT_MOE_RANK_MAJOR =
      1, /* [ranks][max_tokens]: where they arrived, without a copy; counts[ranks] */
  WEFT_MOE_RANK_COMPACT,  /* [rows]: by source rank, then slot, no gaps; counts[ranks] */
  WEFT_MOE_EXPERT_PADDED, /* [local experts][ranks * max_tokens]; counts[local experts] */
  WEFT_MOE_EXPERT_COMPACT /* [rows]: by local expert, each from a multiple of `alignment`; zeros between them */
} weft_moe_layout;

typedef enum weft_moe_on_timeout {
  WEFT_MOE_ERROR =
      0,        /* the call returns WEFT_TIMEOUT, and so does every later one of this exchange */
  WEFT_MOE_MASK /* the PEs that are missing count as lost: their rows are left out, from now on */
} weft_moe_on_timeout;

/* What a row is sent to between nodes. */
typedef enum weft_moe_row_per {
  WEFT_MOE_ROW_PER_AUTO = 0, /* NODE on CPUs, where nodes have several ranks; else RANK */
  WEFT_MOE_ROW_PER_RANK,     /* to each rank that owns one of its experts */
  WEFT_MOE_ROW_PER_NODE /* once to each node, where all ranks read it; a sum comes back as one row for each node. In
        * GPU memory: expert layouts with WEFT_MOE_ERROR alone, and a row comes back from each rank */
} weft_moe_row_per;

typedef enum weft_moe_memory { WEFT_MOE_HOST = 0, WEFT_MOE_DEVICE } weft_moe_memory;

typedef struct weft_moe_config {
  weft_team_t team; /* its PEs are the ranks; WEFT_TEAM_INVALID on a PE that has no part */
  int max_tokens;   /* of one PE in one dispatch */
  int hidden;       /* values in a row; the bytes of a row are a multiple of 16 */
  int experts;      /* at least one for each rank, at most 4096 */
  int topk;         /* 1 .. 32 */
  weft_moe_type payload;
  weft_moe_scales scales;
  weft_moe_type output; /* of combine: BF16, F16, F32 or F64 */
  weft_moe_layout layout;
  int alignment;    /* rows; of WEFT_MOE_EXPERT_COMPACT */
  double timeout_s; /* of each receive */
  weft_moe_on_timeout on_timeout;
  weft_moe_memory memory; /* of WEFT_MOE_DEVICE: after weft_device_init */
  weft_moe_row_per row_per;
  int blocks; /* WEFT_MOE_DEVICE: of 512 threads, at most; 0: as many as the GPU has multiprocessors. May differ. */
} weft_moe_config;

/* Collective over all PEs of the job, each with its own team; the fields are equal on the PEs of one team. On
 * PEs without a part *exchange is good for weft_moe_destroy alone. Takes symmetric memory: about 2 (WEFT_MOE_RANK_MAJOR: 3) * ranks * max_tokens rows of a dispatch, and
 * 2 * max_tokens * topk of a combine. */
WEFT_EXPORT int weft_moe_create(const weft_moe_config* config, weft_moe_t* exchange);
/* Collective over all PEs of the job. NULL is accepted. Plans stay valid. */
WEFT_EXPORT int weft_moe_destroy(weft_moe_t exchange);

typedef struct weft_moe_shape {
  int rank; /* this PE in the team */
  int ranks;
  int first_expert;
  int local_experts;
  size_t payload_bytes; /* of a row of x */
  size_t scale_bytes;   /* of a row of scales */
  size_t rows_max;      /* of a received x */
  void*
      memory; /* the symmetric memory of the exchange: what WEFT_MOE_RANK_MAJOR shows lies in it */
  size_t memory_bytes;
  size_t plan_bytes; /* WEFT_MOE_DEVICE: of the memory for a plan */
} weft_moe_shape;

WEFT_EXPORT int weft_moe_get_shape(weft_moe_t exchange, weft_moe_shape* shape);

/* ---- Dispatch ------------------------------------------------------------------------------------ */

typedef struct weft_moe_tokens {
  int count; /* 0 .. max_tokens */
  /* [count][hidden] of the payload's type, or, for fp8 and nvfp4, of BF16, F16 or F32, which are then quantised. */
  const void* x;
  weft_moe_type type;
  const void* scales; /* [count][scale_bytes] for a payload that is quantised already, else NULL */
  const int64_t* topk_ids;   /* [count][topk] */
  const float* topk_weights; /* [count][topk], or NULL: then combine gets them */
} weft_moe_tokens;

/* Sends this PE's tokens. When it returns, all arrays may be reused. The memory of the dispatch before the last one is
 * written again by the peers: the rows of a WEFT_MOE_RANK_MAJOR result live until the next dispatch but one. */
WEFT_EXPORT int weft_moe_dispatch_send(weft_moe_t exchange, const weft_moe_tokens* tokens);

/* The received rows. Strides are in bytes. WEFT_MOE_RANK_MAJOR sets all addresses but `counts`; the other layouts fill
 * memory of the caller for `rows_max` rows, packed. Rows beyond the counts are undefined, where not said otherwise. */
typedef struct weft_moe_rows {
  void* x;
  void* scales; /* not touched without scales */
  int32_t*
      ids; /* [row][topk], rank layouts only: local experts, -1 for those of other ranks and for empty slots */
  float*
      weights; /* [row][topk] in rank layouts, else [row]: the sum of the weights of the lanes of that expert */
  size_t x_stride;
  size_t scales_stride;
  size_t ids_stride;
  size_t weights_stride;
  int32_t* counts; /* of the caller: rows of each local expert, or of each rank */
  int64_t*
      offsets; /* of the caller, one more than counts: where each begins, in rows; the last: the number of rows */
} weft_moe_rows;

WEFT_EXPORT int weft_moe_dispatch_recv(weft_moe_t exchange,
                                       weft_moe_rows* rows,
                                       weft_moe_plan_t* plan);
WEFT_EXPORT void weft_moe_plan_free(weft_moe_plan_t plan);

/* For each row of x of the dispatch of `plan`: the rank that it came from, and the token's number there; -1 for rows that
 * no token came for. ranks, tokens: [rows_max] of the caller. */
WEFT_EXPORT int weft_moe_sources(weft_moe_t exchange,
                                 weft_moe_plan_t plan,
                                 int32_t* ranks,
                                 int32_t* tokens);

/* ---- Combine ------------------------------------------------------------------------------------- */

typedef enum weft_moe_precision {
  WEFT_MOE_REDUCED =
      1, /* summed in float on the expert's rank in the order of lanes, rounded, summed in rank order; of ranks of
        * another node, with WEFT_MOE_ROW_PER_NODE: summed there in rank order, and rounded only then */
  WEFT_MOE_EXACT, /* every expert's row travels; summed in float in the order of lanes, rounded once */
  WEFT_MOE_LANES, /* every expert's row travels; `out` is [tokens][topk][hidden], without weights or sums */
  WEFT_MOE_FP8 /* as WEFT_MOE_REDUCED, but what travels is rounded to fp8 e4m3, with a float scale for each 128 values:
        * half the bytes of BF16. Output BF16, F16 or F32; hidden a multiple of 16 */
} weft_moe_precision;

typedef enum weft_moe_weighting {
  WEFT_MOE_WEIGHTS_OF_DISPATCH = 1,
  WEFT_MOE_WEIGHTS_GIVEN, /* `topk_weights` of this call */
  WEFT_MOE_UNWEIGHTED /* each row counts once. Always so in rank layouts, whose rows the caller has reduced */
} weft_moe_weighting;

typedef struct weft_moe_outputs {
  const void* rows; /* of the type `output`, where dispatch put the rows that they belong to */
  size_t stride;    /* bytes from row to row; 0: packed */
  weft_moe_precision precision;
  weft_moe_weighting weighting;
  const float* topk_weights; /* [tokens][topk] */
} weft_moe_outputs;

/* Sends the experts' rows back. When it returns, `rows` may be reused. With WEFT_MOE_WEIGHTS_GIVEN and
 * WEFT_MOE_REDUCED it waits for the peers' weights, within the timeout. */
WEFT_EXPORT int weft_moe_combine_send(weft_moe_t exchange,
                                      weft_moe_plan_t plan,
                                      const weft_moe_outputs* outputs);
/* out: [tokens][hidden] of the type `output`; tokens without a route are zeros. */
WEFT_EXPORT int weft_moe_combine_recv(weft_moe_t exchange, void* out);

/* ---- Failures ------------------------------------------------------------------------------------ */

typedef enum weft_moe_step { WEFT_MOE_DISPATCH = 1, WEFT_MOE_COMBINE } weft_moe_step;

/* In place of a send and a receive whose arguments this PE cannot use: the peers' calls return WEFT_MISMATCH with its PE
 * and `text`, whatever call they make at this place. Waits until they do, so that later calls find all ranks in step. The
 * other functions do so by themselves; this one is for arguments that a caller checks. */
WEFT_EXPORT int weft_moe_refuse(weft_moe_t exchange, weft_moe_step step, const char* text);

/* active[rank]: 1, or 0 for a rank that did not come (WEFT_MOE_MASK) or was left out. As this PE saw it. */
WEFT_EXPORT int weft_moe_active(weft_moe_t exchange, uint8_t* active);

/* This PE goes on without `rank`, as if it had not come (WEFT_MOE_MASK). Between calls; all other ranks do the same at the
 * same place. On a GPU: synchronize the stream first. */
WEFT_EXPORT int weft_moe_leave_out(weft_moe_t exchange, int rank);

/* Collective over all ranks, also those that were late or left out: they are in step again, and nobody is missing. What a
 * rank had begun is dropped; results that are read in place end on ranks that were behind. A broken exchange works again.
 * Needs every rank's process: one that died cannot come back. On a GPU: synchronize the streams first, and capture
 * graphs anew in WEFT_MOE_RANK_MAJOR. */
WEFT_EXPORT int weft_moe_rejoin(weft_moe_t exchange);

/* ---- On a GPU ------------------------------------------------------------------------------------ *
 * Exchanges of WEFT_MOE_DEVICE. Ranks of one node have each other's GPU memory mapped (NVLink, PCIe):
 * weft_moe_create is WEFT_INVALID_ARGUMENT or WEFT_MISMATCH on all PEs if one has not. To other nodes rows are
 * put; then combine supports WEFT_MOE_REDUCED and WEFT_MOE_FP8 alone.
 *
 * Rows, ids, weights, scales, counts, offsets, plans and sums are in memory of this GPU; x, rows and
 * out at multiples of 16 bytes. Each call enqueues one kernel (two for more than 2,048 ids) and returns; the kernel
 * takes the number of the call from GPU memory, so calls can be captured in a CUDA graph and replayed. Calls of one
 * exchange follow each other in stream order: join different streams by events.
 *
 * What only a kernel sees, a rank that does not come, that refuses, or an id that is no expert's, is the error of
 * weft_moe_check and of the next call. Until then a missing rank counts as one that sends nothing, and such an id as -1;
 * no kernel waits longer than the timeout. */

typedef enum weft_moe_phase { WEFT_MOE_BOTH = 0, WEFT_MOE_SEND, WEFT_MOE_RECEIVE } weft_moe_phase;

/* As weft_moe_dispatch_send and weft_moe_dispatch_recv. `tokens` and the arrays it names are used by the send, which
 * has read them when the stream gets there; `rows` by the receive, except that the send needs none. `plan`: shape's
 * plan_bytes of GPU memory, 16-byte aligned, the same for both phases, written by both; as long as it is not written
 * again, it is good for any number of combines. A rank of WEFT_MOE_RANK_MAJOR sets the addresses in `rows` at once. */
WEFT_EXPORT int weft_moe_dispatch_on_stream(weft_moe_t exchange,
                                            weft_moe_phase phase,
                                            const weft_moe_tokens* tokens,
                                            weft_moe_rows* rows,
                                            void* plan,
                                            weft_stream_t stream);

/* As weft_moe_combine_send and weft_moe_combine_recv. Both phases get the same `outputs`; `out` is for the receive. */
WEFT_EXPORT int weft_moe_combine_on_stream(weft_moe_t exchange,
                                           weft_moe_phase phase,
                                           void* plan,
                                           const weft_moe_outputs* outputs,
                                           void* out,
                                           weft_stream_t stream);

/* As weft_moe_sources. */
WEFT_EXPORT int weft_moe_sources_on_stream(
    weft_moe_t exchange, const void* plan, int32_t* ranks, int32_t* tokens, weft_stream_t stream);

/* As weft_moe_refuse; the peers hear only that this PE refused. */
WEFT_EXPORT int weft_moe_refuse_on_stream(weft_moe_t exchange,
                                          weft_moe_step step,
                                          weft_stream_t stream);

/* WEFT_OK, or what the kernels that have ended found: WEFT_TIMEOUT (again with every later call, with WEFT_MOE_ERROR),
 * WEFT_MISMATCH or WEFT_INVALID_ARGUMENT (once). Synchronize the stream first. */
WEFT_EXPORT int weft_moe_check(weft_moe_t exchange);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_MOE_H */
