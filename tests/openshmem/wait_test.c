/* 9.10: wait and test on one word, all, any or some of many, with masks and with a value for
   each. */
#include <string.h>

#include "tests/openshmem/suite.h"

enum { WORDS = 9 };

/* Every PE sets the words of its right neighbour, in an order of its own, with pauses in
   between. */
static void set_words_of_neighbour(int* words, const int* values) {
  for (int i = 0; i < WORDS; ++i) {
    const int k = (i * 4 + suite_me) % WORDS;
    if (i % 4 == 1) {
      suite_dawdle(i);
    }
    shmem_int_atomic_set(&words[k], values[k], suite_right());
  }
}

static void set_all_to(int* words, int value) {
  int values[WORDS];
  for (int i = 0; i < WORDS; ++i) {
    values[i] = value;
  }
  set_words_of_neighbour(words, values);
}

typedef struct comparison {
  int cmp;
  int start;
  int set;
  int value;
} comparison;

static const comparison kComparisons[] = {
    {SHMEM_CMP_EQ, 0, 7, 7}, {SHMEM_CMP_NE, 0, 1, 0},  {SHMEM_CMP_GT, 5, 6, 5},
    {SHMEM_CMP_GE, 4, 5, 5}, {SHMEM_CMP_LT, 0, -1, 0}, {SHMEM_CMP_LE, 3, -8, -8},
};

enum { COMPARISONS = sizeof kComparisons / sizeof kComparisons[0] };

TEST(tests_compare, "9.10.8 test: EQ, NE, GT, GE, LT and LE, signed") {
  int* words = suite_symmetric(COMPARISONS * sizeof *words);
  for (int i = 0; i < COMPARISONS; ++i) {
    words[i] = kComparisons[i].start;
    EXPECT_EQUAL(0, shmem_int_test(&words[i], kComparisons[i].cmp, kComparisons[i].value));
  }
  shmem_barrier_all();
  for (int i = 0; i < COMPARISONS; ++i) {
    shmem_int_atomic_set(&words[i], kComparisons[i].set, suite_right());
  }
  for (int i = 0; i < COMPARISONS; ++i) {
    while (!shmem_int_test(&words[i], kComparisons[i].cmp, kComparisons[i].value)) {
    }
    EXPECT_EQUAL(kComparisons[i].set, words[i]);
  }
}

TEST(waits_compare, "9.10.1 wait_until: EQ, NE, GT, GE, LT and LE, signed") {
  int* words = suite_symmetric(COMPARISONS * sizeof *words);
  for (int i = 0; i < COMPARISONS; ++i) {
    words[i] = kComparisons[i].start;
  }
  shmem_barrier_all();
  for (int i = 0; i < COMPARISONS; ++i) {
    suite_dawdle(i);
    shmem_int_atomic_set(&words[i], kComparisons[i].set, suite_right());
  }
  for (int i = 0; i < COMPARISONS; ++i) {
    shmem_int_wait_until(&words[i], kComparisons[i].cmp, kComparisons[i].value);
    EXPECT_EQUAL(kComparisons[i].set, words[i]);
  }
}

TEST(unsigned_test, "9.10.8 test: unsigned values compare as unsigned") {
  uint64_t* word = suite_symmetric(sizeof *word);
  *word = UINT64_MAX;
  EXPECT_EQUAL(1, shmem_uint64_test(word, SHMEM_CMP_GT, 5));
  EXPECT_EQUAL(0, shmem_uint64_test(word, SHMEM_CMP_LT, 5));
}

TEST(unsigned_comparison, "9.10.1 wait_until: unsigned values compare as unsigned") {
  uint64_t* word = suite_symmetric(sizeof *word);
  shmem_uint64_atomic_set(word, UINT64_MAX, suite_right());
  shmem_uint64_wait_until(word, SHMEM_CMP_GT, 5);
  EXPECT(*word == UINT64_MAX);
}

