// Slots, and who may write one: a message's source is free after quiet, its destination when the
// target has acknowledged it.
#include "tests/plugins/nvshmem/numbered_messages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace weft::plugins::nvshmem {
namespace {

constexpr std::size_t kAcknowledgements = 0;  // by peer, 8 bytes
constexpr std::size_t kSignals = 4096;        // by source and slot
constexpr std::size_t kSources = 65'536;      // by peer and slot
constexpr std::size_t kArea = NumberedMessages::kSlots * NumberedMessages::kSlotBytes;
constexpr std::uint64_t kAcknowledgedAtOnce = 16;

constexpr std::size_t at(int pe) {
  return static_cast<std::size_t>(pe);
}

std::size_t slot_of(std::uint64_t number) {
  return static_cast<std::size_t>(number % NumberedMessages::kSlots);
}

std::uint64_t signal_of(int source, std::uint64_t number) {
  return kSignals + (at(source) * NumberedMessages::kSlots + slot_of(number)) * 8;
}

std::size_t source_of(int peer, std::uint64_t number) {
  return kSources + at(peer) * kArea + slot_of(number) * NumberedMessages::kSlotBytes;
}

std::uint64_t dest_of(int source, std::uint64_t number) {
  return source_of(source, number) + kPesMax / 2 * kArea;
}

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// Mostly small ones; one in 16 is larger.
std::size_t bytes_of(int source, std::uint64_t number) {
  const std::uint64_t chance = mixed(number * kPesMax + at(source));
  const std::uint64_t most = chance % 16 == 0 ? NumberedMessages::kSlotBytes : 512;
  return static_cast<std::size_t>(1 + (chance >> 8U) % most);
}

void write_message(std::byte* memory, int source, std::uint64_t number) {
  const std::size_t bytes = bytes_of(source, number);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = number * 1'000'003 + at(source) * 65'537 + i;
    std::memcpy(memory + i, &word, std::min<std::size_t>(8, bytes - i));
  }
}

}  // namespace

HostOptions NumberedMessages::options(int interface, int pe_count, const Nics* nics) {
  HostOptions options{.interface = interface, .pe_count = pe_count, .nics = nics};
  options.heap.chunk_bytes = std::size_t{1} << 20U;
  options.chunk_count = kPesMax + 1;
  return options;
}

NumberedMessages::NumberedMessages(FakeHost& host, std::uint64_t count)
    : host_(host), count_(count), expected_(kSlotBytes) {}

void NumberedMessages::run(const std::function<void(int, std::uint64_t)>& seen) {
  auto sending = host_.begin_on_proxy([this](Operations& proxy) { send_all(proxy); });
  const std::uint64_t expected = count_ * static_cast<std::uint64_t>(host_.pe_count() - 1);
  std::uint64_t total = 0;
  while (total < expected) {
    const std::uint64_t before = total;
    for (int source = 0; source < host_.pe_count(); ++source) {
      while (source != host_.pe() && check_next(source)) {
        ++total;
        if (seen) {
          seen(source, checked_[at(source)]);
        }
      }
    }
    if (total == before) {
      host_.operations().wait_until(
          [&] {
            for (int source = 0; source < host_.pe_count(); ++source) {
              const std::uint64_t next = checked_[at(source)] + 1;
              if (source != host_.pe() && host_.word(signal_of(source, next)) == next) {
                return true;
              }
            }
            return false;
          },
          "message " + std::to_string(total + 1) + " of " + std::to_string(expected));
    }
  }
  sending.get();
  host_.operations().quiet_all();
}

bool NumberedMessages::check_next(int source) {
  const std::uint64_t number = checked_[at(source)] + 1;
  if (number > count_ || host_.word(signal_of(source, number)) != number) {
    return false;
  }
  write_message(expected_.data(), source, number);
  const std::byte* arrived = host_.heap().at(dest_of(source, number));
  if (std::memcmp(arrived, expected_.data(), bytes_of(source, number)) != 0) {
    ++early_count_;
  }
  checked_[at(source)] = number;
  if (number % kAcknowledgedAtOnce == 0 || number == count_) {
    acknowledge(source);
  }
  return true;
}

// Behind the one before: that may be on its way again from a NIC that has died, and would replace
// this one.
void NumberedMessages::acknowledge(int source) {
  host_.operations().fence(source);
  host_.operations().p(source, kAcknowledgements + at(host_.pe()) * 8, checked_[at(source)]);
}

void NumberedMessages::send_all(Operations& proxy) {
  const auto others = static_cast<std::size_t>(host_.pe_count() - 1);
  std::size_t done = 0;
  while (done < others && !host_.board().has_failed()) {
    done = 0;
    for (int i = 1; i < host_.pe_count(); ++i) {
      const int peer = (host_.pe() + i) % host_.pe_count();
      if (sent_[at(peer)] == count_) {
        ++done;
      } else if (!send_next(proxy, peer)) {
        proxy.progress();
      }
    }
  }
  proxy.quiet_all();
  proxy.wait_until(
      [&] {
        for (int peer = 0; peer < host_.pe_count(); ++peer) {
          if (peer != host_.pe() && host_.word(kAcknowledgements + at(peer) * 8) != count_) {
            return false;
          }
        }
        return true;
      },
      "the last acknowledgements");
}

// False if the slot is not free yet.
bool NumberedMessages::send_next(Operations& proxy, int peer) {
  const std::uint64_t number = sent_[at(peer)] + 1;
  if (number > host_.word(kAcknowledgements + at(peer) * 8) + kSlots) {
    return false;
  }
  if (slot_of(number) == 0) {
    proxy.quiet(peer);
  }
  std::byte* source = host_.heap().at(source_of(peer, number));
  write_message(source, host_.pe(), number);
  proxy.put_signal(peer,
                   {.offset = dest_of(host_.pe(), number),
                    .local = source,
                    .bytes = bytes_of(host_.pe(), number)},
                   {.offset = signal_of(host_.pe(), number), .value = number});
  sent_[at(peer)] = number;
  return true;
}

}  // namespace weft::plugins::nvshmem
