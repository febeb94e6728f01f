// The table of operations and types, the arithmetic, and libfabric's thirteen calls.
//
// Threads: any.
#include "loom/src/atomics.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <sched.h>
#include <unistd.h>

#include "loom/src/endpoint.hpp"
#include "loom/src/stubs.hpp"

namespace loom {
namespace {

// A bit for each type, from FI_INT8 on.
constexpr std::uint32_t kIntegers = 0x00ff;
constexpr std::uint32_t kNumbers = 0x03ff;  // and FI_FLOAT, FI_DOUBLE

std::uint32_t types_of_update(fi_op op) {
  switch (op) {
    case FI_MIN:
    case FI_MAX:
    case FI_SUM:
    case FI_ATOMIC_WRITE:
      return kNumbers;
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
      return kIntegers;
    default:  // libfabric's list grows
      return 0;
  }
}

std::uint32_t types_of(AtomicForm form, fi_op op) {
  if (form != AtomicForm::Compare) {
    return form == AtomicForm::Fetch && op == FI_ATOMIC_READ ? kNumbers : types_of_update(op);
  }
  if (op == FI_MSWAP) {
    return kIntegers;
  }
  return op >= FI_CSWAP && op <= FI_CSWAP_GT ? kNumbers : 0;
}

template <typename T>
bool swaps(fi_op op, T compare, T old) {
  switch (op) {
    case FI_CSWAP:
      return compare == old;
    case FI_CSWAP_NE:
      return compare != old;
    case FI_CSWAP_LE:
      return compare <= old;
    case FI_CSWAP_LT:
      return compare < old;
    case FI_CSWAP_GE:
      return compare >= old;
    default:
      return compare > old;
  }
}

template <typename T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {  // wraps around
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

template <typename T>
T of_bits(fi_op op, T old, T operand, T compare) {
  switch (op) {
    case FI_LOR:
      return static_cast<T>(old != 0 || operand != 0);
    case FI_LAND:
      return static_cast<T>(old != 0 && operand != 0);
    case FI_LXOR:
      return static_cast<T>((old != 0) != (operand != 0));
    case FI_BOR:
      return static_cast<T>(old | operand);
    case FI_BAND:
      return static_cast<T>(old & operand);
    case FI_BXOR:
      return static_cast<T>(old ^ operand);
    default:  // FI_MSWAP
      return static_cast<T>((old & ~compare) | (operand & compare));
  }
}

template <typename T>
T updated(fi_op op, T old, T operand, T compare) {
  switch (op) {
    case FI_MIN:
      return std::min(old, operand);
    case FI_MAX:
      return std::max(old, operand);
    case FI_SUM:
      return sum(old, operand);
    case FI_ATOMIC_READ:
      return old;
    case FI_ATOMIC_WRITE:
      return operand;
    default:
      break;
  }
  if (op >= FI_CSWAP && op <= FI_CSWAP_GT) {
    return swaps(op, compare, old) ? operand : old;
  }
  if constexpr (std::is_integral_v<T>) {
    return of_bits(op, old, operand, compare);
  } else {
    return old;
  }
}

template <typename T>
void update_as(const Atomic& atomic, const std::byte* before, std::byte* after) {
  const auto value_at = [](const std::byte* place) {
    T value{};
    std::memcpy(&value, place, sizeof(T));
    return value;
  };
  const T value = updated(atomic.op, value_at(before), value_at(atomic.operand.data()),
                          value_at(atomic.compare.data()));
  std::memcpy(after, &value, sizeof(T));
}

}  // namespace

int check_atomic(AtomicForm form, fi_op op, fi_datatype type) {
  if (type < 0 || type >= FI_DATATYPE_LAST || op < 0 || op >= FI_ATOMIC_OP_LAST) {
    return -FI_EINVAL;
  }
  return (types_of(form, op) >> static_cast<unsigned>(type) & 1U) != 0 ? 0 : -FI_EOPNOTSUPP;
}

std::size_t atomic_bytes(fi_datatype type) {
  constexpr std::array<std::size_t, 10> kBytes{1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return kBytes.at(static_cast<std::size_t>(type));
}

Atomic copy_of(const AtomicRequest& request) {
  Atomic atomic{.op = request.op, .type = request.type, .result = request.result};
  const std::size_t bytes = atomic_bytes(request.type);
  if (request.op != FI_ATOMIC_READ) {  // which has none
    std::memcpy(atomic.operand.data(), request.operand, bytes);
  }
  if (request.form == AtomicForm::Compare) {
    std::memcpy(atomic.compare.data(), request.compare, bytes);
  }
  return atomic;
}

void update_word(const Atomic& atomic, const std::byte* before, std::byte* after) {
  using Update = void (*)(const Atomic&, const std::byte*, std::byte*);
  constexpr std::array<Update, 10> kUpdates{update_as<std::int8_t>,  update_as<std::uint8_t>,
                                            update_as<std::int16_t>, update_as<std::uint16_t>,
                                            update_as<std::int32_t>, update_as<std::uint32_t>,
                                            update_as<std::int64_t>, update_as<std::uint64_t>,
                                            update_as<float>,        update_as<double>};
  kUpdates.at(static_cast<std::size_t>(atomic.type))(atomic, before, after);
}

WordLock::WordLock(Segment& segment, std::uint64_t address)
    : owner_(segment.word_locks[address / 8 % segment.word_locks.size()]) {
  constexpr int kTriesBeforeLook = 1000;
  const auto me = static_cast<std::uint32_t>(::getpid());
  std::uint32_t owner = 0;
  // SYNC word-lock: what the last holder has written.
  for (int tries = 0; !owner_.compare_exchange_weak(owner, me, std::memory_order_acquire,
                                                    std::memory_order_relaxed);
       ++tries) {
    const bool is_left =
        tries % kTriesBeforeLook == kTriesBeforeLook - 1 && owner != me && !is_alive(owner);
    owner = is_left ? owner : 0;  // of a dead process: the exchange takes it over
    if (!is_left) {
      ::sched_yield();
    }
  }
}

WordLock::~WordLock() {
  // SYNC word-lock: the word before the next holder.
  owner_.store(0, std::memory_order_release);
}

// ---- Libfabric's calls: one element, in one piece.

namespace {

struct Place {
  fi_addr_t target;
  std::uint64_t address;
  std::uint64_t key;
};

ssize_t post_atomic(
    fid_ep* handle, const AtomicRequest& atomic, Place place, std::uint64_t flags, void* context) {
  const bool completes = context != nullptr || (flags & FI_INJECT) == 0;
  return object_of<Endpoint>(handle).post_atomic(atomic, {.kind = OperationKind::Atomic,
                                                          .target = place.target,
                                                          .remote_address = place.address,
                                                          .key = place.key,
                                                          .flags = flags & ~FI_INJECT,
                                                          .context = context,
                                                          .completes = completes});
}

bool is_one(const fi_ioc* pieces, std::size_t count) {
  return count == 1 && pieces != nullptr && pieces->count == 1 && pieces->addr != nullptr;
}

ssize_t post_message(fid_ep* handle,
                     const fi_msg_atomic* message,
                     AtomicRequest atomic,
                     std::uint64_t flags) {
  const bool has_operand =
      is_one(message->msg_iov, message->iov_count) || message->op == FI_ATOMIC_READ;
  if (!has_operand || message->rma_iov_count != 1 || message->rma_iov->count != 1) {
    return -FI_EINVAL;
  }
  atomic.op = message->op;
  atomic.type = message->datatype;
  atomic.operand = message->iov_count == 0 ? nullptr : message->msg_iov->addr;
  return post_atomic(handle, atomic, {message->addr, message->rma_iov->addr, message->rma_iov->key},
                     flags, message->context);
}

template <AtomicForm kForm>
int is_valid(fid_ep* handle, fi_datatype type, fi_op op, std::size_t* count) {
  if (!object_of<Endpoint>(handle).has_atomics()) {
    return -FI_ENOSYS;
  }
  if (count != nullptr) {
    *count = 1;
  }
  return check_atomic(kForm, op, type);
}

fi_ops_atomic kAtomicOps{
    .size = sizeof(fi_ops_atomic),
    .write = [](fid_ep* ep,
                const void* operand,
                std::size_t count,
                void*,
                fi_addr_t target,
                std::uint64_t address,
                std::uint64_t key,
                fi_datatype type,
                fi_op op,
                void* context) -> ssize_t {
      return count != 1 ? -FI_EINVAL
                        : post_atomic(ep, {.op = op, .type = type, .operand = operand},
                                      {target, address, key}, 0, context);
    },
    .writev = [](fid_ep* ep,
                 const fi_ioc* operand,
                 void**,
                 std::size_t count,
                 fi_addr_t target,
                 std::uint64_t address,
                 std::uint64_t key,
                 fi_datatype type,
                 fi_op op,
                 void* context) -> ssize_t {
      return !is_one(operand, count)
                 ? -FI_EINVAL
                 : post_atomic(ep, {.op = op, .type = type, .operand = operand->addr},
                               {target, address, key}, 0, context);
    },
    .writemsg = [](fid_ep* ep,
                   const fi_msg_atomic* message,
                   std::uint64_t flags) { return post_message(ep, message, {}, flags); },
    .inject = [](fid_ep* ep,
                 const void* operand,
                 std::size_t count,
                 fi_addr_t target,
                 std::uint64_t address,
                 std::uint64_t key,
                 fi_datatype type,
                 fi_op op) -> ssize_t {
      return count != 1 ? -FI_EINVAL
                        : post_atomic(ep, {.op = op, .type = type, .operand = operand},
                                      {target, address, key}, FI_INJECT, nullptr);
    },
    .readwrite = [](fid_ep* ep,
                    const void* operand,
                    std::size_t count,
                    void*,
                    void* result,
                    void*,
                    fi_addr_t target,
                    std::uint64_t address,
                    std::uint64_t key,
                    fi_datatype type,
                    fi_op op,
                    void* context) -> ssize_t {
      return count != 1 || result == nullptr ? -FI_EINVAL
                                             : post_atomic(ep,
                                                           {.form = AtomicForm::Fetch,
                                                            .op = op,
                                                            .type = type,
                                                            .operand = operand,
                                                            .result = result},
                                                           {target, address, key}, 0, context);
    },
    .readwritev = kNotThere,
    .readwritemsg = [](fid_ep* ep,
                       const fi_msg_atomic* message,
                       fi_ioc* result,
                       void**,
                       std::size_t count,
                       std::uint64_t flags) -> ssize_t {
      return !is_one(result, count)
                 ? -FI_EINVAL
                 : post_message(ep, message, {.form = AtomicForm::Fetch, .result = result->addr},
                                flags);
    },
    .compwrite = [](fid_ep* ep,
                    const void* operand,
                    std::size_t count,
                    void*,
                    const void* compare,
                    void*,
                    void* result,
                    void*,
                    fi_addr_t target,
                    std::uint64_t address,
                    std::uint64_t key,
                    fi_datatype type,
                    fi_op op,
                    void* context) -> ssize_t {
      return count != 1 || compare == nullptr || result == nullptr
                 ? -FI_EINVAL
                 : post_atomic(ep,
                               {.form = AtomicForm::Compare,
                                .op = op,
                                .type = type,
                                .operand = operand,
                                .compare = compare,
                                .result = result},
                               {target, address, key}, 0, context);
    },
    .compwritev = kNotThere,
    .compwritemsg = [](fid_ep* ep,
                       const fi_msg_atomic* message,
                       const fi_ioc* compare,
                       void**,
                       std::size_t compare_count,
                       fi_ioc* result,
                       void**,
                       std::size_t count,
                       std::uint64_t flags) -> ssize_t {
      return !is_one(compare, compare_count) || !is_one(result, count)
                 ? -FI_EINVAL
                 : post_message(ep, message,
                                {.form = AtomicForm::Compare,
                                 .compare = compare->addr,
                                 .result = result->addr},
                                flags);
    },
    .writevalid = is_valid<AtomicForm::Base>,
    .readwritevalid = is_valid<AtomicForm::Fetch>,
    .compwritevalid = is_valid<AtomicForm::Compare>};

}  // namespace

fi_ops_atomic* atomic_ops() {
  return &kAtomicOps;
}

// The operand is copied here, so it may be reused at once.
ssize_t Endpoint::post_atomic(const AtomicRequest& asked, Request request) {
  if (!has_atomics()) {
    return -FI_ENOSYS;
  }
  if (const int error = check_atomic(asked.form, asked.op, asked.type); error != 0) {
    return error;
  }
  if (asked.operand == nullptr && asked.op != FI_ATOMIC_READ) {
    return -FI_EINVAL;
  }
  const Atomic carried = copy_of(asked);
  const iovec bytes{nullptr, atomic_bytes(asked.type)};
  request.atomic = &carried;
  request.local = {&bytes, 1};
  return post(request);
}

}  // namespace loom