TEST(wait_for_all, "9.10.2 wait_until_all: returns when all have arrived") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  set_all_to(words, 3);
  shmem_int_wait_until_all(words, WORDS, NULL, SHMEM_CMP_EQ, 3);
  for (int i = 0; i < WORDS; ++i) {
    EXPECT_EQUAL(3, words[i]);
  }
}

TEST(test_for_all, "9.10.9 test_all: 0 until all have arrived, then 1") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  EXPECT_EQUAL(0, shmem_int_test_all(words, WORDS, NULL, SHMEM_CMP_EQ, 3));
  shmem_barrier_all();
  set_all_to(words, 3);
  while (!shmem_int_test_all(words, WORDS, NULL, SHMEM_CMP_EQ, 3)) {
  }
  for (int i = 0; i < WORDS; ++i) {
    EXPECT_EQUAL(3, words[i]);
  }
}

TEST(wait_for_all_but, "9.10.2 wait_until_all: a word that the mask excludes is not waited for") {
  int* words = suite_symmetric((WORDS + 1) * sizeof *words);
  int excluded[WORDS + 1] = {0};
  excluded[WORDS] = 1; /* nobody sets that one */
  set_all_to(words, 2);
  shmem_int_wait_until_all(words, WORDS + 1, excluded, SHMEM_CMP_EQ, 2);
  EXPECT_EQUAL(2, words[WORDS - 1]);
  EXPECT_EQUAL(0, words[WORDS]);
}

TEST(test_for_all_but, "9.10.9 test_all: a word that the mask excludes does not count") {
  int* words = suite_symmetric((WORDS + 1) * sizeof *words);
  int excluded[WORDS + 1] = {0};
  excluded[WORDS] = 1;
  EXPECT_EQUAL(0, shmem_int_test_all(words, WORDS + 1, excluded, SHMEM_CMP_EQ, 2));
  for (int i = 0; i < WORDS; ++i) {
    words[i] = 2;
  }
  EXPECT_EQUAL(1, shmem_int_test_all(words, WORDS + 1, excluded, SHMEM_CMP_EQ, 2));
  EXPECT_EQUAL(0, shmem_int_test_all(words, WORDS + 1, NULL, SHMEM_CMP_EQ, 2));
}

TEST(wait_for_any, "9.10.3 wait_until_any: each index once, with the mask that the caller keeps") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  int done[WORDS] = {0};
  set_all_to(words, 4);
  for (int i = 0; i < WORDS; ++i) {
    const size_t k = shmem_int_wait_until_any(words, WORDS, done, SHMEM_CMP_EQ, 4);
    EXPECT(k < WORDS && !done[k]);
    if (k < WORDS) {
      EXPECT_EQUAL(4, words[k]);
      done[k] = 1;
    }
  }
  EXPECT_EQUAL(SIZE_MAX, shmem_int_wait_until_any(words, WORDS, done, SHMEM_CMP_EQ, 4));
}

TEST(test_for_any, "9.10.10 test_any: SIZE_MAX until one has arrived, then its index") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  int done[WORDS] = {0};
  EXPECT_EQUAL(SIZE_MAX, shmem_int_test_any(words, WORDS, NULL, SHMEM_CMP_NE, 0));
  shmem_barrier_all();
  set_all_to(words, 4);
  for (int i = 0; i < WORDS;) {
    const size_t k = shmem_int_test_any(words, WORDS, done, SHMEM_CMP_NE, 0);
    EXPECT(k == SIZE_MAX || (k < WORDS && !done[k]));
    if (k < WORDS) {
      done[k] = 1;
      ++i;
    }
  }
  EXPECT_EQUAL(SIZE_MAX, shmem_int_test_any(words, WORDS, done, SHMEM_CMP_NE, 0));
}

/* The first `count` indices are in range, different, not yet done, and their words hold `value`. */
static void take(const size_t* indices, size_t count, int* done, const int* words, int value) {
  EXPECT(count <= WORDS);
  for (size_t i = 0; i < count && i < WORDS; ++i) {
    EXPECT(indices[i] < WORDS && !done[indices[i]]);
    if (indices[i] < WORDS) {
      done[indices[i]] = 1;
      EXPECT_EQUAL(value, words[indices[i]]);
    }
  }
}

