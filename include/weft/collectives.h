/* Weft's teams and collectives. Included by <weft/weft.h>.
 *
 * A team is an ordered set of PEs: every stride-th PE of its parent, starting at a given one, or
 * any PEs in any order (weft_team_join). Its PEs are numbered from 0. One thread of each PE of the
 * team calls a collective, in the same order on all PEs. Different teams are independent of each
 * other.
 *
 * Completion: when a collective returns, this PE's `dest` is complete and its `source` may be
 * changed. That implies nothing about other PEs, except for sync: all PEs have entered. No
 * collective completes the operations of a context, except weft_barrier_all (quiet, then sync).
 *
 * `dest` and `source` are symmetric. They must not overlap, unless a function allows them to be
 * equal.
 *
 * Errors: as in weft.h. Counts, roots and operations must be the same on all PEs of the team. */
#ifndef WEFT_COLLECTIVES_H
#define WEFT_COLLECTIVES_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Teams ----------------------------------------------------------------------------------- */

typedef struct weft_team* weft_team_t;
/* All PEs; the PEs of this PE's node; those of its machine, also if WEFT_NODE_SIZE makes several
 * nodes of it; the PEs with this PE's index on its machine, one of each machine; no team. */
#define WEFT_TEAM_WORLD ((weft_team_t)0)
#define WEFT_TEAM_NODE ((weft_team_t)1)
#define WEFT_TEAM_MACHINE ((weft_team_t)2)
#define WEFT_TEAM_MACHINE_PEERS ((weft_team_t)3)
#define WEFT_TEAM_INVALID ((weft_team_t) - 1)

/* The PEs start, start + stride, ..., `size` of them, in the parent's numbering. Stride may be
 * negative. It may be 0 if size is 1. */
typedef struct weft_team_range {
  int start;
  int stride;
  int size;
} weft_team_range;

/* Collective over `parent`, with the same range on all its PEs. *team is WEFT_TEAM_INVALID on PEs
 * that are not in the range. Returns, on all PEs, WEFT_INVALID_ARGUMENT if the range exceeds the
 * parent, and WEFT_OUT_OF_MEMORY if no number of a team is free on all PEs of the range: a PE has
 * 132, of which 4 are predefined. */
WEFT_EXPORT int weft_team_split(weft_team_t parent, weft_team_range range, weft_team_t* team);
/* Collective over `parent`. PE p of the parent is at x = p % x_size, y = p / x_size. *x_team
 * contains the PEs with its y, *y_team the PEs with its x. */
WEFT_EXPORT int weft_team_split_2d(weft_team_t parent,
                                   int x_size,
                                   weft_team_t* x_team,
                                   weft_team_t* y_team);

/* A team of any PEs, in any order, without a call on the other PEs. One of them makes an id and
 * passes it to the others by any means of the program; then each calls weft_team_join with its
 * place. An id is valid for one team. */
typedef struct weft_team_place {
  int index; /* this PE's number in the team */
  int pe_count;
} weft_team_place;

WEFT_EXPORT int weft_team_make_id(uint64_t* id);
/* Returns when all PEs of the team have called it, the one that made the id among them. One call at
 * a time per PE. In jobs of up to 4096 PEs. WEFT_INVALID_ARGUMENT: no such id or index;
 * WEFT_MISMATCH: two PEs have the same index, or counts differ; WEFT_OUT_OF_MEMORY as for
 * weft_team_split. */
WEFT_EXPORT int weft_team_join(uint64_t id, weft_team_place place, weft_team_t* team);
/* Collective over the team. Also destroys its contexts (weft_team_ctx_create). */
WEFT_EXPORT int weft_team_destroy(weft_team_t team);

/* This PE's number in the team and the team's size; -1 for WEFT_TEAM_INVALID. */
WEFT_EXPORT int weft_team_pe(weft_team_t team);
WEFT_EXPORT int weft_team_pe_count(weft_team_t team);
/* The number in `to` of the PE that is `pe` in `from`; -1 if it is not a member of both. */
WEFT_EXPORT int weft_team_translate(weft_team_t from, int pe, weft_team_t to);

