/* 9.4 teams and 9.5 contexts: who is in which team under which number, and traffic by those
   numbers. */
#include <string.h>

#include "tests/openshmem/suite.h"

TEST(team_ptr, "1.6, 9.1.10 team_ptr: as ptr, with the team's numbers; null for no team") {
  int* word = suite_symmetric(sizeof *word);
  int on_stack = 0;
  shmem_team_t backwards = SHMEM_TEAM_INVALID;
  EXPECT_EQUAL(0, shmem_team_split_strided(SHMEM_TEAM_WORLD, suite_pe_count - 1, -1, suite_pe_count,
                                           NULL, 0, &backwards));
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    EXPECT(shmem_team_ptr(SHMEM_TEAM_WORLD, word, pe) == shmem_ptr(word, pe));
    EXPECT(shmem_team_ptr(backwards, word, suite_pe_count - 1 - pe) == shmem_ptr(word, pe));
  }
  EXPECT(shmem_team_ptr(SHMEM_TEAM_INVALID, word, 0) == NULL);
  EXPECT(shmem_team_ptr(SHMEM_TEAM_WORLD, &on_stack, suite_right()) == NULL);
  const int shared = shmem_team_n_pes(SHMEM_TEAM_SHARED);
  for (int pe = 0; pe < shared; ++pe) {
    EXPECT(shmem_team_ptr(SHMEM_TEAM_SHARED, word, pe) ==
           shmem_ptr(word, shmem_team_translate_pe(SHMEM_TEAM_SHARED, pe, SHMEM_TEAM_WORLD)));
  }
  shmem_team_destroy(backwards);
}

TEST(no_parent, "1.6, 9.4.6, 9.4.7 split of no team: an error, and no team") {
  shmem_team_t x = SHMEM_TEAM_WORLD;
  shmem_team_t y = SHMEM_TEAM_WORLD;
  EXPECT(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &x) != 0);
  EXPECT(x == SHMEM_TEAM_INVALID);
  x = SHMEM_TEAM_WORLD;
  EXPECT(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &x, NULL, 0, &y) != 0);
  EXPECT(x == SHMEM_TEAM_INVALID && y == SHMEM_TEAM_INVALID);
  EXPECT_EQUAL(0, shmem_team_split_strided(SHMEM_TEAM_WORLD, suite_me * 0, 0, 1, NULL, 0,
                                           &x)); /* a stride of 0 */
  if (x != SHMEM_TEAM_INVALID) {
    EXPECT_EQUAL(1, shmem_team_n_pes(x));
    shmem_team_destroy(x);
  }
}

TEST(no_config, "1.6, 9.4.4 team_get_config: without a mask, nothing is written") {
  EXPECT(shmem_team_get_config(SHMEM_TEAM_INVALID, 0, NULL) != 0);
  EXPECT_EQUAL(0, shmem_team_get_config(SHMEM_TEAM_WORLD, 0, NULL));
}

static shmem_team_t split(shmem_team_t parent, int start, int stride, int size) {
  shmem_team_t team = SHMEM_TEAM_INVALID;
  EXPECT_EQUAL(0, shmem_team_split_strided(parent, start, stride, size, NULL, 0, &team));
  return team;
}

/* The team holds `size` PEs, and its PE i is start + i * stride of the world. */
static void expect_members(shmem_team_t team, int start, int stride, int size) {
  int mine = -1;
  for (int i = 0; i < size; ++i) {
    if (start + i * stride == suite_me) {
      mine = i;
    }
  }
  if (mine < 0) {
    EXPECT(team == SHMEM_TEAM_INVALID);
    return;
  }
  EXPECT(team != SHMEM_TEAM_INVALID);
  EXPECT_EQUAL(mine, shmem_team_my_pe(team));
  EXPECT_EQUAL(size, shmem_team_n_pes(team));
  for (int i = 0; i < size; ++i) {
    EXPECT_EQUAL(start + i * stride, shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD));
    EXPECT_EQUAL(i, shmem_team_translate_pe(SHMEM_TEAM_WORLD, start + i * stride, team));
  }
}

TEST(world_team, "9.4 teams: SHMEM_TEAM_WORLD holds all PEs under their numbers") {
  EXPECT_EQUAL(suite_me, shmem_team_my_pe(SHMEM_TEAM_WORLD));
  EXPECT_EQUAL(suite_pe_count, shmem_team_n_pes(SHMEM_TEAM_WORLD));
  EXPECT(SHMEM_TEAM_WORLD != SHMEM_TEAM_INVALID);
  EXPECT(SHMEM_TEAM_WORLD != SHMEM_TEAM_SHARED);
}

