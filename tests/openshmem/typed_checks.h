/* The checks of one typed function, for the generated tests: each is a macro over a type and the
 * names of the function without and with a context, so that C99 names, C11 generics and C++ share
 * them.
 *
 * A *route* is a way to a PE: without a context, on the default one, on a created one and on that
 * of a team (the world backwards), each to this PE and to its right neighbour. Route r writes to
 * place r of the target; the owner of a value is found from its PE, route and position by
 * TYPED_VALUE.
 *
 * Included by one file of a program. Collective: all PEs make the same checks in the same order. */
#ifndef WEFT_OPENSHMEM_TYPED_CHECKS_H
#define WEFT_OPENSHMEM_TYPED_CHECKS_H

#include "tests/openshmem/suite.h"

#ifdef TYPED_WITHOUT_CONTEXTS /* in tests/nvshmem: NVSHMEM has none */
#define TYPED_ROUTE_COUNT 2
#else
#define TYPED_ROUTE_COUNT 8
#endif

enum {
  TYPED_ROUTES = TYPED_ROUTE_COUNT,
  TYPED_COUNT = 7,    /* elements that are moved */
  TYPED_GUARD = 3,    /* elements before them that must stay */
  TYPED_AREA = 24,    /* elements of a place: guard, what is moved with its gaps, guard */
  TYPED_POISON = 113, /* no value */
  TYPED_BUFFER_BYTES = 32768
};

static shmem_team_t typed_backwards; /* the world, numbered from the end */
static char* typed_source;
static char* typed_target;
static uint64_t* typed_signals;
static int typed_salt; /* counts the checks, so that no two move the same values */

/* Where a route leads, from whom it comes, and on what. */
static inline int typed_to(int route) {
  return route % 2 ? suite_right() : suite_me;
}

static inline int typed_from(int route) {
  return route % 2 ? suite_left() : suite_me;
}

#ifdef TYPED_WITHOUT_CONTEXTS /* the first two routes */

#define TYPED_CALL(NAME, CTX_NAME, ...) NAME(__VA_ARGS__, typed_to(route))

static inline void typed_open_contexts(void) {}

static inline void typed_close_contexts(void) {}

static inline void typed_quiet(void) {
  shmem_quiet();
}

#else

static shmem_ctx_t typed_created_context;
static shmem_ctx_t typed_team_context;
static long* typed_sync;

/* The call without a context on the first two routes, and with the route's on the others. */
#define TYPED_CALL(NAME, CTX_NAME, ...)               \
  (route < 2 ? NAME(__VA_ARGS__, typed_number(route)) \
             : CTX_NAME(typed_context(route), __VA_ARGS__, typed_number(route)))

static inline int typed_number(int route) {
  return route / 2 == 3 ? suite_pe_count - 1 - typed_to(route) : typed_to(route);
}

static inline shmem_ctx_t typed_context(int route) {
  const shmem_ctx_t contexts[4] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_DEFAULT, typed_created_context,
                                   typed_team_context};
  return contexts[route / 2];
}

static inline void typed_open_contexts(void) {
  EXPECT_EQUAL(0, shmem_ctx_create(0, &typed_created_context));
  EXPECT_EQUAL(0, shmem_team_create_ctx(typed_backwards, 0, &typed_team_context));
  typed_sync = (long*)shmem_malloc(SHMEM_SYNC_SIZE * sizeof(long));
  for (int i = 0; i < SHMEM_SYNC_SIZE; ++i) {
    typed_sync[i] = SHMEM_SYNC_VALUE;
  }
}

static inline void typed_close_contexts(void) {
  shmem_free(typed_sync);
  shmem_ctx_destroy(typed_team_context);
  shmem_ctx_destroy(typed_created_context);
}

static inline void typed_quiet(void) {
  shmem_quiet();
  shmem_ctx_quiet(typed_created_context);
  shmem_ctx_quiet(typed_team_context);
}

#endif

static inline void typed_open(void) {
  EXPECT_EQUAL(0, shmem_team_split_strided(SHMEM_TEAM_WORLD, suite_pe_count - 1, -1, suite_pe_count,
                                           NULL, 0, &typed_backwards));
  typed_source = (char*)shmem_malloc(TYPED_BUFFER_BYTES);
  typed_target = (char*)shmem_malloc(TYPED_BUFFER_BYTES);
  typed_signals = (uint64_t*)shmem_calloc(TYPED_ROUTES, sizeof(uint64_t));
  typed_open_contexts();
  shmem_barrier_all();
}