/* A context that uses the team's PE numbers. */
WEFT_EXPORT int weft_team_ctx_create(weft_team_t team, weft_ctx_t* context);

/* ---- Notes ----------------------------------------------------------------------------------- */

/* Every PE gets the notes of all, for programs that compare what their PEs are about to do. `note`
 * has `bytes` bytes, at most 256 and the same on all PEs; `notes` has room for one of each PE, in
 * team order. Both are any memory. Collective; returns when all PEs have entered. */
WEFT_EXPORT int weft_team_exchange(weft_team_t team, const void* note, size_t bytes, void* notes);
/* Whether WEFT_CHECK_COLLECTIVES requests that before a collective of this team, on CPU memory: 2
 * for yes, 1 for auto if its PEs share memory, else 0. The C functions do not compare; Python's
 * do. */
WEFT_EXPORT int weft_team_check_level(weft_team_t team);

/* ---- Collectives ----------------------------------------------------------------------------- */

/* Returns when all PEs of the team have entered. */
WEFT_EXPORT int weft_team_sync(weft_team_t team);

/* Block k of `source` is copied to block `me` of `dest` on PE k. */
WEFT_EXPORT int weft_team_alltoall(weft_team_t team,
                                   void* dest,
                                   const void* source,
                                   size_t bytes_per_pe);
/* As weft_team_alltoall, with blocks of stride.count elements of which only every stride-th is
 * moved: block k starts at element k * count * stride on each side. */
WEFT_EXPORT int weft_team_alltoalls(weft_team_t team,
                                    void* dest,
                                    const void* source,
                                    weft_stride stride);
/* `source` of `root` (a PE of the team) is copied to `dest` of all PEs, including its own. */
WEFT_EXPORT int weft_team_broadcast(
    weft_team_t team, void* dest, const void* source, size_t bytes, int root);
/* The sources of all PEs, concatenated in team order, on all PEs. fcollect: all have the same
   length. */
WEFT_EXPORT int weft_team_fcollect(weft_team_t team, void* dest, const void* source, size_t bytes);
WEFT_EXPORT int weft_team_collect(weft_team_t team, void* dest, const void* source, size_t bytes);

typedef enum weft_type {
  WEFT_INT8 = 1,
  WEFT_INT16,
  WEFT_INT32,
  WEFT_INT64,
  WEFT_UINT8,
  WEFT_UINT16,
  WEFT_UINT32,
  WEFT_UINT64,
  WEFT_FLOAT,
  WEFT_DOUBLE,
  WEFT_LONG_DOUBLE,
  WEFT_COMPLEX_FLOAT,
  WEFT_COMPLEX_DOUBLE
} weft_type;

typedef enum weft_reduction {
  WEFT_AND = 1, /* bitwise, as are OR and XOR: integers only */
  WEFT_OR,
  WEFT_XOR,
  WEFT_MIN, /* not for complex types, nor is MAX */
  WEFT_MAX,
  WEFT_SUM,
  WEFT_PROD
} weft_reduction;

/* The type and number of elements. */
typedef struct weft_elements {
  weft_type type;
  size_t count;
} weft_elements;

/* Elementwise reduction over all PEs; all receive the result. `dest` may equal `source`. The result
 * is bitwise reproducible: the same team, count and data give the same bits in every run and on
 * every PE. */
WEFT_EXPORT int weft_team_reduce(weft_team_t team,
                                 void* dest,
                                 const void* source,
                                 weft_elements elements,
                                 weft_reduction reduction);

/* Elementwise scan over PEs 0 to `me` of the team (inclusive) or 0 to `me` - 1 (exclusive). PE 0 of
 * an exclusive scan gets zeroes. `dest` may equal `source`. The same bits in every run on the same
 * PEs and nodes. */
WEFT_EXPORT int weft_team_inclusive_scan(weft_team_t team,
                                         void* dest,
                                         const void* source,
                                         weft_elements elements,
                                         weft_reduction reduction);
WEFT_EXPORT int weft_team_exclusive_scan(weft_team_t team,
                                         void* dest,
                                         const void* source,
                                         weft_elements elements,
                                         weft_reduction reduction);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_COLLECTIVES_H */