TEST(shared_team,
     "9.4 teams: SHMEM_TEAM_SHARED holds this PE and others whose memory shmem_ptr reaches") {
  int* word = suite_symmetric(sizeof *word);
  const int size = shmem_team_n_pes(SHMEM_TEAM_SHARED);
  EXPECT(size >= 1 && size <= suite_pe_count);
  const int me = shmem_team_my_pe(SHMEM_TEAM_SHARED);
  EXPECT_EQUAL(suite_me, shmem_team_translate_pe(SHMEM_TEAM_SHARED, me, SHMEM_TEAM_WORLD));
  for (int i = 0; i < size; ++i) {
    const int pe = shmem_team_translate_pe(SHMEM_TEAM_SHARED, i, SHMEM_TEAM_WORLD);
    EXPECT(pe >= 0 && shmem_ptr(word, pe) != NULL);
  }
}

TEST(invalid_team,
     "9.4.1, 9.4.2, 9.4.5 team_my_pe, n_pes, translate_pe: -1 for SHMEM_TEAM_INVALID") {
  EXPECT_EQUAL(-1, shmem_team_my_pe(SHMEM_TEAM_INVALID));
  EXPECT_EQUAL(-1, shmem_team_n_pes(SHMEM_TEAM_INVALID));
  EXPECT_EQUAL(-1, shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD));
  EXPECT_EQUAL(-1, shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID));
}

TEST(every_stride, "9.4.6 split_strided: every start, stride and size that fits") {
  for (int stride = 1; stride <= 3; ++stride) {
    for (int start = 0; start < suite_pe_count && start < 3; ++start) {
      const int size_max = (suite_pe_count - start + stride - 1) / stride;
      for (int size = 1; size <= size_max;
           size = size < size_max && size * 2 > size_max ? size_max : size * 2) {
        const shmem_team_t team = split(SHMEM_TEAM_WORLD, start, stride, size);
        expect_members(team, start, stride, size);
        shmem_team_destroy(team);
      }
    }
  }
}

TEST(reversed_team, "9.4.6 split_strided: a negative stride numbers the PEs backwards") {
  const int last = suite_pe_count - 1;
  shmem_team_t team = split(SHMEM_TEAM_WORLD, last, -1, suite_pe_count);
  expect_members(team, last, -1, suite_pe_count);
  shmem_team_destroy(team);
  const int size = (suite_pe_count + 1) / 2;
  team = split(SHMEM_TEAM_WORLD, last, -2, size);
  expect_members(team, last, -2, size);
  shmem_team_destroy(team);
}

TEST(nested_teams, "9.4.6 split_strided: of a team, numbered by that team") {
  const int odd_count = suite_pe_count / 2;
  if (odd_count < 2) {
    SKIP("needs 4 PEs");
  }
  const shmem_team_t odd = split(SHMEM_TEAM_WORLD, 1, 2, odd_count);
  if (odd != SHMEM_TEAM_INVALID) {
    const shmem_team_t later = split(odd, 1, 1, odd_count - 1);
    expect_members(later, 3, 2, odd_count - 1);
    const shmem_team_t backwards = split(odd, odd_count - 1, -1, odd_count);
    expect_members(backwards, 2 * odd_count - 1, -2, odd_count);
    EXPECT_EQUAL(-1, shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, odd));
    if (later != SHMEM_TEAM_INVALID) {
      EXPECT_EQUAL(0, shmem_team_translate_pe(odd, 1, later));
      EXPECT_EQUAL(-1, shmem_team_translate_pe(odd, 0, later));
    }
    shmem_team_destroy(later);
    shmem_team_destroy(backwards);
  }
  shmem_team_destroy(odd);
}

TEST(bad_ranges,
     "9.4.6 split_strided: nonzero and SHMEM_TEAM_INVALID for a range that leaves the parent") {
  shmem_team_t team = SHMEM_TEAM_WORLD;
  EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, suite_pe_count + 1, NULL, 0, &team) != 0);
  EXPECT(team == SHMEM_TEAM_INVALID);
  team = SHMEM_TEAM_WORLD;
  EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, suite_pe_count, 1, 1, NULL, 0, &team) != 0);
  EXPECT(team == SHMEM_TEAM_INVALID);
  team = SHMEM_TEAM_WORLD;
  EXPECT(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
  EXPECT(team == SHMEM_TEAM_INVALID);
  shmem_barrier_all(); /* and the library goes on */
}

