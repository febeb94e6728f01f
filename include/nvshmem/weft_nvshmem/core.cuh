// What the generated functions for kernels call: NVSHMEM's meanings on weft::device. Sizes are in
// bytes, and types are reduced to words of their size, so that few templates serve all names.
//
// Scopes: what a warp or a block calls begins with its synchronization, because NVSHMEM's programs
// rely on that: other threads of the scope may have written `source`. Blocking calls also end with
// one.
// Errors: as weft::device's.
#ifndef WEFT_NVSHMEM_CORE_CUH
#define WEFT_NVSHMEM_CORE_CUH

// First: it says by which library files with kernels register.
// clang-format off
#ifndef __CUDACC_RTC__
#include <weft_nvshmem/modules.h>
#endif
// clang-format on

#ifndef WEFT_DEVICE_OWN_PE_ANYWHERE
#define WEFT_DEVICE_OWN_PE_ANYWHERE 1
#endif
#include <weft/device.cuh>

#include <weft_nvshmem/reduce_operations.cuh>
#include <weft_nvshmem/types.h>
#include <weft_nvshmem/words.cuh>

namespace weft_nvshmem {

namespace wd = weft::device;

inline __device__ int my_pe() {
  return wd::pe();
}

inline __device__ int n_pes() {
  return wd::pe_count();
}

inline __device__ void info_get_version(int* major, int* minor) {
  *major = NVSHMEM_MAJOR_VERSION;
  *minor = NVSHMEM_MINOR_VERSION;
}

inline __device__ void info_get_name(char* name) {
  const char* from = NVSHMEM_VENDOR_STRING;
  do {
    *name++ = *from;
  } while (*from++ != '\0');
}

inline __device__ void vendor_get_version_info(int* major, int* minor, int* patch) {
  *major = NVSHMEM_VENDOR_MAJOR_VERSION;
  *minor = NVSHMEM_VENDOR_MINOR_VERSION;
  *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

// The kernel ends; the host sees CUDA's error at its next call.
inline __device__ void global_exit(int status) {
  printf("nvshmem_global_exit(%d) in a kernel of PE %d\n", status, wd::pe());
  __trap();
}

inline __device__ void* ptr(const void* dest, int pe) {
  return wd::ptr(const_cast<std::byte*>(static_cast<const std::byte*>(dest)), pe);
}

// There is no multicast.
inline __device__ void* mc_ptr(nvshmem_team_t, const void*) {
  return nullptr;
}

// ---- Teams: NVSHMEM's handles are Weft's numbers.

inline __device__ int team_my_pe(nvshmem_team_t team) {
  return team < 0 ? -1 : wd::team_pe(wd::Team{team});
}

inline __device__ int team_n_pes(nvshmem_team_t team) {
  return team < 0 ? -1 : wd::team_pe_count(wd::Team{team});
}

inline __device__ int team_translate_pe(nvshmem_team_t from, int pe, nvshmem_team_t to) {
  if (from < 0 || to < 0 || pe < 0 || pe >= team_n_pes(from)) {
    return -1;
  }
  const int world = wd::team_world_pe(wd::Team{from}, pe);
  const int count = team_n_pes(to);
  for (int i = 0; i < count; ++i) {
    if (wd::team_world_pe(wd::Team{to}, i) == world) {
      return i;
    }
  }
  return -1;
}

// ---- Order

inline __device__ void fence() {
  wd::fence();
}

inline __device__ void quiet() {
  wd::quiet();
}

// ---- Remote memory access

// The strides of iput and iget, in elements.
struct Strided {
  std::ptrdiff_t dest;
  std::ptrdiff_t source;
  std::size_t count;
  std::size_t element_bytes;
};

struct SignalUpdate {
  std::uint64_t* word;
  std::uint64_t value;
  int op;
};

inline __device__ wd::Signal signal_of(const SignalUpdate& update) {
  return {update.word, update.value,
          update.op == NVSHMEM_SIGNAL_ADD ? wd::SignalOp::Add : wd::SignalOp::Set};
}

template <typename Scope>
struct Rma {
  static __device__ void put(void* dest, const void* source, std::size_t bytes, int pe) {
    Scope::sync();
    wd::put<Scope>(static_cast<std::byte*>(dest), static_cast<const std::byte*>(source), bytes, pe);
  }

  static __device__ void put_nbi(void* dest, const void* source, std::size_t bytes, int pe) {
    Scope::sync();
    wd::put_nbi<Scope>(static_cast<std::byte*>(dest), static_cast<const std::byte*>(source), bytes,
                       pe);
  }

  static __device__ void get(void* dest, const void* source, std::size_t bytes, int pe) {
    Scope::sync();
    wd::get<Scope>(static_cast<std::byte*>(dest), static_cast<const std::byte*>(source), bytes, pe);
  }

  static __device__ void get_nbi(void* dest, const void* source, std::size_t bytes, int pe) {
    Scope::sync();
    wd::get_nbi<Scope>(static_cast<std::byte*>(dest), static_cast<const std::byte*>(source), bytes,
                       pe);
  }

  // Each thread moves its elements; each is a put of its own where the peer is not mapped.
  static __device__ void iput(void* dest, const void* source, const Strided& strided, int pe) {
    Scope::sync();
    each(strided, [&](std::size_t to, std::size_t from, std::size_t bytes) {
      wd::put<wd::Thread>(static_cast<std::byte*>(dest) + to,
                          static_cast<const std::byte*>(source) + from, bytes, pe);
    });
  }

  static __device__ void iget(void* dest, const void* source, const Strided& strided, int pe) {
    Scope::sync();
    each(strided, [&](std::size_t to, std::size_t from, std::size_t bytes) {
      wd::get<wd::Thread>(static_cast<std::byte*>(dest) + to,
                          static_cast<const std::byte*>(source) + from, bytes, pe);
    });
  }

  static __device__ void put_signal(
      void* dest, const void* source, std::size_t bytes, const SignalUpdate& signal, int pe) {
    Scope::sync();
    wd::put_signal<Scope>(static_cast<std::byte*>(dest), static_cast<const std::byte*>(source),
                          bytes, signal_of(signal), pe);
  }

  static __device__ void put_signal_nbi(
      void* dest, const void* source, std::size_t bytes, const SignalUpdate& signal, int pe) {
    Scope::sync();
    wd::put_signal_nbi<Scope>(static_cast<std::byte*>(dest), static_cast<const std::byte*>(source),
                              bytes, signal_of(signal), pe);
  }

  // One thread's fence is that of all that it has synchronized with. One by each would be a command
  // by each.
  static __device__ void fence() {
    Scope::sync();
    if (wd::is_leader<Scope>()) {
      wd::fence();
    }
    Scope::sync();
  }

  static __device__ void quiet() {
    Scope::sync();
    if (wd::is_leader<Scope>()) {
      wd::quiet();
    }
    Scope::sync();
  }

 private:
  // Calls move(to, from, bytes), in bytes, for this thread's elements.
  template <typename Move>
  static __device__ void each(const Strided& strided, Move&& move) {
    const std::size_t bytes = strided.element_bytes;
    for (std::size_t i = Scope::rank(); i < strided.count; i += Scope::size()) {
      move(i * static_cast<std::size_t>(strided.dest) * bytes,
           i * static_cast<std::size_t>(strided.source) * bytes, bytes);
    }
    Scope::sync();
  }
};

using ThreadRma = Rma<wd::Thread>;
using WarpRma = Rma<wd::Warp>;
using BlockRma = Rma<wd::Block>;

template <typename T>
__device__ void p(T* dest, T value, int pe) {
  using Bits = BitsOf<sizeof(T)>;
  wd::p(reinterpret_cast<Bits*>(dest), bits_as<Bits>(value), pe);
}

template <typename T>
__device__ T g(const T* source, int pe) {
  using Bits = BitsOf<sizeof(T)>;
  return bits_as<T>(wd::g(reinterpret_cast<const Bits*>(source), pe));
}

// ---- Signals

inline __device__ void signal_op(std::uint64_t* word, std::uint64_t value, int op, int pe) {
  wd::signal(signal_of({word, value, op}), pe);
}

inline __device__ std::uint64_t signal_fetch(const std::uint64_t* word) {
  return wd::signal_fetch(word);
}

inline __device__ std::uint64_t signal_wait_until(std::uint64_t* word,
                                                  int cmp,
                                                  std::uint64_t value) {
  return wd::signal_wait_until(word, comparison_of(cmp), value);
}

// ---- Atomics. All work on unsigned words: only the size matters.

template <typename T>
__device__ T atomic_fetch(const T* source, int pe) {
  return bits_as<T>(wd::atomic_fetch(reinterpret_cast<const BitsOf<sizeof(T)>*>(source), pe));
}

#define WEFT_NVSHMEM_UPDATE(name)                                               \
  template <typename T>                                                         \
  __device__ void atomic_##name(T* dest, T value, int pe) {                     \
    using Bits = BitsOf<sizeof(T)>;                                             \
    wd::atomic_##name(reinterpret_cast<Bits*>(dest), bits_as<Bits>(value), pe); \
  }
#define WEFT_NVSHMEM_FETCH_UPDATE(name)                                                            \
  template <typename T>                                                                            \
  __device__ T atomic_##name(T* dest, T value, int pe) {                                           \
    using Bits = BitsOf<sizeof(T)>;                                                                \
    return bits_as<T>(wd::atomic_##name(reinterpret_cast<Bits*>(dest), bits_as<Bits>(value), pe)); \
  }
WEFT_NVSHMEM_UPDATE(set)
WEFT_NVSHMEM_UPDATE(add)
WEFT_NVSHMEM_UPDATE(and)
WEFT_NVSHMEM_UPDATE(or)
WEFT_NVSHMEM_UPDATE(xor)
WEFT_NVSHMEM_FETCH_UPDATE(swap)
WEFT_NVSHMEM_FETCH_UPDATE(fetch_add)
WEFT_NVSHMEM_FETCH_UPDATE(fetch_and)
WEFT_NVSHMEM_FETCH_UPDATE(fetch_or)
WEFT_NVSHMEM_FETCH_UPDATE(fetch_xor)
#undef WEFT_NVSHMEM_UPDATE
#undef WEFT_NVSHMEM_FETCH_UPDATE

template <typename T>
__device__ T atomic_compare_swap(T* dest, T expected, T value, int pe) {
  using Bits = BitsOf<sizeof(T)>;
  return bits_as<T>(wd::atomic_compare_swap(reinterpret_cast<Bits*>(dest), bits_as<Bits>(expected),
                                            bits_as<Bits>(value), pe));
}

// The old nvshmemx_TYPE_signal; words of two bytes are stored.
template <typename T>
__device__ void set_word(T* dest, T value, int pe) {
  if constexpr (sizeof(T) < 4) {
    p(dest, value, pe);
  } else {
    atomic_set(dest, value, pe);
  }
}

}  // namespace weft_nvshmem

#include <weft_nvshmem/collectives.cuh>
#include <weft_nvshmem/waits.cuh>

#endif  // WEFT_NVSHMEM_CORE_CUH