static inline void typed_close(void) {
  typed_close_contexts();
  shmem_free(typed_signals);
  shmem_free(typed_target);
  shmem_free(typed_source);
  shmem_team_destroy(typed_backwards);
}

/* 1 to 100: fits every type, and no float rounds it. */
static inline int typed_value(int pe, int route, int position) {
  const uint64_t seed =
      ((uint64_t)typed_salt << 32) + (uint64_t)(pe * 100000 + route * 1000 + position);
  return 1 + (int)(suite_random_of(seed) % 100);
}

#define TYPED_VALUE(TYPE, pe, route, position) ((TYPE)typed_value((pe), (route), (position)))

#define TYPED_EQUAL(TEXT, expected, got)                                                  \
  do {                                                                                    \
    if (!((expected) == (got))) {                                                         \
      suite_expect_equal(SUITE_PLACE(TEXT), (long double)(expected), (long double)(got)); \
    }                                                                                     \
  } while (0)

#define TYPED_EACH_ROUTE for (int route = 0; route < TYPED_ROUTES; ++route)

#define TYPED_FILL_POISON(TYPE, array, count)  \
  for (int spot = 0; spot < (count); ++spot) { \
    (array)[spot] = (TYPE)TYPED_POISON;        \
  }

/* A place holds what PE `pe` sent at the strides, and poison elsewhere. */
#define TYPED_VERIFY(TYPE, TEXT, place, pe, its_route, stride, source_stride)                      \
  for (int spot = 0; spot < TYPED_AREA; ++spot) {                                                  \
    const int offset = spot - TYPED_GUARD;                                                         \
    const int is_moved = offset >= 0 && offset % (stride) == 0 && offset / (stride) < TYPED_COUNT; \
    const TYPE expected =                                                                          \
        is_moved ? TYPED_VALUE(TYPE, pe, its_route, offset / (stride) * (source_stride))           \
                 : (TYPE)TYPED_POISON;                                                             \
    TYPED_EQUAL(TEXT, expected, (place)[spot]);                                                    \
  }

/* ---- 9.6 RMA --------------------------------------------------------------------------------- */

#define TYPED_PUT(TYPE, TEXT, stride, source_stride, CALL)                                    \
  do {                                                                                        \
    TYPE* target = (TYPE*)typed_target;                                                       \
    TYPE source[TYPED_ROUTES][TYPED_AREA];                                                    \
    TYPED_FILL_POISON(TYPE, target, TYPED_ROUTES * TYPED_AREA)                                \
    TYPED_EACH_ROUTE {                                                                        \
      typed_signals[route] = 0;                                                               \
      for (int spot = 0; spot < TYPED_AREA; ++spot) {                                         \
        source[route][spot] = TYPED_VALUE(TYPE, suite_me, route, spot);                       \
      }                                                                                       \
    }                                                                                         \
    shmem_barrier_all();                                                                      \
    TYPED_EACH_ROUTE {                                                                        \
      TYPE* to = target + route * TYPED_AREA + TYPED_GUARD;                                   \
      const TYPE* from = source[route];                                                       \
      CALL;                                                                                   \
    }                                                                                         \
    typed_quiet();                                                                            \
    shmem_sync_all();                                                                         \
    TYPED_EACH_ROUTE {                                                                        \
      TYPED_VERIFY(TYPE, TEXT, target + route * TYPED_AREA, typed_from(route), route, stride, \
                   source_stride)                                                             \
    }                                                                                         \
    ++typed_salt;                                                                             \
  } while (0)