/* The sizes of row and column of PE `pe` in a grid of width `width`. */
static void expect_grid(shmem_team_t x_team, shmem_team_t y_team, int width) {
  const int y = suite_me / width;
  const int x = suite_me % width;
  const int row = y * width + width <= suite_pe_count ? width : suite_pe_count - y * width;
  const int column = (suite_pe_count - x + width - 1) / width;
  expect_members(x_team, y * width, 1, row);
  expect_members(y_team, x, width, column);
}

TEST(grid_teams, "9.4.7 split_2d: rows and columns, also of incomplete grids") {
  for (int width = 1; width <= suite_pe_count + 1; ++width) {
    shmem_team_t x_team = SHMEM_TEAM_INVALID;
    shmem_team_t y_team = SHMEM_TEAM_INVALID;
    EXPECT_EQUAL(0,
                 shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &x_team, NULL, 0, &y_team));
    expect_grid(x_team, y_team, width < suite_pe_count ? width : suite_pe_count);
    shmem_team_sync(x_team);
    shmem_team_sync(y_team);
    shmem_team_destroy(x_team);
    shmem_team_destroy(y_team);
  }
}

TEST(team_config, "9.4.3, 9.4.4 team_config_t, team_get_config: what was asked for comes back") {
  shmem_team_config_t config;
  memset(&config, 0, sizeof config);
  config.num_contexts = 3;
  shmem_team_t team = SHMEM_TEAM_INVALID;
  EXPECT_EQUAL(0, shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, suite_pe_count, &config,
                                           SHMEM_TEAM_NUM_CONTEXTS, &team));
  shmem_team_config_t seen;
  memset(&seen, 0xff, sizeof seen);
  EXPECT_EQUAL(0, shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &seen));
  EXPECT_EQUAL(3, seen.num_contexts);
  for (int i = 0; i < 3; ++i) {
    shmem_ctx_t context = SHMEM_CTX_INVALID;
    EXPECT_EQUAL(0, shmem_team_create_ctx(team, 0, &context)); /* as many as were asked for */
    EXPECT(context != SHMEM_CTX_INVALID);
  }
  shmem_team_destroy(team); /* and its contexts with it */
  EXPECT(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &seen) != 0);
}

TEST(many_teams, "9.4.8 team_destroy: what is destroyed can be created again, hundreds of times") {
  for (int round = 0; round < 200; ++round) {
    const shmem_team_t team = split(SHMEM_TEAM_WORLD, round % suite_pe_count, 1, 1);
    EXPECT_EQUAL(round % suite_pe_count == suite_me, team != SHMEM_TEAM_INVALID);
    shmem_team_destroy(team);
  }
}

TEST(many_at_a_time, "9.4 teams: twenty at a time are independent of each other") {
  shmem_team_t teams[20];
  for (int i = 0; i < 20; ++i) {
    teams[i] = split(SHMEM_TEAM_WORLD, i % suite_pe_count, 1, suite_pe_count - i % suite_pe_count);
  }
  for (int i = 19; i >= 0; --i) {
    if (teams[i] != SHMEM_TEAM_INVALID) {
      shmem_team_sync(teams[i]);
      EXPECT_EQUAL(suite_pe_count - i % suite_pe_count, shmem_team_n_pes(teams[i]));
    }
    shmem_team_destroy(teams[i]);
  }
}

/* ---- 9.5 contexts ---------------------------------------------------------------------------- */

TEST(every_option,
     "9.5.1 ctx_create: with each option and with all of them; puts, gets and atomics work") {
  const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
                          SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE};
  int* words = suite_symmetric(10 * sizeof *words);
  for (int i = 0; i < 5; ++i) {
    shmem_ctx_t context = SHMEM_CTX_INVALID;
    EXPECT_EQUAL(0, shmem_ctx_create(options[i], &context));
    EXPECT(context != SHMEM_CTX_INVALID && context != SHMEM_CTX_DEFAULT);
    const int value = 10 * suite_me + i;
    shmem_ctx_int_put(context, &words[i], &value, 1, suite_right());
    shmem_ctx_int_atomic_add(context, &words[5 + i], value, suite_right());
    shmem_ctx_quiet(context);
    EXPECT_EQUAL(value, shmem_ctx_int_g(context, &words[i], suite_right()));
    shmem_ctx_destroy(context);
  }
  shmem_barrier_all();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQUAL(10 * suite_left() + i % 5, words[i]);
  }
}

