// Active sets, implemented by additions to the words of pSync. The PE that awaits a count subtracts
// it afterwards, so that the array is restored. Each data-moving call begins with a sync, so that
// pSync may be reused at once.
//
// These algorithms are correct for every set and size, and simple. The set of all PEs, which most
// programs use, is mapped to the team of all PEs and its faster algorithms, and does not touch
// pSync.
#include "src/shmem/active_set.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/api/teams.hpp"

namespace weft::api {
namespace {

using collectives::Collectives;
using collectives::Team;
using runtime::Runtime;

// Words of pSync: one per round of the sync, then these.
enum Word : std::size_t { kArrivals = 32, kOffset = 33, kWordsUsed = 34 };

static_assert(kWordsUsed <= kActiveSetWords && sizeof(long) == sizeof(std::uint64_t));

// One call on a set, from the view of one of its PEs.
class ActiveSetCall {
 public:
  ActiveSetCall(Runtime& runtime, const char* name, const ActiveSet& set)
      : rma_(runtime.rma()),
        context_(runtime.collectives().world().context()),
        name_(name),
        set_(set),
        place_((static_cast<int>(runtime.pe().value) - set.start) >> set.log2_stride) {}

  [[nodiscard]] int size() const { return set_.size; }

  [[nodiscard]] int place() const { return place_; }

  [[nodiscard]] Pe pe(int place) const {
    return Pe(static_cast<std::uint32_t>(set_.start + (place % set_.size << set_.log2_stride)));
  }

  // A dissemination barrier, as in Team::sync between leaders.
  Status sync() {
    Status status = Status::Ok;
    std::size_t round = 0;
    for (int distance = 1; distance < size() && status == Status::Ok; ++round, distance *= 2) {
      status = add(round, 1, pe(place_ + distance));
      if (status == Status::Ok) {
        status = take(round, 1, pe(place_ + size() - distance));
      }
    }
    return status;
  }

  Status send(int to, void* dest, const void* source, std::size_t bytes) {
    return rma_.put_signal(context_, rma_.place_of(dest, pe(to)),
                           {static_cast<const std::byte*>(source), bytes},
                           addition(kArrivals, 1, pe(to)), pe(to), rma::Blocking::No);
  }

  Status get(int from, std::span<std::byte> dest, const void* source) {
    return rma_.get(context_, dest, rma_.place_of(source, pe(from)), pe(from), rma::Blocking::Yes);
  }

  // Waits until the sources of all sends may be reused, and until `count` pieces have arrived from
  // the others.
  Status finish(std::uint64_t count, int from) {
    const Status sent = rma_.quiet(context_);
    const Status heard = count == 0 ? Status::Ok : take(kArrivals, count, pe(from));
    return sent == Status::Ok ? heard : sent;
  }

  // The sum of `mine` over all places before this one.
  Status offset_of(std::uint64_t mine, std::uint64_t* offset) {
    Status status = Status::Ok;
    *offset = 0;
    if (place_ > 0) {
      status = wait(kOffset, 1, pe(place_ - 1));
      *offset = rma::load_word(word(kOffset)) - 1;
      subtract(kOffset, *offset + 1);
    }
    return status == Status::Ok && place_ + 1 < size()
               ? add(kOffset, *offset + mine + 1, pe(place_ + 1))
               : status;
  }

 private:
  [[nodiscard]] std::uint64_t* word(std::size_t index) const {
    return reinterpret_cast<std::uint64_t*>(set_.psync + index);
  }

  [[nodiscard]] rma::Signal addition(std::size_t index, std::uint64_t value, Pe to) const {
    return {.word = rma_.place_of(word(index), to), .value = value, .code = rma::AtomicCode::Add};
  }

  Status add(std::size_t index, std::uint64_t value, Pe to) {
    return rma_.signal(context_, addition(index, value, to), to);
  }

  Status wait(std::size_t index, std::uint64_t least, Pe whom) {
    return rma_.waiter().wait(
        [&] { return rma::load_word(word(index)) >= least; },
        [&] { return fmt::format("waiting for PE {} in {}", whom.value, name_); }, others(),
        [&] { return AwaitedWords(rma_.doorbells().place_of(word(index), pe(place_))); });
  }

  Status take(std::size_t index, std::uint64_t count, Pe whom) {
    const Status status = wait(index, count, whom);
    subtract(index, count);
    return status;
  }

  void subtract(std::size_t index, std::uint64_t count) {
    static_cast<void>(add(index, -count, pe(place_)));
  }