TEST(wait_for_some, "9.10.4 wait_until_some: the indices that it returns cover all, each once") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  size_t indices[WORDS];
  int done[WORDS] = {0};
  set_all_to(words, 6);
  for (size_t taken = 0; taken < WORDS;) {
    const size_t count = shmem_int_wait_until_some(words, WORDS, indices, done, SHMEM_CMP_GE, 6);
    EXPECT(count >= 1);
    take(indices, count, done, words, 6);
    taken += count ? count : WORDS;
  }
  EXPECT_EQUAL(0, shmem_int_wait_until_some(words, WORDS, indices, done, SHMEM_CMP_GE, 6));
}

TEST(test_for_some, "9.10.11 test_some: 0 until one has arrived, then those that have") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  size_t indices[WORDS];
  int done[WORDS] = {0};
  EXPECT_EQUAL(0, shmem_int_test_some(words, WORDS, indices, NULL, SHMEM_CMP_GE, 6));
  shmem_barrier_all();
  set_all_to(words, 6);
  for (size_t taken = 0; taken < WORDS;) {
    const size_t count = shmem_int_test_some(words, WORDS, indices, done, SHMEM_CMP_GE, 6);
    take(indices, count, done, words, 6);
    taken += count;
  }
  EXPECT_EQUAL(WORDS, shmem_int_test_some(words, WORDS, indices, NULL, SHMEM_CMP_EQ, 6));
}

TEST(wait_for_vector, "9.10.5 wait_until_all_vector: a value for each word") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  int values[WORDS];
  for (int i = 0; i < WORDS; ++i) {
    values[i] = 10 + i * i;
  }
  set_words_of_neighbour(words, values);
  shmem_int_wait_until_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values);
  EXPECT(memcmp(words, values, sizeof values) == 0);
}

TEST(vector_of_values, "9.10.12 test_all_vector: a value for each word") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  int values[WORDS];
  for (int i = 0; i < WORDS; ++i) {
    values[i] = 10 + i * i;
  }
  EXPECT_EQUAL(0, shmem_int_test_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values));
  shmem_barrier_all();
  set_words_of_neighbour(words, values);
  shmem_int_wait_until_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values);
  EXPECT_EQUAL(1, shmem_int_test_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values));
  EXPECT(memcmp(words, values, sizeof values) == 0);
  values[3] = -1;
  EXPECT_EQUAL(0, shmem_int_test_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values));
  const int without[WORDS] = {0, 0, 0, 1};
  EXPECT_EQUAL(1, shmem_int_test_all_vector(words, WORDS, without, SHMEM_CMP_EQ, values));
}

TEST(any_of_a_vector,
     "9.10.6, 9.10.13 wait_until_any_vector, test_any_vector: each word has its value") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  int values[WORDS];
  int done[WORDS] = {0};
  for (int i = 0; i < WORDS; ++i) {
    values[i] = 1 + i;
  }
  set_words_of_neighbour(words, values);
  for (int i = 0; i < WORDS; ++i) {
    const size_t k = shmem_int_wait_until_any_vector(words, WORDS, done, SHMEM_CMP_EQ, values);
    EXPECT(k < WORDS && !done[k]);
    if (k < WORDS) {
      EXPECT_EQUAL(values[k], words[k]);
      EXPECT(shmem_int_test_any_vector(words, WORDS, done, SHMEM_CMP_EQ, values) < WORDS);
      done[k] = 1;
    }
  }
  EXPECT_EQUAL(SIZE_MAX, shmem_int_test_any_vector(words, WORDS, done, SHMEM_CMP_EQ, values));
}