TEST(destroy_is_quiet,
     "9.5.3 ctx_destroy: completes what was outstanding; the invalid one is ignored") {
  int* words = suite_symmetric(64 * sizeof *words);
  static int source[64];
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_create(0, &context));
  for (int i = 0; i < 64; ++i) {
    source[i] = suite_me + i;
    shmem_ctx_int_put_nbi(context, &words[i], &source[i], 1, suite_right());
  }
  shmem_ctx_destroy(context);
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
  shmem_sync_all();
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQUAL(suite_left() + i, words[i]);
  }
}

TEST(many_contexts, "9.5.1 ctx_create: thirty at a time, and hundreds one after the other") {
  int* words = suite_symmetric(30 * sizeof *words);
  shmem_ctx_t contexts[30];
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQUAL(0, shmem_ctx_create(0, &contexts[i]));
    shmem_ctx_int_p(contexts[i], &words[i], i + suite_me, suite_right());
  }
  for (int i = 0; i < 30; ++i) {
    shmem_ctx_quiet(contexts[i]);
    shmem_ctx_destroy(contexts[i]);
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQUAL(0, shmem_ctx_create(0, &contexts[0]));
    shmem_ctx_destroy(contexts[0]);
  }
  shmem_sync_all();
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQUAL(i + suite_left(), words[i]);
  }
}

TEST(context_of_team,
     "9.5.2 team_create_ctx: PE numbers on it are the team's; 9.5.4 ctx_get_team") {
  int* words = suite_symmetric(2 * sizeof *words);
  const int last = suite_pe_count - 1;
  const shmem_team_t team = split(SHMEM_TEAM_WORLD, last, -1, suite_pe_count);
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_team_create_ctx(team, 0, &context));
  shmem_team_t seen = SHMEM_TEAM_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_get_team(context, &seen));
  EXPECT(seen == team);
  const int right = last - suite_right(); /* its number in the team */
  shmem_ctx_int_p(context, &words[0], 500 + suite_me, right);
  shmem_ctx_int_atomic_add(context, &words[1], 700 + suite_me, right);
  shmem_ctx_quiet(context);
  EXPECT_EQUAL(500 + suite_me, shmem_ctx_int_g(context, &words[0], right));
  shmem_barrier_all();
  EXPECT_EQUAL(500 + suite_left(), words[0]);
  EXPECT_EQUAL(700 + suite_left(), words[1]);
  shmem_ctx_destroy(context);
  shmem_team_destroy(team);
}

TEST(teams_of_contexts,
     "9.5.4 ctx_get_team: the world for the default context and for created ones") {
  shmem_team_t team = SHMEM_TEAM_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team));
  EXPECT(team == SHMEM_TEAM_WORLD);
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_create(0, &context));
  team = SHMEM_TEAM_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_get_team(context, &team));
  EXPECT(team == SHMEM_TEAM_WORLD);
  shmem_ctx_destroy(context);
  team = SHMEM_TEAM_WORLD;
  EXPECT(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0);
  EXPECT(team == SHMEM_TEAM_INVALID);
  EXPECT(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &context) != 0);
}

TEST(contexts_are_separate, "9.11.2 ctx_quiet: each context completes its own operations") {
  enum { COUNT = 50 };

  int* words = suite_symmetric(2 * COUNT * sizeof *words);
  static int source[2 * COUNT];
  shmem_ctx_t first = SHMEM_CTX_INVALID;
  shmem_ctx_t second = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_create(0, &first));
  EXPECT_EQUAL(0, shmem_ctx_create(0, &second));
  for (int i = 0; i < 2 * COUNT; ++i) {
    source[i] = suite_me * 1000 + i;
    shmem_ctx_int_put_nbi(i % 2 ? first : second, &words[i], &source[i], 1, suite_right());
  }
  shmem_ctx_quiet(first);
  for (int i = 1; i < 2 * COUNT; i += 2) {
    EXPECT_EQUAL(suite_me * 1000 + i, shmem_int_g(&words[i], suite_right()));
  }
  shmem_ctx_quiet(second);
  for (int i = 0; i < 2 * COUNT; i += 2) {
    EXPECT_EQUAL(suite_me * 1000 + i, shmem_int_g(&words[i], suite_right()));
  }
  shmem_ctx_destroy(second);
  shmem_ctx_destroy(first);
}
