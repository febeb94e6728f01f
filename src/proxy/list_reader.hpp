// Reads the entries of a PutList one after the other. What the GPU wrote is not trusted: nothing
// beyond the payload is read, whatever the list says of itself.
//
// Threads: only the proxy's.
#pragma once

#include <weft/device/command_views.hpp>
#include <weft/device/list.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::proxy {

class ListReader {
 public:
  // `payload` is the command's, of kPayloadBytes, and outlives this.
  ListReader(const device::Command& command, const std::byte* payload)
      : count_(device::PutListCommand::from(command).entry_count), payload_(payload) {}

  // Goes to the next entry, the first one at first. False: there is none.
  [[nodiscard]] bool next() {
    if (walk_.count >= count_ || walk_.count == device::kListEntriesMax) {
      return false;
    }
    std::memcpy(&entry_, payload_ + walk_.count * sizeof(entry_), sizeof(entry_));
    return walk_.add(entry_.bytes);
  }

  // Of the entry in the list, from 0 on.
  [[nodiscard]] std::uint32_t number() const { return walk_.count - 1; }

  [[nodiscard]] const device::ListEntry& entry() const { return entry_; }

  [[nodiscard]] bool is_carried() const { return device::ListWalk::is_carried(entry_.bytes); }

  // The entry's data, if it is carried.
  [[nodiscard]] const std::byte* data() const { return payload_ + walk_.data; }

 private:
  std::uint64_t count_;
  const std::byte* payload_;
  device::ListWalk walk_;
  device::ListEntry entry_{};
};

}  // namespace weft::proxy
