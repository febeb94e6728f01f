// Waits and tests, of words of 2, 4 and 8 bytes, compared with one value or with one each. By one
// thread.
//
// Order: what a peer made visible before it wrote the word is visible after the wait, and after a
// test that is true.
#ifndef WEFT_NVSHMEM_WAITS_CUH
#define WEFT_NVSHMEM_WAITS_CUH

#include <weft/device.cuh>

#include <weft_nvshmem/words.cuh>

namespace weft_nvshmem {

// The words of a wait; those whose `status` is not 0 are left out (null: none is).
template <typename T>
struct WaitSet {
  const T* words;
  std::size_t count;
  const int* status;
  int cmp;
};

namespace waits {

namespace wd = weft::device;

// Read past the caches, which do not see what peers write.
template <typename T>
__device__ T load(const T* word) {
  if constexpr (sizeof(T) == 2) {
    return *const_cast<const volatile T*>(word);
  } else {
    return wd::detail::read_word(word);
  }
}

// One value for all words, or one for each.
template <typename T>
struct Values {
  T one;
  const T* each;

  __device__ T at(std::size_t i) const { return each == nullptr ? one : each[i]; }
};

template <typename T>
struct Search {
  const T* words;
  std::size_t count;
  const int* status;
  wd::Comparison comparison;
  Values<T> values;

  __device__ bool takes(std::size_t i) const { return status == nullptr || status[i] == 0; }

  __device__ bool is_true(std::size_t i) const {
    return wd::compare(load(words + i), comparison, values.at(i));
  }

  __device__ bool is_empty() const {
    for (std::size_t i = 0; i < count; ++i) {
      if (takes(i)) {
        return false;
      }
    }
    return true;
  }

  __device__ bool all() const {
    for (std::size_t i = 0; i < count; ++i) {
      if (takes(i) && !is_true(i)) {
        return false;
      }
    }
    return true;
  }

  __device__ std::size_t any() const {
    for (std::size_t i = 0; i < count; ++i) {
      if (takes(i) && is_true(i)) {
        return i;
      }
    }
    return SIZE_MAX;
  }

  __device__ std::size_t some(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (takes(i) && is_true(i)) {
        indices[found++] = i;
      }
    }
    return found;
  }

  // A report of the wait names the first word.
  [[nodiscard]] __device__ wd::detail::Failure waiting() const {
    return {wd::FailureKind::None,
            wd::OperationName::WaitUntil,
            -1,
            words,
            static_cast<std::uint64_t>(bits_as<BitsOf<sizeof(T)>>(values.at(0))),
            sizeof(T)};
  }
};

template <typename T>
__device__ Search<Canonical<T>> search(const WaitSet<T>& set, const Values<Canonical<T>>& values) {
  return {reinterpret_cast<const Canonical<T>*>(set.words), set.count, set.status,
          comparison_of(set.cmp), values};
}

template <typename T>
__device__ Search<Canonical<T>> search(const WaitSet<T>& set, T value) {
  return search(set, Values<Canonical<T>>{static_cast<Canonical<T>>(value), nullptr});
}

template <typename T>
__device__ Search<Canonical<T>> search(const WaitSet<T>& set, const T* values) {
  return search(set, Values<Canonical<T>>{{}, reinterpret_cast<const Canonical<T>*>(values)});
}

// What was read is followed by what the writer did before it.
inline __device__ void acquire() {
  // SYNC device-signal (pairs with include/weft/device/signal.cuh): after the words, what their
  // writers did before
  wd::fence_acquire();
}

template <typename T>
__device__ bool test_all(const Search<T>& search) {
  wd::detail::serve();
  const bool is_so = search.all();
  if (is_so) {
    acquire();
  }
  return is_so;
}

template <typename T>
__device__ std::size_t test_any(const Search<T>& search) {
  wd::detail::serve();
  const std::size_t index = search.any();
  if (index != SIZE_MAX) {
    acquire();
  }
  return index;
}

template <typename T>
__device__ std::size_t test_some(const Search<T>& search, std::size_t* indices) {
  wd::detail::serve();
  const std::size_t found = search.some(indices);
  if (found != 0) {
    acquire();
  }
  return found;
}

template <typename T>
__device__ void wait_all(const Search<T>& search) {
  if (search.count != 0) {
    wd::detail::spin_until(search.waiting(), [&] { return search.all(); });
    acquire();
  }
}

template <typename T>
__device__ std::size_t wait_any(const Search<T>& search) {
  std::size_t index = SIZE_MAX;
  if (!search.is_empty()) {
    wd::detail::spin_until(search.waiting(), [&] {
      index = search.any();
      return index != SIZE_MAX;
    });
    acquire();
  }
  return index;
}

template <typename T>
__device__ std::size_t wait_some(const Search<T>& search, std::size_t* indices) {
  std::size_t found = 0;
  if (!search.is_empty()) {
    wd::detail::spin_until(search.waiting(), [&] {
      found = search.some(indices);
      return found != 0;
    });
    acquire();
  }
  return found;
}

}  // namespace waits

template <typename T>
__device__ void wait_until(T* word, int cmp, T value) {
  if constexpr (sizeof(T) == 2) {
    waits::wait_all(waits::search(WaitSet<T>{word, 1, nullptr, cmp}, value));
  } else {
    weft::device::wait_until(reinterpret_cast<const Canonical<T>*>(word), comparison_of(cmp),
                             static_cast<Canonical<T>>(value));
  }
}

template <typename T>
__device__ int test(T* word, int cmp, T value) {
  return waits::test_all(waits::search(WaitSet<T>{word, 1, nullptr, cmp}, value)) ? 1 : 0;
}

// `Values`: T, or a pointer to one for each word.
template <typename T, typename Values>
__device__ void wait_until_all(const WaitSet<T>& set, Values values) {
  waits::wait_all(waits::search(set, values));
}

template <typename T, typename Values>
__device__ std::size_t wait_until_any(const WaitSet<T>& set, Values values) {
  return waits::wait_any(waits::search(set, values));
}

template <typename T, typename Values>
__device__ std::size_t wait_until_some(const WaitSet<T>& set, std::size_t* indices, Values values) {
  return waits::wait_some(waits::search(set, values), indices);
}

// 1 for an empty set, as in OpenSHMEM 1.5; NVSHMEM's page says both 0 and 1.
template <typename T, typename Values>
__device__ int test_all(const WaitSet<T>& set, Values values) {
  return waits::test_all(waits::search(set, values)) ? 1 : 0;
}

template <typename T, typename Values>
__device__ std::size_t test_any(const WaitSet<T>& set, Values values) {
  return waits::test_any(waits::search(set, values));
}

template <typename T, typename Values>
__device__ std::size_t test_some(const WaitSet<T>& set, std::size_t* indices, Values values) {
  return waits::test_some(waits::search(set, values), indices);
}

}  // namespace weft_nvshmem

#endif  // WEFT_NVSHMEM_WAITS_CUH