TEST(some_of_a_vector,
     "9.10.7, 9.10.14 wait_until_some_vector, test_some_vector: each word has its value") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  int values[WORDS];
  size_t indices[WORDS];
  int done[WORDS] = {0};
  for (int i = 0; i < WORDS; ++i) {
    values[i] = 1 + i;
  }
  set_words_of_neighbour(words, values);
  for (size_t taken = 0; taken < WORDS;) {
    const size_t count =
        shmem_int_wait_until_some_vector(words, WORDS, indices, done, SHMEM_CMP_EQ, values);
    EXPECT(count >= 1 && count <= WORDS - taken);
    for (size_t i = 0; i < count && i < WORDS; ++i) {
      take(&indices[i], 1, done, words, values[indices[i] % WORDS]);
    }
    taken += count ? count : WORDS;
  }
  EXPECT_EQUAL(WORDS,
               shmem_int_test_some_vector(words, WORDS, indices, NULL, SHMEM_CMP_EQ, values));
  EXPECT_EQUAL(0, shmem_int_test_some_vector(words, WORDS, indices, done, SHMEM_CMP_EQ, values));
}

/* Takes what a search found; nonzero if it is new. */
static int take_one(size_t k, int* seen) {
  EXPECT(k < WORDS);
  const int is_new = k < WORDS && !seen[k];
  if (is_new) {
    seen[k] = 1;
  }
  return is_new;
}

enum { CALLS_MAX = 100 * WORDS };

TEST(any_is_fair,
     "9.10.3, 9.10.10 wait_until_any, test_any: without a mask, calls come to each word") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  int waited[WORDS] = {0};
  int tested[WORDS] = {0};
  int found = 0;
  set_all_to(words, 4);
  shmem_int_wait_until_all(words, WORDS, NULL, SHMEM_CMP_EQ, 4);
  for (int call = 0; call < WORDS; ++call) {
    found += take_one(shmem_int_wait_until_any(words, WORDS, NULL, SHMEM_CMP_EQ, 4), waited);
  }
  EXPECT_EQUAL(WORDS, found);
  for (int call = 0; call < WORDS; ++call) {
    found += take_one(shmem_int_test_any(words, WORDS, NULL, SHMEM_CMP_NE, 0), tested);
  }
  EXPECT_EQUAL(2 * WORDS, found);
}

TEST(any_of_a_vector_is_fair, "9.10.6, 9.10.13 the vector forms of any: calls come to each word") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  int values[WORDS];
  int waited[WORDS] = {0};
  int tested[WORDS] = {0};
  int found = 0;
  for (int i = 0; i < WORDS; ++i) {
    values[i] = 1 + i;
  }
  set_words_of_neighbour(words, values);
  shmem_int_wait_until_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values);
  for (int call = 0; call < WORDS; ++call) {
    found +=
        take_one(shmem_int_wait_until_any_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values), waited);
    found += take_one(shmem_int_test_any_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values), tested);
  }
  for (int call = 0; call < CALLS_MAX && found < 2 * WORDS; ++call) {
    found +=
        take_one(shmem_int_wait_until_any_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values), waited);
    found += take_one(shmem_int_test_any_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values), tested);
  }
  EXPECT_EQUAL(2 * WORDS, found);
}

/* More arrays than a library may remember, in turn, and of different lengths. */
TEST(any_is_fair_to_many,
     "9.10.10 test_any: many arrays that are polled in turn, each comes to each word") {
  enum { ARRAYS = 200 };

  int* words = suite_symmetric((size_t)ARRAYS * WORDS * sizeof *words);
  static int seen[ARRAYS][WORDS];
  memset(seen, 0, sizeof seen);
  int expected = 0;
  int found = 0;
  for (int array = 0; array < ARRAYS; ++array) {
    expected += 1 + array % WORDS;
    for (int i = 0; i < WORDS; ++i) {
      words[array * WORDS + i] = 1;
    }
  }
  for (int call = 0; call < CALLS_MAX && found < expected; ++call) {
    for (int array = 0; array < ARRAYS; ++array) {
      const size_t length = (size_t)(1 + array % WORDS);
      found += take_one(shmem_int_test_any(&words[array * WORDS], length, NULL, SHMEM_CMP_EQ, 1),
                        seen[array]);
    }
  }
  EXPECT_EQUAL(expected, found);
}

