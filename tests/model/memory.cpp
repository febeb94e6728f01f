#include "tests/model/memory.hpp"

#include <algorithm>
#include <cstring>

namespace weft::model {
namespace {

constexpr std::uint64_t kWordBytes = 8;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9E3779B97F4A7C15U)) * 0xBF58476D1CE4E5B9U;
  x ^= x >> 29U;
  x *= 0x94D049BB133111EBU;
  return x ^ x >> 32U;
}

std::uint64_t number_of(const void* address) {
  return reinterpret_cast<std::uint64_t>(address);
}

bool is_consistent(std::memory_order order) {
  return order == std::memory_order_seq_cst;
}

// What memory holds when the first thread accesses it. Values are at most eight bytes; the rest of
// the word is another location's.
std::uint64_t value_at(const void* address) {
  std::uint64_t value = 0;
  const std::size_t bytes = kWordBytes - number_of(address) % kWordBytes;
  std::memcpy(&value, address, bytes >= kWordBytes ? kWordBytes : bytes >= 4 ? 4 : 1);
  return value;
}

}  // namespace

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         is_consistent(order);
}

bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         is_consistent(order);
}

void View::join(const View& other) {
  for (std::uint32_t i = 0; i < kLocationsMax; ++i) {
    seen[i] = std::max(seen[i], other.seen[i]);
  }
  for (std::uint32_t i = 0; i < kThreadsMax; ++i) {
    clock[i] = std::max(clock[i], other.clock[i]);
  }
}

void Memory::reset(std::uint32_t threads) {
  location_count_ = 0;
  thread_count_ = threads;
  consistent_ = {};
  plain_.clear();
  was_stale_ = false;
  for (std::uint32_t i = 0; i < kThreadsMax; ++i) {
    threads_[i] = {};
    threads_[i].now.clock[i] = 1;
    threads_[i].history = mix(i, 1);
  }
}

std::uint32_t Memory::location_of(const void* address) {
  for (std::uint32_t i = 0; i < location_count_; ++i) {
    if (locations_[i].address == address) {
      return i;
    }
  }
  require(location_count_ < kLocationsMax, "the test has more locations than the model");
  Location& location = locations_[location_count_];
  location.address = address;
  location.messages.assign(1, Message{});
  location.messages[0].value = value_at(address);
  return location_count_++;
}

Memory::Plain& Memory::plain_of(std::uint64_t word) {
  for (Plain& plain : plain_) {
    if (plain.word == word) {
      return plain;
    }
  }
  plain_.push_back({.word = word});
  return plain_.back();
}

std::uint32_t Memory::oldest(const Thread& thread, std::uint32_t at, bool consistent) const {
  return std::max(thread.now.seen[at], consistent ? consistent_.seen[at] : std::uint8_t{0});
}

void Memory::observe(Thread& thread,
                     std::uint32_t at,
                     std::uint32_t index,
                     std::memory_order order) {
  const Message& message = locations_[at].messages[index];
  thread.now.seen[at] = std::max(thread.now.seen[at], static_cast<std::uint8_t>(index));
  thread.acquired.join(message.view);
  if (acquires(order)) {
    thread.now.join(message.view);
  }
  if (is_consistent(order)) {
    consistent_.seen[at] = std::max(consistent_.seen[at], thread.now.seen[at]);
  }
  note(thread, mix(mix(number_of(locations_[at].address), index), message.value));
}

// Everything from `index` on moves up by one, also in what threads have seen.
void Memory::make_room(std::uint32_t at, std::uint32_t index) {
  const auto move_up = [&](View& view) {
    if (view.seen[at] >= index) {
      ++view.seen[at];
    }
  };
  for (Thread& thread : threads_) {
    move_up(thread.now);
    move_up(thread.acquired);
    move_up(thread.released);
  }
  move_up(consistent_);
  for (std::uint32_t i = 0; i < location_count_; ++i) {
    for (Message& message : locations_[i].messages) {
      move_up(message.view);
    }
  }
}

void Memory::write(Thread& thread,
                   std::uint32_t at,
                   std::uint32_t index,
                   Message message,
                   std::memory_order order) {
  Location& location = locations_[at];
  require(location.messages.size() < 250, "a location has more values than the model");
  if (index < location.messages.size()) {
    make_room(at, index);
  }
  message.view.join(releases(order) ? thread.now : thread.released);
  message.view.seen[at] = static_cast<std::uint8_t>(index);
  location.messages.insert(location.messages.begin() + index, message);
  thread.now.seen[at] = static_cast<std::uint8_t>(index);
  const auto self = static_cast<std::uint32_t>(&thread - threads_.data());
  if (releases(order)) {
    ++thread.now.clock[self];
  }
  if (is_consistent(order)) {
    consistent_.seen[at] = std::max(consistent_.seen[at], static_cast<std::uint8_t>(index));
  }
  ++thread.writes;
  note(thread, mix(mix(number_of(location.address), 0x57), message.value));
}

std::uint64_t Memory::load(std::uint32_t thread,
                           const void* address,
                           std::memory_order order,
                           bool newest,
                           Choose choose) {
  const std::uint32_t at = location_of(address);
  const auto last = static_cast<std::uint32_t>(locations_[at].messages.size() - 1);
  const std::uint32_t first = newest ? last : oldest(threads_[thread], at, is_consistent(order));
  const std::uint32_t index = first == last ? last : last - choose(last - first + 1);
  was_stale_ = index != last;
  observe(threads_[thread], at, index, order);
  return locations_[at].messages[index].value;
}