  rma::Rma& rma_;
  rma::Context& context_;
  const char* name_;
  ActiveSet set_;
  int place_;
};

Status check_set(Runtime& runtime, const char* name, const ActiveSet& set) {
  const auto count = static_cast<std::int64_t>(runtime.pe_count());
  const std::int64_t stride =
      set.log2_stride < 0 || set.log2_stride > 30 ? count : std::int64_t{1} << set.log2_stride;
  const std::int64_t mine = std::int64_t{runtime.pe().value} - set.start;
  const bool fits = set.size >= 1 && set.start >= 0 && set.log2_stride >= 0 &&
                    set.start + (set.size - 1) * stride < count;
  if (!fits || mine < 0 || mine % stride != 0 || mine / stride >= set.size) {
    report(Status::InvalidArgument,
           fmt::format(
               "{}: the active set (start {}, log stride {}, size {}) {}", name, set.start,
               set.log2_stride, set.size,
               fits ? fmt::format("does not hold PE {}, which calls it; only the PEs of the set "
                                  "may (Open MPI returns there without a word)",
                                  runtime.pe().value)
                    : fmt::format("leaves the job's {} PEs", count)));
    return Status::InvalidArgument;
  }
  return Status::Ok;
}

bool is_everybody(Runtime& runtime, const ActiveSet& set) {
  return set.size == static_cast<int>(runtime.pe_count());
}

// Runs team(Team&) on the team of all PEs if the set contains all PEs, else body(ActiveSetCall&).
template <typename OnTeam, typename Body>
int call(const char* name, const ActiveSet& set, OnTeam&& on_team, Body&& body) {
  return guarded(name, [&](Runtime& runtime) {
    Status status = check_set(runtime, name, set);
    if (status != Status::Ok) {
      return static_cast<int>(status);
    }
    if (is_everybody(runtime, set)) {
      return finish(on_team(runtime.collectives().world()), name);
    }
    const int me = weft_pe();
    status = check({name, set.psync, kWordsUsed * sizeof(long), me, alignof(long)});
    ActiveSetCall one(runtime, name, set);
    return status == Status::Ok ? finish(body(one), name) : static_cast<int>(status);
  });
}

// As above, after checking both sides.
template <typename OnTeam, typename Body>
int call(const char* name,
         const ActiveSet& set,
         Bytes dest,
         Bytes source,
         OnTeam&& on_team,
         Body&& body) {
  const Status status = check_sides(name, dest, source);
  return status == Status::Ok
             ? call(name, set, std::forward<OnTeam>(on_team), std::forward<Body>(body))
             : static_cast<int>(status);
}

std::size_t blocks_of(const ActiveSet& set, std::size_t bytes) {
  return times(bytes, static_cast<std::size_t>(std::max(set.size, 0)));
}

// Puts block k of `source`, at k * step, to `to` at place k, for all others; then copies its own
// block.
Status exchange_blocks(ActiveSetCall& one,
                       std::byte* to,
                       const std::byte* source,
                       std::size_t step,
                       std::size_t bytes) {
  Status status = one.sync();
  for (int k = 1; k < one.size() && status == Status::Ok; ++k) {
    const int place = (one.place() + k) % one.size();
    status = one.send(place, to, source + static_cast<std::size_t>(place) * step, bytes);
  }
  if (status == Status::Ok && bytes > 0) {
    std::memmove(to, source + static_cast<std::size_t>(one.place()) * step, bytes);
  }
  return status == Status::Ok
             ? one.finish(static_cast<std::uint64_t>(one.size()) - 1, one.place() + one.size() - 1)
             : status;
}

}  // namespace

int active_sync(const char* name, const ActiveSet& set) {
  return call(
      name, set, [](Team& team) { return team.sync("sync"); },
      [](ActiveSetCall& one) { return one.sync(); });
}

int active_barrier(const char* name, const ActiveSet& set) {
  const int quiet = weft_quiet();
  const int sync = active_sync(name, set);
  return quiet == WEFT_OK ? sync : quiet;
}

int active_alltoall(
    const char* name, const ActiveSet& set, void* dest, const void* source, std::size_t bytes) {
  const collectives::Sides sides = sides_of(dest, source);
  return call(
      name, set, {dest, blocks_of(set, bytes)}, {source, blocks_of(set, bytes)},
      [&](Team& team) { return Collectives::alltoall(team, sides, bytes); },
      [&](ActiveSetCall& one) {
        return exchange_blocks(one, sides.dest + static_cast<std::size_t>(one.place()) * bytes,
                               sides.source, bytes, bytes);
      });
}

int active_alltoalls(
    const char* name, const ActiveSet& set, void* dest, const void* source, weft_stride stride) {
  const collectives::Sides sides = sides_of(dest, source);
  const collectives::Strides strides = strides_of(stride);
  const std::size_t blocks = blocks_of(set, 1);
  return call(
      name, set, {dest, strided_bytes(stride, stride.dest, blocks)},
      {source, strided_bytes(stride, stride.source, blocks)},
      [&](Team& team) { return Collectives::alltoalls(team, sides, strides); },
      [&](ActiveSetCall& one) {
        const std::size_t dest_step = strides.dest * strides.element_bytes;
        const std::size_t source_step = strides.source * strides.element_bytes;
        Status status = Status::Ok;
        for (std::size_t i = 0; i < strides.count && status == Status::Ok; ++i) {
          const std::size_t row = static_cast<std::size_t>(one.place()) * strides.count + i;
          status =
              exchange_blocks(one, sides.dest + row * dest_step, sides.source + i * source_step,
                              strides.count * source_step, strides.element_bytes);
        }
        return status;
      });
}

namespace {

// A binomial tree, relative to the root; `dest` of the root is unchanged.
Status broadcast(ActiveSetCall& one, collectives::Sides sides, std::size_t bytes, int root) {
  Status status = one.sync();
  const int place = (one.place() + one.size() - root) % one.size();
  if (status == Status::Ok && place > 0) {
    status = one.finish(1, root);
  }
  int lowest = 1;
  while (lowest <= place) {
    lowest *= 2;
  }
  const void* data = place == 0 ? sides.source : sides.dest;
  for (int distance = lowest; place + distance < one.size() && status == Status::Ok;
       distance *= 2) {
    status = one.send(one.place() + distance, sides.dest, data, bytes);
  }
  return status == Status::Ok ? one.finish(0, root) : status;
}

Status reduce(ActiveSetCall& one,
              collectives::Sides sides,
              std::size_t count,
              const collectives::Reducer& reducer) {
  std::vector<std::byte> result(count * reducer.element_bytes);
  std::vector<std::byte> other(result.size());
  Status status = one.sync();
  if (status == Status::Ok) {
    status = one.get(0, result, sides.source);
  }
  for (int place = 1; place < one.size() && status == Status::Ok; ++place) {
    status = one.get(place, other, sides.source);
    reducer.combine(result.data(), result.data(), other.data(), count);
  }
  if (status == Status::Ok) {
    status = one.sync();  // all have read, since `dest` may equal `source`
  }
  std::ranges::copy(result, sides.dest);
  return status;
}

}  // namespace

int active_broadcast(const char* name,
                     const ActiveSet& set,
                     void* dest,
                     const void* source,
                     std::size_t bytes,
                     int root) {
  if (root < 0 || root >= set.size) {
    return report(
        Status::InvalidArgument,
        fmt::format("{}: there is no place {} in an active set of {} PEs", name, root, set.size));
  }
  const collectives::Sides sides = sides_of(dest, source);
  return call(
      name, set, {dest, bytes}, {source, bytes},
      [&](Team& team) {
        // The root's `dest` must not change: it is restored, or gets the root's own source.
        const bool is_root =
            static_cast<int>(team.index()) == root && team.members().is_on_one_node();
        std::vector<std::byte> kept;
        if (static_cast<int>(team.index()) == root && !is_root) {
          kept.assign(sides.dest, sides.dest + bytes);
        }
        const Status status = Collectives::broadcast(
            team,
            is_root ? collectives::Sides{const_cast<std::byte*>(sides.source), sides.source}
                    : sides,
            bytes, static_cast<std::uint32_t>(root));
        std::ranges::copy(kept, sides.dest);
        return status;
      },
      [&](ActiveSetCall& one) { return broadcast(one, sides, bytes, root); });
}

int active_fcollect(
    const char* name, const ActiveSet& set, void* dest, const void* source, std::size_t bytes) {
  const collectives::Sides sides = sides_of(dest, source);
  return call(
      name, set, {dest, blocks_of(set, bytes)}, {source, bytes},
      [&](Team& team) { return Collectives::fcollect(team, sides, bytes); },
      [&](ActiveSetCall& one) {
        return exchange_blocks(one, sides.dest + static_cast<std::size_t>(one.place()) * bytes,
                               sides.source, 0, bytes);
      });
}

int active_collect(
    const char* name, const ActiveSet& set, void* dest, const void* source, std::size_t bytes) {
  const collectives::Sides sides = sides_of(dest, source);
  return call(
      name, set, {dest, bytes}, {source, bytes},
      [&](Team& team) { return Collectives::collect(team, sides, bytes); },
      [&](ActiveSetCall& one) {
        std::uint64_t offset = 0;
        const Status synced = one.sync();
        const Status status = synced == Status::Ok ? one.offset_of(bytes, &offset) : synced;
        return status == Status::Ok
                   ? exchange_blocks(one, sides.dest + offset, sides.source, 0, bytes)
                   : status;
      });
}

int active_reduce(const char* name,
                  const ActiveSet& set,
                  void* dest,
                  const void* source,
                  weft_elements elements,
                  weft_reduction reduction) {
  const collectives::Reducer reducer = reducer_of(elements.type, reduction);
  if (reducer.combine == nullptr) {
    return report(Status::InvalidArgument,
                  fmt::format("{}: type {} does not support reduction {}", name,
                              static_cast<int>(elements.type), static_cast<int>(reduction)));
  }
  const std::size_t bytes = times(elements.count, reducer.element_bytes);
  const collectives::Sides sides = sides_of(dest, source);
  return call(
      name, set, {dest, bytes}, {source, bytes},
      [&](Team& team) { return Collectives::reduce(team, sides, elements.count, reducer); },
      [&](ActiveSetCall& one) { return reduce(one, sides, elements.count, reducer); });
}

}  // namespace weft::api