TEST(some_are_fair,
     "9.10.4, 9.10.11 wait_until_some, test_some: without a mask, one call finds all that hold") {
  int* words = suite_symmetric(WORDS * sizeof *words);
  size_t indices[WORDS];
  set_all_to(words, 4);
  shmem_int_wait_until_all(words, WORDS, NULL, SHMEM_CMP_EQ, 4);
  for (int call = 0; call < 3; ++call) {
    int done[WORDS] = {0};
    EXPECT_EQUAL(WORDS, shmem_int_wait_until_some(words, WORDS, indices, NULL, SHMEM_CMP_EQ, 4));
    take(indices, WORDS, done, words, 4);
    int again[WORDS] = {0};
    EXPECT_EQUAL(WORDS, shmem_int_test_some(words, WORDS, indices, NULL, SHMEM_CMP_NE, 0));
    take(indices, WORDS, again, words, 4);
  }
}

TEST(all_of_nothing, "9.10.2, 9.10.5 wait_until_all: an empty set, by length or by mask") {
  int* words = suite_symmetric(2 * sizeof *words);
  const int all[2] = {1, 1};
  int values[2] = {5, 5};
  shmem_int_wait_until_all(words, 0, NULL, SHMEM_CMP_EQ, 5);
  shmem_int_wait_until_all(words, 2, all, SHMEM_CMP_EQ, 5);
  shmem_int_wait_until_all_vector(words, 2, all, SHMEM_CMP_EQ, values);
  EXPECT_EQUAL(0, words[0]);
}

TEST(empty_sets, "9.10 wait and test: an empty set, by length or by mask, returns at once") {
  int* words = suite_symmetric(2 * sizeof *words);
  const int all[2] = {1, 1};
  int values[2] = {5, 5};
  size_t indices[2] = {7, 7};
  EXPECT_EQUAL(SIZE_MAX, shmem_int_wait_until_any(words, 0, NULL, SHMEM_CMP_EQ, 5));
  EXPECT_EQUAL(SIZE_MAX, shmem_int_wait_until_any(words, 2, all, SHMEM_CMP_EQ, 5));
  EXPECT_EQUAL(SIZE_MAX, shmem_int_wait_until_any_vector(words, 2, all, SHMEM_CMP_EQ, values));
  EXPECT_EQUAL(0, shmem_int_wait_until_some(words, 0, indices, NULL, SHMEM_CMP_EQ, 5));
  EXPECT_EQUAL(0, shmem_int_wait_until_some(words, 2, indices, all, SHMEM_CMP_EQ, 5));
  EXPECT_EQUAL(0, shmem_int_wait_until_some_vector(words, 2, indices, all, SHMEM_CMP_EQ, values));
  EXPECT_EQUAL(1, shmem_int_test_all(words, 0, NULL, SHMEM_CMP_EQ, 5));
  EXPECT_EQUAL(SIZE_MAX, shmem_int_test_any(words, 0, NULL, SHMEM_CMP_EQ, 5));
  EXPECT_EQUAL(0, shmem_int_test_some(words, 0, indices, NULL, SHMEM_CMP_EQ, 5));
  EXPECT_EQUAL(SIZE_MAX, shmem_int_test_any(words, 2, all, SHMEM_CMP_EQ, 0));
  EXPECT_EQUAL(0, shmem_int_test_some(words, 2, indices, all, SHMEM_CMP_EQ, 0));
  EXPECT_EQUAL(7, indices[0]);
}

TEST(wait_for_slow_peer, "9.10.1 wait_until: waits for a PE that dawdles") {
  long* word = suite_symmetric(sizeof *word);
  for (int round = 1; round <= 5; ++round) {
    suite_dawdle(round);
    shmem_fence(); /* nothing else orders two sets */
    shmem_long_atomic_set(word, round, suite_right());
    shmem_long_wait_until(word, SHMEM_CMP_GE, round);
  }
  EXPECT_EQUAL(5, *word);
}