void Memory::store(std::uint32_t thread,
                   void* address,
                   std::uint64_t value,
                   std::memory_order order,
                   Choose choose) {
  const std::uint32_t at = location_of(address);
  const std::vector<Message>& messages = locations_[at].messages;
  const auto end = static_cast<std::uint32_t>(messages.size());
  std::array<std::uint32_t, 256> places;
  std::uint32_t count = 0;
  places[count++] = end;
  for (std::uint32_t i = end - 1; i > oldest(threads_[thread], at, is_consistent(order)); --i) {
    if (!messages[i].follows_update) {
      places[count++] = i;
    }
  }
  const std::uint32_t index = places[count == 1 ? 0 : choose(count)];
  write(threads_[thread], at, index, {.value = value, .view = {}}, order);
}

std::uint64_t Memory::update(std::uint32_t thread,
                             void* address,
                             std::memory_order order,
                             FunctionRef<Change(std::uint64_t)> change,
                             Choose choose) {
  const std::uint32_t at = location_of(address);
  const std::vector<Message>& messages = locations_[at].messages;
  const auto end = static_cast<std::uint32_t>(messages.size());
  const std::uint32_t first = oldest(threads_[thread], at, is_consistent(order));
  std::array<std::uint32_t, 256> candidates;
  std::uint32_t count = 0;
  for (std::uint32_t i = end; i-- > first;) {
    const bool is_taken = i + 1 < end && messages[i + 1].follows_update;
    if (!is_taken || !change(messages[i].value).is_written) {
      candidates[count++] = i;
    }
  }
  const std::uint32_t index = candidates[count == 1 ? 0 : choose(count)];
  const Message found = messages[index];
  const Change next = change(found.value);
  was_stale_ = index + 1 != end;
  observe(threads_[thread], at, index, order);
  if (next.is_written) {
    // It continues the release sequence of what it has read.
    write(threads_[thread], at, index + 1,
          {.value = next.value, .view = found.view, .follows_update = true}, order);
  }
  return found.value;
}

void Memory::fence(std::uint32_t thread, std::memory_order order) {
  Thread& self = threads_[thread];
  if (acquires(order)) {
    self.now.join(self.acquired);
  }
  if (is_consistent(order)) {
    for (std::uint32_t i = 0; i < kLocationsMax; ++i) {
      self.now.seen[i] = consistent_.seen[i] = std::max(self.now.seen[i], consistent_.seen[i]);
    }
  }
  if (releases(order)) {
    self.released = self.now;
    ++self.now.clock[thread];
  }
  note(self, 0xFE);
}

std::uint64_t Memory::newest(const void* address) {
  return locations_[location_of(address)].messages.back().value;
}

bool Memory::plain_read(std::uint32_t thread, const void* address, std::size_t bytes) {
  Thread& self = threads_[thread];
  for (std::uint64_t word = number_of(address) / kWordBytes;
       word <= (number_of(address) + bytes - 1) / kWordBytes; ++word) {
    Plain& plain = plain_of(word);
    if (plain.writer < kThreadsMax && plain.writer != thread &&
        self.now.clock[plain.writer] < plain.written) {
      return false;
    }
    plain.read[thread] = self.now.clock[thread];
    note(self, mix(word, std::uint64_t{plain.writer} << 32U | plain.written));
  }
  return true;
}

bool Memory::plain_write(std::uint32_t thread, const void* address, std::size_t bytes) {
  Thread& self = threads_[thread];
  for (std::uint64_t word = number_of(address) / kWordBytes;
       word <= (number_of(address) + bytes - 1) / kWordBytes; ++word) {
    Plain& plain = plain_of(word);
    for (std::uint32_t other = 0; other < thread_count_; ++other) {
      const std::uint16_t written = plain.writer == other ? plain.written : std::uint16_t{0};
      if (other != thread && self.now.clock[other] < std::max(plain.read[other], written)) {
        return false;
      }
    }
    plain.writer = thread;
    plain.written = self.now.clock[thread];
    plain.read = {};
  }
  return true;
}

void Memory::note(Thread& thread, std::uint64_t what) const {
  thread.history = mix(thread.history, what);
}

std::uint64_t Memory::hash_of(const View& view) const {
  std::uint64_t hash = 0;
  for (std::uint32_t i = 0; i < location_count_; ++i) {
    hash += view.seen[i] == 0 ? 0 : mix(number_of(locations_[i].address), view.seen[i]);
  }
  for (std::uint32_t i = 0; i < thread_count_; ++i) {
    hash += mix(i, view.clock[i]);
  }
  return hash;
}

std::uint64_t Memory::fingerprint() const {
  std::uint64_t hash = hash_of(consistent_);
  for (std::uint32_t i = 0; i < thread_count_; ++i) {
    const Thread& thread = threads_[i];
    std::uint64_t mine = mix(thread.history, hash_of(thread.now));
    mine = mix(mine, hash_of(thread.acquired));
    hash += mix(mix(mine, hash_of(thread.released)), i);
  }
  for (std::uint32_t i = 0; i < location_count_; ++i) {
    const Location& location = locations_[i];
    for (std::size_t k = 1; k < location.messages.size(); ++k) {
      const Message& message = location.messages[k];
      const std::uint64_t content = mix(message.value, hash_of(message.view));
      hash +=
          mix(mix(number_of(location.address), 2 * k + (message.follows_update ? 1 : 0)), content);
    }
  }
  for (const Plain& plain : plain_) {
    std::uint64_t one = mix(plain.word, std::uint64_t{plain.writer} << 32U | plain.written);
    for (std::uint32_t i = 0; i < thread_count_; ++i) {
      one = mix(one, plain.read[i]);
    }
    hash += mix(one, 3);
  }
  return hash;
}

}  // namespace weft::model
