#include "src/collectives/collectives.hpp"

#include <cstring>

#include <fmt/format.h>

namespace weft::collectives {
namespace {

constexpr rma::Signal add_one(ControlWord& word) {
  return {.word = &word.value, .value = 1, .code = rma::AtomicCode::Add};
}

std::span<const std::byte> bytes_at(const void* address, std::size_t bytes) {
  return {static_cast<const std::byte*>(address), bytes};
}

}  // namespace

Collectives::Collectives(rma::Rma& rma, Pe me)
    : rma_(rma),
      control_(*reinterpret_cast<ControlPage*>(rma.heap().control())),
      context_(rma.pe_count()),
      me_(me),
      pe_count_(rma.pe_count()) {
  // The nearest in the direction from which signals come are asked about first.
  for (std::uint32_t distance = 1; distance < pe_count_; ++distance) {
    others_.emplace_back((me.value + pe_count_ - distance) % pe_count_);
  }
}

Status Collectives::wait_for(ControlWord& word,
                             std::uint64_t count,
                             std::string_view name,
                             Pe from) {
  return rma_.wait([&] { return rma::Rma::read_word(&word.value) >= count; },
                   [&] { return fmt::format("waiting for PE {} in {}", from.value, name); },
                   others_);
}

// Dissemination: in round k a PE tells the one 2^k ahead and hears the one 2^k behind; after
// ceil(log2 n) rounds each has heard of all (Hensgen, Finkel, Manber 1988). Arrivals of one sender
// are counted, so its arrival for the next call may come before this PE has left this one.
Status Collectives::sync(std::string_view name) {
  ++sync_count_;
  for (std::uint32_t round = 0, distance = 1; distance < pe_count_; ++round, distance *= 2) {
    const Pe to((me_.value + distance) % pe_count_);
    const Pe from((me_.value + pe_count_ - distance) % pe_count_);
    ControlWord& word = control_.sync_arrivals[round];
    if (const Status sent = rma_.signal(context_, add_one(word), to); sent != Status::Ok) {
      return sent;
    }
    if (const Status heard = wait_for(word, sync_count_, name, from); heard != Status::Ok) {
      return heard;
    }
  }
  return Status::Ok;
}

Status Collectives::leave() {
  const Status sync = this->sync("finalize");
  return sync == Status::Ok ? rma_.quiet(context_) : sync;
}

Status Collectives::barrier_all(rma::Context& context) {
  const Status quiet = rma_.quiet(context);
  const Status sync = this->sync("barrier_all");
  return quiet == Status::Ok ? sync : quiet;
}

Status Collectives::alltoall(void* dest, const void* source, std::size_t bytes_per_pe) {
  if (const Status entered = sync("alltoall"); entered != Status::Ok || bytes_per_pe == 0) {
    return entered;
  }
  std::byte* mine = static_cast<std::byte*>(dest) + me_.value * bytes_per_pe;
  const auto* blocks = static_cast<const std::byte*>(source);
  // Starting with the next PE: nobody is hit by all at once.
  for (std::uint32_t step = 1; step < pe_count_; ++step) {
    const Pe to((me_.value + step) % pe_count_);
    const Status sent =
        rma_.put_signal(context_, mine, bytes_at(blocks + to.value * bytes_per_pe, bytes_per_pe),
                        add_one(control_.alltoall_arrivals), to, rma::Blocking::No);
    if (sent != Status::Ok) {
      return sent;
    }
  }
  std::memmove(mine, blocks + me_.value * bytes_per_pe, bytes_per_pe);
  alltoall_blocks_ += pe_count_ - 1;
  const Status sent = rma_.quiet(context_);
  const Status heard = wait_for(control_.alltoall_arrivals, alltoall_blocks_, "alltoall",
                                others_.empty() ? me_ : others_.front());
  return heard == Status::Ok ? sent : heard;
}

Status Collectives::broadcast(void* dest, const void* source, std::size_t bytes, Pe root) {
  if (const Status entered = sync("broadcast"); entered != Status::Ok || bytes == 0) {
    return entered;
  }
  if (me_ != root) {
    ++broadcast_count_;
    const Status heard = wait_for(control_.broadcast_arrivals, broadcast_count_, "broadcast", root);
    return heard == Status::Ok ? forward(dest, dest, bytes, root) : heard;
  }
  const Status sent = forward(dest, source, bytes, root);
  std::memmove(dest, source, bytes);
  return sent;
}

// A binomial tree, seen from the root: place p sends to p + 2^k for all 2^k above p's highest bit,
// the farthest first, because it has the most to pass on.
Status Collectives::forward(void* dest, const void* source, std::size_t bytes, Pe root) {
  const std::uint32_t place = (me_.value + pe_count_ - root.value) % pe_count_;
  std::uint32_t lowest = 1;
  while (lowest <= place) {
    lowest *= 2;
  }
  std::uint32_t distance = lowest;
  while (place + distance * 2 < pe_count_) {
    distance *= 2;
  }
  for (; distance >= lowest; distance /= 2) {
    if (place + distance < pe_count_) {
      const Pe to((root.value + place + distance) % pe_count_);
      const Status sent =
          rma_.put_signal(context_, dest, bytes_at(source, bytes),
                          add_one(control_.broadcast_arrivals), to, rma::Blocking::No);
      if (sent != Status::Ok) {
        return sent;
      }
    }
  }
  return rma_.quiet(context_);
}

Status Collectives::exchange(const CollectiveRequest& mine, std::span<CollectiveRequest> all) {
  control_.request = mine;
  if (const Status ready = sync("a collective allocation"); ready != Status::Ok) {
    return ready;
  }
  for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
    const Status read = rma_.get(context_, std::as_writable_bytes(all.subspan(pe, 1)),
                                 &control_.request, Pe(pe), rma::Blocking::No);
    if (read != Status::Ok) {
      return read;
    }
  }
  const Status read = rma_.quiet(context_);
  const Status done = sync("a collective allocation");
  return read == Status::Ok ? done : read;
}

}  // namespace weft::collectives
