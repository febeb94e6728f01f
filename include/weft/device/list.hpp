// The list of segments in the payload of a PutList: entries from its begin on, and from its end
// downwards the data of those that are short enough to be carried, which the proxy then need not
// fetch. Written by the GPU, read by the proxy; both sides walk it alike.
#ifndef WEFT_DEVICE_LIST_HPP
#define WEFT_DEVICE_LIST_HPP

#include <weft/device/command.hpp>
#include <weft/device/host_device.hpp>
#include <weft/device/standard.hpp>

namespace weft {
namespace device {

struct ListEntry {
  std::uint64_t dest;    // offset
  std::uint64_t source;  // local address; unused if the data is carried
  std::uint64_t bytes;
};

constexpr std::uint32_t kListEntriesMax = kPayloadBytes / sizeof(ListEntry);
constexpr std::uint64_t kCarriedAlignment = 16;
// The longest segment whose data is carried: one that fills the payload with its entry.
constexpr std::uint64_t kCarriedBytesMax =
    (kPayloadBytes - sizeof(ListEntry)) / kCarriedAlignment * kCarriedAlignment;

// Where the entries and the data of a list end, as it is walked.
struct ListWalk {
  std::uint32_t count = 0;
  std::uint32_t data = kPayloadBytes;  // where the data that is carried begins

  WEFT_HOST_DEVICE static bool is_carried(std::uint64_t bytes) { return bytes <= kCarriedBytesMax; }

  // Adds an entry; `data` is then where its data is, if it is carried. False: there is no room.
  WEFT_HOST_DEVICE bool add(std::uint64_t bytes) {
    const std::uint32_t room = is_carried(bytes) ? padded(bytes) : 0;
    if (count == kListEntriesMax || (count + 1) * sizeof(ListEntry) + room > data) {
      return false;
    }
    data -= room;
    ++count;
    return true;
  }

 private:
  WEFT_HOST_DEVICE static std::uint32_t padded(std::uint64_t bytes) {
    return static_cast<std::uint32_t>((bytes + kCarriedAlignment - 1) / kCarriedAlignment *
                                      kCarriedAlignment);
  }
};

}  // namespace device
}  // namespace weft

#endif  // WEFT_DEVICE_LIST_HPP
