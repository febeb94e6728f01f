/* Weft's teams and collectives. Included by <weft/weft.h>.
 *
 * A team is an ordered set of PEs: every stride-th PE of its parent, from a first one on. Its PEs are
 * numbered from 0. Collectives are called by one thread of each PE of the team, in the same order on
 * all; different teams are independent of each other.
 *
 * Completion: when a collective returns, this PE's `dest` is complete and its `source` may be changed.
 * It says nothing about other PEs, but sync does: all have entered. No collective completes the
 * operations of a context, but weft_barrier_all does (quiet, then sync).
 *
 * `dest` and `source` are symmetric, and do not overlap unless they are equal where that is said.
 *
 * Errors: as in weft.h. Counts, roots and operations must be the same on all PEs of the team. */
#ifndef WEFT_COLLECTIVES_H
#define WEFT_COLLECTIVES_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Teams --------------------------------------------------------------------------------------- */

typedef struct weft_team* weft_team_t;
/* All PEs; those of this PE's node; no team. */
#define WEFT_TEAM_WORLD ((weft_team_t)0)
#define WEFT_TEAM_NODE ((weft_team_t)1)
#define WEFT_TEAM_INVALID ((weft_team_t) - 1)

/* The PEs start, start + stride, ..., `size` of them, as numbered in the parent. Stride may be
 * negative; it may be 0 where size is 1. */
typedef struct weft_team_range {
  int start;
  int stride;
  int size;
} weft_team_range;

/* Collective over `parent`, with the same range on all its PEs. *team is WEFT_TEAM_INVALID on those that
 * are not in the range. WEFT_INVALID_ARGUMENT on all for a range that leaves the parent, and
 * WEFT_OUT_OF_MEMORY on all when a PE has no more room (64 teams at a time). */
WEFT_EXPORT int weft_team_split(weft_team_t parent, weft_team_range range, weft_team_t* team);
/* Collective over `parent`. PE p of the parent is at x = p % x_size, y = p / x_size: *x_team holds those of
 * its y, *y_team those of its x. */
WEFT_EXPORT int weft_team_split_2d(weft_team_t parent,
                                   int x_size,
                                   weft_team_t* x_team,
                                   weft_team_t* y_team);
/* Collective over the team. Its contexts (weft_team_context_create) are destroyed too. */
WEFT_EXPORT int weft_team_destroy(weft_team_t team);

/* This PE's number in the team and the team's size; -1 for WEFT_TEAM_INVALID. */
WEFT_EXPORT int weft_team_pe(weft_team_t team);
WEFT_EXPORT int weft_team_pe_count(weft_team_t team);
/* The number in `to` of the PE that is `pe` in `from`; -1 if it is not in both. */
WEFT_EXPORT int weft_team_translate(weft_team_t from, int pe, weft_team_t to);

/* A context whose PE numbers are the team's. */
WEFT_EXPORT int weft_team_context_create(weft_team_t team, weft_context_t* context);

/* ---- Collectives --------------------------------------------------------------------------------- */

/* All PEs of the team have entered. */
WEFT_EXPORT int weft_team_sync(weft_team_t team);

/* Block k of `source` goes to block `me` of `dest` on PE k. */
WEFT_EXPORT int weft_team_alltoall(weft_team_t team,
                                   void* dest,
                                   const void* source,
                                   size_t bytes_per_pe);
/* The same with blocks of stride.count elements, of which only every stride-th is moved: block k starts
 * at element k * count * stride of each side. */
WEFT_EXPORT int weft_team_alltoalls(weft_team_t team,
                                    void* dest,
                                    const void* source,
                                    weft_stride stride);
/* `source` of `root` (a PE of the team) goes to `dest` of all, its own included. */
WEFT_EXPORT int weft_team_broadcast(
    weft_team_t team, void* dest, const void* source, size_t bytes, int root);
/* The sources of all PEs one behind the other, to all. fcollect: all have the same length. */
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
  WEFT_AND = 1, /* bitwise, as the next two: integers only */
  WEFT_OR,
  WEFT_XOR,
  WEFT_MIN, /* not of complex numbers, as the next */
  WEFT_MAX,
  WEFT_SUM,
  WEFT_PROD
} weft_reduction;

/* Of how many elements of which type. */
typedef struct weft_elements {
  weft_type type;
  size_t count;
} weft_elements;

/* Element by element over all PEs, to all. `dest` may be `source`. The same team, count and data give the
 * same bits in every run and on every PE. */
WEFT_EXPORT int weft_team_reduce(weft_team_t team,
                                 void* dest,
                                 const void* source,
                                 weft_elements elements,
                                 weft_reduction reduction);

/* Element by element over PEs 0 to `me` of the team, or, exclusive, 0 to `me` - 1, of which there is none on PE 0:
 * it gets zeroes. `dest` may be `source`. The same bits in every run on the same PEs and nodes. */
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