#define CHECK_PUT(TYPE, NAME, CTX_NAME) \
  TYPED_PUT(TYPE, #NAME " " #TYPE, 1, 1, TYPED_CALL(NAME, CTX_NAME, to, from, TYPED_COUNT))
#define CHECK_IPUT(TYPE, NAME, CTX_NAME) \
  TYPED_PUT(TYPE, #NAME " " #TYPE, 2, 3, TYPED_CALL(NAME, CTX_NAME, to, from, 2, 3, TYPED_COUNT))

/* Blocks of one element, and one block of all. */
#define CHECK_IBPUT(TYPE, NAME, CTX_NAME)                                                          \
  do {                                                                                             \
    TYPED_PUT(TYPE, #NAME " " #TYPE, 2, 3,                                                         \
              TYPED_CALL(NAME, CTX_NAME, to, from, 2, 3, 1, TYPED_COUNT));                         \
    TYPED_PUT(TYPE, #NAME " " #TYPE, 1, 1,                                                         \
              TYPED_CALL(NAME, CTX_NAME, to, from, TYPED_COUNT, TYPED_COUNT + 2, TYPED_COUNT, 1)); \
  } while (0)

/* Single elements, one after the other. */
#define CHECK_P(TYPE, NAME, CTX_NAME) \
  TYPED_PUT(                          \
      TYPE, #NAME " " #TYPE, 1, 1,    \
      for (int i = 0; i < TYPED_COUNT; ++i) { TYPED_CALL(NAME, CTX_NAME, to + i, from[i]); })

/* The data must be there when the signal is: it is verified before anything else orders it. */
#define CHECK_PUT_SIGNAL(TYPE, NAME, CTX_NAME)                                                \
  TYPED_PUT(                                                                                  \
      TYPE, #NAME " " #TYPE, 1, 1,                                                            \
      TYPED_CALL(NAME, CTX_NAME, to, from, TYPED_COUNT, &typed_signals[route],                \
                 (uint64_t)(5 + route), route % 4 < 2 ? SHMEM_SIGNAL_SET : SHMEM_SIGNAL_ADD); \
      TYPED_AWAIT_SIGNAL(TYPE, #NAME " " #TYPE))

#define TYPED_AWAIT_SIGNAL(TYPE, TEXT)                                          \
  TYPED_EQUAL(TEXT, (uint64_t)(5 + route),                                      \
              shmem_signal_wait_until(&typed_signals[route], SHMEM_CMP_NE, 0)); \
  TYPED_VERIFY(TYPE, TEXT, target + route * TYPED_AREA, typed_from(route), route, 1, 1)

#define TYPED_GET(TYPE, TEXT, stride, source_stride, CALL)                               \
  do {                                                                                   \
    TYPE* from = (TYPE*)typed_source;                                                    \
    TYPE target[TYPED_ROUTES][TYPED_AREA];                                               \
    for (int spot = 0; spot < TYPED_AREA; ++spot) {                                      \
      from[spot] = TYPED_VALUE(TYPE, suite_me, 0, spot);                                 \
    }                                                                                    \
    shmem_barrier_all();                                                                 \
    TYPED_EACH_ROUTE {                                                                   \
      TYPE* to = target[route] + TYPED_GUARD;                                            \
      TYPED_FILL_POISON(TYPE, target[route], TYPED_AREA)                                 \
      CALL;                                                                              \
    }                                                                                    \
    typed_quiet();                                                                       \
    TYPED_EACH_ROUTE {                                                                   \
      TYPED_VERIFY(TYPE, TEXT, target[route], typed_to(route), 0, stride, source_stride) \
    }                                                                                    \
    ++typed_salt;                                                                        \
    shmem_barrier_all(); /* nobody fills what another still reads */                     \
  } while (0)

#define CHECK_GET(TYPE, NAME, CTX_NAME) \
  TYPED_GET(TYPE, #NAME " " #TYPE, 1, 1, TYPED_CALL(NAME, CTX_NAME, to, from, TYPED_COUNT))
#define CHECK_IGET(TYPE, NAME, CTX_NAME) \
  TYPED_GET(TYPE, #NAME " " #TYPE, 2, 3, TYPED_CALL(NAME, CTX_NAME, to, from, 2, 3, TYPED_COUNT))
#define CHECK_IBGET(TYPE, NAME, CTX_NAME)                                                          \
  do {                                                                                             \
    TYPED_GET(TYPE, #NAME " " #TYPE, 2, 3,                                                         \
              TYPED_CALL(NAME, CTX_NAME, to, from, 2, 3, 1, TYPED_COUNT));                         \
    TYPED_GET(TYPE, #NAME " " #TYPE, 1, 1,                                                         \
              TYPED_CALL(NAME, CTX_NAME, to, from, TYPED_COUNT + 1, TYPED_COUNT, TYPED_COUNT, 1)); \
  } while (0)
#define CHECK_G(TYPE, NAME, CTX_NAME) \
  TYPED_GET(                          \
      TYPE, #NAME " " #TYPE, 1, 1,    \
      for (int i = 0; i < TYPED_COUNT; ++i) { to[i] = TYPED_CALL(NAME, CTX_NAME, from + i); })

/* ---- 9.7 AMO --------------------------------------------------------------------------------- */

/* One word a route, with `start` in it; CALL updates it with `value`, and RESULT must be in it
 * afterwards. If it fetches, old[route] must be `start`. */
#define TYPED_AMO(TYPE, TEXT, fetches, RESULT, CALL)                     \
  do {                                                                   \
    TYPE* words = (TYPE*)typed_target + 1;                               \
    TYPE old[TYPED_ROUTES];                                              \
    words[-1] = words[TYPED_ROUTES] = (TYPE)TYPED_POISON;                \
    TYPED_EACH_ROUTE {                                                   \
      words[route] = TYPED_VALUE(TYPE, suite_me, route, 0);              \
    }                                                                    \
    shmem_barrier_all();                                                 \
    TYPED_EACH_ROUTE {                                                   \
      TYPE* word = &words[route];                                        \
      const TYPE start = TYPED_VALUE(TYPE, typed_to(route), route, 0);   \
      const TYPE value = TYPED_VALUE(TYPE, suite_me, route, 1);          \
      old[route] = (fetches) ? (TYPE)TYPED_POISON : start;               \
      (void)value;                                                       \
      CALL;                                                              \
      (void)word;                                                        \
    }                                                                    \
    typed_quiet();                                                       \
    shmem_sync_all();                                                    \
    TYPED_EACH_ROUTE {                                                   \
      const TYPE start = TYPED_VALUE(TYPE, suite_me, route, 0);          \
      const TYPE value = TYPED_VALUE(TYPE, typed_from(route), route, 1); \
      const TYPE result = (TYPE)(RESULT);                                \
      const TYPE fetched = TYPED_VALUE(TYPE, typed_to(route), route, 0); \
      (void)start;                                                       \
      (void)value;                                                       \
      TYPED_EQUAL(TEXT, result, words[route]);                           \
      TYPED_EQUAL(TEXT, fetched, old[route]);                            \
    }                                                                    \
    TYPED_EQUAL(TEXT, (TYPE)TYPED_POISON, words[-1]);                    \
    TYPED_EQUAL(TEXT, (TYPE)TYPED_POISON, words[TYPED_ROUTES]);          \
    ++typed_salt;                                                        \
  } while (0)

#define CHECK_FETCH(TYPE, NAME, CTX_NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, start, old[route] = TYPED_CALL(NAME, CTX_NAME, word))
#define CHECK_FETCH_NBI(TYPE, NAME, CTX_NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, start, TYPED_CALL(NAME, CTX_NAME, &old[route], word))
#define CHECK_SET(TYPE, NAME, CTX_NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 0, value, TYPED_CALL(NAME, CTX_NAME, word, value))
#define CHECK_SWAP(TYPE, NAME, CTX_NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, value, old[route] = TYPED_CALL(NAME, CTX_NAME, word, value))
#define CHECK_SWAP_NBI(TYPE, NAME, CTX_NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, value, TYPED_CALL(NAME, CTX_NAME, &old[route], word, value))

#define CHECK_INC(TYPE, NAME, CTX_NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 0, start + 1, TYPED_CALL(NAME, CTX_NAME, word))
#define CHECK_FETCH_INC(TYPE, NAME, CTX_NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, start + 1, old[route] = TYPED_CALL(NAME, CTX_NAME, word))
#define CHECK_FETCH_INC_NBI(TYPE, NAME, CTX_NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, start + 1, TYPED_CALL(NAME, CTX_NAME, &old[route], word))

/* OP is an operator of C. */
#define CHECK_UPDATE(TYPE, NAME, CTX_NAME, OP) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 0, start OP value, TYPED_CALL(NAME, CTX_NAME, word, value))
#define CHECK_FETCH_UPDATE(TYPE, NAME, CTX_NAME, OP)  \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, start OP value, \
            old[route] = TYPED_CALL(NAME, CTX_NAME, word, value))
#define CHECK_FETCH_UPDATE_NBI(TYPE, NAME, CTX_NAME, OP) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, start OP value,    \
            TYPED_CALL(NAME, CTX_NAME, &old[route], word, value))

/* The condition holds on every other pair of routes. */
#define TYPED_CONDITION(TYPE) ((TYPE)(route & 2 ? start : (TYPE)TYPED_POISON))
#define CHECK_COMPARE_SWAP(TYPE, NAME, CTX_NAME)                 \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, route & 2 ? value : start, \
            old[route] = TYPED_CALL(NAME, CTX_NAME, word, TYPED_CONDITION(TYPE), value))
#define CHECK_COMPARE_SWAP_NBI(TYPE, NAME, CTX_NAME)             \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, route & 2 ? value : start, \
            TYPED_CALL(NAME, CTX_NAME, &old[route], word, TYPED_CONDITION(TYPE), value))

/* Without the forms on a context: the deprecated names. */
#define TYPED_PLAIN(NAME, ...) NAME(__VA_ARGS__, typed_to(route))
#define CHECK_OLD_FETCH(TYPE, NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, start, old[route] = TYPED_PLAIN(NAME, word))
#define CHECK_OLD_SET(TYPE, NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 0, value, TYPED_PLAIN(NAME, word, value))
#define CHECK_OLD_SWAP(TYPE, NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, value, old[route] = TYPED_PLAIN(NAME, word, value))
#define CHECK_OLD_INC(TYPE, NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 0, start + 1, TYPED_PLAIN(NAME, word))
#define CHECK_OLD_FETCH_INC(TYPE, NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, start + 1, old[route] = TYPED_PLAIN(NAME, word))
#define CHECK_OLD_ADD(TYPE, NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 0, start + value, TYPED_PLAIN(NAME, word, value))
#define CHECK_OLD_FETCH_ADD(TYPE, NAME) \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, start + value, old[route] = TYPED_PLAIN(NAME, word, value))
#define CHECK_OLD_COMPARE_SWAP(TYPE, NAME)                       \
  TYPED_AMO(TYPE, #NAME " " #TYPE, 1, route & 2 ? value : start, \
            old[route] = TYPED_PLAIN(NAME, word, TYPED_CONDITION(TYPE), value))

/* ---- 9.9 collectives ------------------------------------------------------------------------- */

/* On the world and on the world backwards; `me` is this PE's number in the team. EXPECTED is what
 * must be at `position` of the target, for `count` positions; poison follows. */
#define TYPED_COLLECTIVE(TYPE, TEXT, source_count, count, EXPECTED, CALL) \
  for (int which = 0; which < 2; ++which) {                               \
    const shmem_team_t team = which ? typed_backwards : SHMEM_TEAM_WORLD; \
    const int me = which ? suite_pe_count - 1 - suite_me : suite_me;      \
    const int size = suite_pe_count;                                      \
    TYPE* from = (TYPE*)typed_source;                                     \
    TYPE* to = (TYPE*)typed_target;                                       \
    for (int spot = 0; spot < (source_count); ++spot) {                   \
      from[spot] = TYPED_VALUE(TYPE, me, which, spot);                    \
    }                                                                     \
    TYPED_FILL_POISON(TYPE, to, (count) + TYPED_GUARD)                    \
    shmem_barrier_all();                                                  \
    (void)size;                                                           \
    TYPED_EQUAL(TEXT, 0, CALL);                                           \
    for (int position = 0; position < (count); ++position) {              \
      const TYPE expected = (TYPE)(EXPECTED);                             \
      TYPED_EQUAL(TEXT, expected, to[position]);                          \
    }                                                                     \
    TYPED_EQUAL(TEXT, (TYPE)TYPED_POISON, to[count]);                     \
    ++typed_salt;                                                         \
  }

#define CHECK_BROADCAST(TYPE, NAME)                                 \
  TYPED_COLLECTIVE(TYPE, #NAME " " #TYPE, TYPED_COUNT, TYPED_COUNT, \
                   TYPED_VALUE(TYPE, size / 2, which, position),    \
                   NAME(team, to, from, TYPED_COUNT, size / 2))
#define CHECK_FCOLLECT(TYPE, NAME)                                                           \
  TYPED_COLLECTIVE(TYPE, #NAME " " #TYPE, TYPED_COUNT, TYPED_COUNT* size,                    \
                   TYPED_VALUE(TYPE, position / TYPED_COUNT, which, position % TYPED_COUNT), \
                   NAME(team, to, from, TYPED_COUNT))
/* PE k gives 2 elements if k is even, and 5 if it is odd: 7 every two PEs. */
#define CHECK_COLLECT(TYPE, NAME)                                                    \
  TYPED_COLLECTIVE(TYPE, #NAME " " #TYPE, 5, size / 2 * 7 + size % 2 * 2,            \
                   TYPED_VALUE(TYPE, position / 7 * 2 + (position % 7 >= 2), which,  \
                               position % 7 >= 2 ? position % 7 - 2 : position % 7), \
                   NAME(team, to, from, me % 2 ? 5U : 2U))
#define CHECK_ALLTOALL(TYPE, NAME)                                                \
  TYPED_COLLECTIVE(TYPE, #NAME " " #TYPE, 3 * size, 3 * size,                     \
                   TYPED_VALUE(TYPE, position / 3, which, 3 * me + position % 3), \
                   NAME(team, to, from, 3))
#define CHECK_ALLTOALLS(TYPE, NAME)                                                               \
  TYPED_COLLECTIVE(TYPE, #NAME " " #TYPE, 9 * size, 6 * size,                                     \
                   position % 2                                                                   \
                       ? (TYPE)TYPED_POISON                                                       \
                       : TYPED_VALUE(TYPE, position / 6, which, 3 * (3 * me + position / 2 % 3)), \
                   NAME(team, to, from, 2, 3, 3))

/* ---- Reductions ------------------------------------------------------------------------------ */

#define COMBINE_AND(a, b) ((a) & (b))
#define COMBINE_OR(a, b) ((a) | (b))
#define COMBINE_XOR(a, b) ((a) ^ (b))
#define COMBINE_MAX(a, b) ((a) > (b) ? (a) : (b))
#define COMBINE_MIN(a, b) ((a) < (b) ? (a) : (b))
#define COMBINE_SUM(a, b) ((a) + (b))
#define COMBINE_PROD(a, b) ((a) * (b))

/* Values of 1 to 14, or of 1 and 2 for products: sums and products of 7 PEs fit into a char. */
#define TYPED_TERM(TYPE, pe, position) ((TYPE)(typed_value((pe), 0, (position)) % term_max + 1))

#define TYPED_REDUCE(TYPE, TEXT, TERM_MAX, COMBINE, CALL)   \
  do {                                                      \
    const int term_max = (TERM_MAX);                        \
    TYPE* from = (TYPE*)typed_source;                       \
    TYPE* to = (TYPE*)typed_target;                         \
    for (int spot = 0; spot < TYPED_COUNT; ++spot) {        \
      from[spot] = TYPED_TERM(TYPE, suite_me, spot);        \
    }                                                       \
    TYPED_FILL_POISON(TYPE, to, TYPED_AREA)                 \
    shmem_barrier_all();                                    \
    CALL;                                                   \
    for (int spot = 0; spot < TYPED_COUNT; ++spot) {        \
      TYPE expected = TYPED_TERM(TYPE, 0, spot);            \
      for (int pe = 1; pe < suite_pe_count; ++pe) {         \
        const TYPE term = TYPED_TERM(TYPE, pe, spot);       \
        expected = (TYPE)COMBINE(expected, term);           \
      }                                                     \
      TYPED_EQUAL(TEXT, expected, to[spot]);                \
    }                                                       \
    TYPED_EQUAL(TEXT, (TYPE)TYPED_POISON, to[TYPED_COUNT]); \
    ++typed_salt;                                           \
  } while (0)

#define CHECK_REDUCE(TYPE, NAME, COMBINE, TERM_MAX)                                            \
  TYPED_REDUCE(TYPE, #NAME " " #TYPE, TERM_MAX, COMBINE,                                       \
               TYPED_EQUAL(#NAME " " #TYPE, 0,                                                 \
                           NAME(typed_salt % 2 ? typed_backwards : SHMEM_TEAM_WORLD, to, from, \
                                TYPED_COUNT)))
/* The work array lies behind the values. */
#define CHECK_TO_ALL(TYPE, NAME, COMBINE, TERM_MAX)      \
  TYPED_REDUCE(TYPE, #NAME " " #TYPE, TERM_MAX, COMBINE, \
               NAME(to, from, TYPED_COUNT, 0, 0, suite_pe_count, from + TYPED_AREA, typed_sync))

/* Of PEs 0 to me, or without me: `too` is 1 or 0. */
#define TYPED_SCAN(TYPE, TEXT, too, CALL)                                 \
  for (int which = 0; which < 2; ++which) {                               \
    const int term_max = 14;                                              \
    const shmem_team_t team = which ? typed_backwards : SHMEM_TEAM_WORLD; \
    const int me = which ? suite_pe_count - 1 - suite_me : suite_me;      \
    TYPE* from = (TYPE*)typed_source;                                     \
    TYPE* to = which ? from : (TYPE*)typed_target; /* in place, too */    \
    TYPED_FILL_POISON(TYPE, to, TYPED_AREA)                               \
    for (int spot = 0; spot < TYPED_COUNT; ++spot) {                      \
      from[spot] = TYPED_TERM(TYPE, me, spot);                            \
    }                                                                     \
    shmem_barrier_all();                                                  \
    TYPED_EQUAL(TEXT, 0, CALL);                                           \
    for (int spot = 0; spot < TYPED_COUNT; ++spot) {                      \
      TYPE expected = (TYPE)0;                                            \
      for (int pe = 0; pe < me + (too); ++pe) {                           \
        expected = (TYPE)(expected + TYPED_TERM(TYPE, pe, spot));         \
      }                                                                   \
      TYPED_EQUAL(TEXT, expected, to[spot]);                              \
    }                                                                     \
    TYPED_EQUAL(TEXT, (TYPE)TYPED_POISON, to[TYPED_COUNT]);               \
    ++typed_salt;                                                         \
  }

#define CHECK_INSCAN(TYPE, NAME) \
  TYPED_SCAN(TYPE, #NAME " " #TYPE, 1, NAME(team, to, from, TYPED_COUNT))
#define CHECK_EXSCAN(TYPE, NAME) \
  TYPED_SCAN(TYPE, #NAME " " #TYPE, 0, NAME(team, to, from, TYPED_COUNT))

/* ---- 9.10 wait and test ---------------------------------------------------------------------- */

/* CALL before the right neighbour's words are set (BEFORE), and after (CALL). Five words, values 11
 * to 15 or all 11, set with SET. */
#define TYPED_WAIT(TYPE, step, SET, BEFORE, CALL) \
  do {                                            \
    TYPE* words = (TYPE*)typed_target;            \
    TYPE values[5];                               \
    size_t indices[5];                            \
    for (int i = 0; i < 5; ++i) {                 \
      words[i] = 0;                               \
      values[i] = (TYPE)(11 + i * (step));        \
      indices[i] = 99;                            \
    }                                             \
    (void)indices;                                \
    BEFORE;                                       \
    shmem_barrier_all();                          \
    for (int i = 4; i >= 0; --i) {                \
      SET(&words[i], values[i], suite_right());   \
    }                                             \
    CALL;                                         \
    shmem_barrier_all();                          \
  } while (0)

#define TYPED_ALL_ARE_SET(TEXT)             \
  for (int i = 0; i < 5; ++i) {             \
    TYPED_EQUAL(TEXT, values[i], words[i]); \
  }
#define TYPED_IS_SET(TEXT, INDEX)          \
  const size_t index = (INDEX);            \
  TYPED_EQUAL(TEXT, 1, index < 5 ? 1 : 0); \
  TYPED_EQUAL(TEXT, values[index % 5], words[index % 5])
#define TYPED_SOME_ARE_SET(TEXT, COUNT)                               \
  const size_t count = (COUNT);                                       \
  TYPED_EQUAL(TEXT, 1, count >= 1 && count <= 5 ? 1 : 0);             \
  for (size_t i = 0; i < count && i < 5; ++i) {                       \
    TYPED_EQUAL(TEXT, 1, indices[i] < 5 ? 1 : 0);                     \
    TYPED_EQUAL(TEXT, values[indices[i] % 5], words[indices[i] % 5]); \
  }

#define CHECK_WAIT(TYPE, NAME, SET)                                    \
  TYPED_WAIT(TYPE, 1, SET, , NAME(&words[0], SHMEM_CMP_EQ, values[0]); \
             TYPED_EQUAL(#NAME, values[0], words[0]))
#define CHECK_WAIT_ALL(TYPE, NAME, SET)                                     \
  TYPED_WAIT(TYPE, 0, SET, , NAME(words, 5, NULL, SHMEM_CMP_EQ, values[0]); \
             TYPED_ALL_ARE_SET(#NAME))
#define CHECK_WAIT_ANY(TYPE, NAME, SET) \
  TYPED_WAIT(TYPE, 0, SET, , TYPED_IS_SET(#NAME, NAME(words, 5, NULL, SHMEM_CMP_EQ, values[0])))
#define CHECK_WAIT_SOME(TYPE, NAME, SET) \
  TYPED_WAIT(TYPE, 0, SET, ,             \
             TYPED_SOME_ARE_SET(#NAME, NAME(words, 5, indices, NULL, SHMEM_CMP_EQ, values[0])))
#define CHECK_WAIT_ALL_VECTOR(TYPE, NAME, SET) \
  TYPED_WAIT(TYPE, 1, SET, , NAME(words, 5, NULL, SHMEM_CMP_EQ, values); TYPED_ALL_ARE_SET(#NAME))
#define CHECK_WAIT_ANY_VECTOR(TYPE, NAME, SET) \
  TYPED_WAIT(TYPE, 1, SET, , TYPED_IS_SET(#NAME, NAME(words, 5, NULL, SHMEM_CMP_EQ, values)))
#define CHECK_WAIT_SOME_VECTOR(TYPE, NAME, SET) \
  TYPED_WAIT(TYPE, 1, SET, ,                    \
             TYPED_SOME_ARE_SET(#NAME, NAME(words, 5, indices, NULL, SHMEM_CMP_EQ, values)))

/* The tests say no before, and yes after a barrier. */
#define CHECK_TEST(TYPE, NAME, SET)                                                         \
  TYPED_WAIT(TYPE, 1, SET, TYPED_EQUAL(#NAME, 0, NAME(&words[0], SHMEM_CMP_EQ, values[0])), \
             shmem_barrier_all();                                                           \
             TYPED_EQUAL(#NAME, 1, NAME(&words[0], SHMEM_CMP_EQ, values[0])))
#define TYPED_TEST_ALL(TYPE, NAME, SET, step, VALUES)                                            \
  TYPED_WAIT(TYPE, step, SET, TYPED_EQUAL(#NAME, 0, NAME(words, 5, NULL, SHMEM_CMP_EQ, VALUES)), \
             shmem_barrier_all();                                                                \
             TYPED_EQUAL(#NAME, 1, NAME(words, 5, NULL, SHMEM_CMP_EQ, VALUES)))
#define TYPED_TEST_ANY(TYPE, NAME, SET, step, VALUES)                                  \
  TYPED_WAIT(TYPE, step, SET,                                                          \
             TYPED_EQUAL(#NAME, SIZE_MAX, NAME(words, 5, NULL, SHMEM_CMP_EQ, VALUES)), \
             shmem_barrier_all();                                                      \
             TYPED_IS_SET(#NAME, NAME(words, 5, NULL, SHMEM_CMP_EQ, VALUES)))
#define TYPED_TEST_SOME(TYPE, NAME, SET, step, VALUES)                                           \
  TYPED_WAIT(TYPE, step, SET,                                                                    \
             TYPED_EQUAL(#NAME, (size_t)0, NAME(words, 5, indices, NULL, SHMEM_CMP_EQ, VALUES)), \
             shmem_barrier_all();                                                                \
             TYPED_SOME_ARE_SET(#NAME, NAME(words, 5, indices, NULL, SHMEM_CMP_EQ, VALUES)))
#define CHECK_TEST_ALL(TYPE, NAME, SET) TYPED_TEST_ALL(TYPE, NAME, SET, 0, values[0])
#define CHECK_TEST_ANY(TYPE, NAME, SET) TYPED_TEST_ANY(TYPE, NAME, SET, 0, values[0])
#define CHECK_TEST_SOME(TYPE, NAME, SET) TYPED_TEST_SOME(TYPE, NAME, SET, 0, values[0])
#define CHECK_TEST_ALL_VECTOR(TYPE, NAME, SET) TYPED_TEST_ALL(TYPE, NAME, SET, 1, values)
#define CHECK_TEST_ANY_VECTOR(TYPE, NAME, SET) TYPED_TEST_ANY(TYPE, NAME, SET, 1, values)
#define CHECK_TEST_SOME_VECTOR(TYPE, NAME, SET) TYPED_TEST_SOME(TYPE, NAME, SET, 1, values)

#endif
