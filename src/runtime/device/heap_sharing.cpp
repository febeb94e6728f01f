#include "src/runtime/device/heap_sharing.hpp"

#include <weft/device/control.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>
#include <string_view>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/units.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::runtime {
namespace {

// In the order in which they are tried.
enum class Way : std::uint32_t { Fabric, Descriptor, Ipc };

constexpr std::string_view words_of(Way way) {
  switch (way) {
    case Way::Fabric:
      return "fabric handles";
    case Way::Descriptor:
      return "descriptors";
    case Way::Ipc:
      break;
  }
  return "IPC handles";
}

Way way_of(gpu::HandleKind kind) {
  switch (kind) {
    case gpu::HandleKind::Fabric:
      return Way::Fabric;
    case gpu::HandleKind::Descriptor:
      return Way::Descriptor;
    case gpu::HandleKind::Ipc:
      break;
  }
  return Way::Ipc;
}

// What a PE tells the others about its GPU: an error, or its memory.
struct GpuDescription {
  std::string error;
  std::uint32_t status = 0;
  bool is_refused = false;  // the error is of this way: another one may work
  Way way = Way::Fabric;
  Way last_way = Way::Ipc;  // that its settings allow
  std::array<std::uint8_t, 16> uuid{};
  std::string pci;
  std::uint32_t index = 0;
  std::uint64_t heap_size = 0;
  std::uint64_t heap_limit = 0;      // how far its heap could grow
  std::uint64_t heap_alignment = 0;  // of the address where it starts
  gpu::DeviceSegmentOffer offer;
};

template <typename Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

bootstrap::Blob encode(const GpuDescription& description) {
  bootstrap::FieldWriter writer;
  writer.text(description.error).u32(description.status).u32(description.is_refused ? 1 : 0);
  writer.u32(static_cast<std::uint32_t>(description.way))
      .u32(static_cast<std::uint32_t>(description.last_way));
  writer.raw(bytes_of(description.uuid)).text(description.pci).u32(description.index);
  writer.u64(description.heap_size).u64(description.heap_limit).u64(description.heap_alignment);
  writer.raw(bytes_of(description.offer));
  return writer.bytes();
}

template <typename Value>
void read(bootstrap::FieldReader& reader, Value& value) {
  const auto to = std::as_writable_bytes(std::span(&value, 1));
  std::ranges::copy(reader.raw(to.size()), to.begin());
}

GpuDescription decode(const bootstrap::Blob& blob) {
  bootstrap::FieldReader reader(blob);
  GpuDescription description;
  description.error = reader.text();
  description.status = reader.u32();
  description.is_refused = reader.u32() != 0;
  description.way = static_cast<Way>(reader.u32());
  description.last_way = static_cast<Way>(reader.u32());
  read(reader, description.uuid);
  description.pci = reader.text();
  description.index = reader.u32();
  description.heap_size = reader.u64();
  description.heap_limit = reader.u64();
  description.heap_alignment = reader.u64();
  read(reader, description.offer);
  return description;
}

using GpuDescriptions = std::vector<GpuDescription>;

class Sharing {
 public:
  Sharing(const HeapSharing& with, FunctionRef<const gpu::Device&()> take_device)
      : with_(with), take_device_(take_device), me_(with.bootstrap.pe()) {}

  SharedHeap run() {
    mine_.heap_size = with_.config.device_heap_size;
    mine_.last_way = with_.config.device_memory == "vmm" ? Way::Descriptor : Way::Ipc;
    attempt([&] {
      device_ = &take_device_();
      check_settings();
    });
    if (device_ != nullptr) {
      mine_.uuid = device_->uuid;
      mine_.pci = device_->pci;
      mine_.index = static_cast<std::uint32_t>(device_->index);
      mine_.way = is_ipc() ? Way::Ipc : Way::Fabric;
    }
    while (!try_way()) {
      heap_.reset();
      mine_.error.clear();
      mine_.is_refused = false;
    }
    return finish();
  }

 private:
  [[nodiscard]] bool is_ipc() const {
    return with_.config.device_memory == "ipc" ||
           (with_.config.device_memory == "auto" && !device_->has_posix_handles);
  }

  void check_settings() const {
    if (!is_ipc() && !device_->has_posix_handles) {
      fail(Status::InvalidArgument,
           "WEFT_DEVICE_MEMORY=vmm: GPU {} ({}) has no memory that can be shared by descriptors; "
           "use auto or ipc",
           device_->index, device_->name);
    }
    if (with_.config.device_heap_size == 0) {
      fail(Status::InvalidArgument, "WEFT_DEVICE_HEAP_SIZE=0: the heap must not be empty");
    }
  }

  // Keeps the first error, since a PE that fails must not leave the others waiting.
  template <typename Step>
  void attempt(Step&& step, bool is_of_way = false) {
    if (!mine_.error.empty()) {
      return;
    }
    try {
      step();
    } catch (const Error& error) {
      mine_.error = error.what();
      mine_.status = static_cast<std::uint32_t>(error.status());
      mine_.is_refused = is_of_way && error.status() != Status::OutOfMemory;
    }
  }

  // In two rounds: memory, then mappings. False: again, the next way.
  bool try_way() {
    attempt([&] { make_heap(); }, true);
    descriptions_ = gather();
    if (turn_to_next()) {
      return false;
    }
    attempt([&] { check_peers(); });
    attempt([&] { map_peers(); }, true);
    const GpuDescriptions results = gather();
    for (std::uint32_t pe = 0; pe < results.size(); ++pe) {
      descriptions_[pe].error = results[pe].error;
      descriptions_[pe].status = results[pe].status;
      descriptions_[pe].is_refused = results[pe].is_refused;
    }
    return !turn_to_next();
  }

  [[nodiscard]] GpuDescriptions gather() {
    GpuDescriptions all;
    for (const bootstrap::Blob& blob : with_.bootstrap.allgather(encode(mine_))) {
      all.push_back(decode(blob));
    }
    return all;
  }

  // Decides alike on all PEs. True: mine_.way is the next to try. Throws if there is none, or for
  // errors that no way avoids.
  bool turn_to_next() {
    Way furthest = Way::Fabric;
    Way last = Way::Ipc;
    std::optional<std::uint32_t> refused;
    bool differ = false;
    for (std::uint32_t pe = 0; pe < descriptions_.size(); ++pe) {
      const GpuDescription& other = descriptions_[pe];
      if (!other.error.empty() && !other.is_refused) {
        fail_for(pe);
      }
      if (!other.error.empty() && !refused) {
        refused = pe;
      }
      furthest = std::max(furthest, other.way);
      last = std::min(last, other.last_way);
      differ = differ || (other.way == Way::Ipc) != (descriptions_.front().way == Way::Ipc);
    }
    if (!refused && !differ) {
      return false;
    }
    const Way next =
        refused ? static_cast<Way>(static_cast<std::uint32_t>(furthest) + 1) : furthest;
    if (next > last) {
      fail_for(refused.value_or(0));
    }
    // One PE says it loudly.
    log::at(me_.value == refused.value_or(0) ? log::Level::Warn : log::Level::Info,
            "device: {}; trying {}{}",
            refused ? fmt::format("sharing the heaps by {} fails ({})", words_of(furthest),
                                  words_for(*refused))
                    : "some GPUs have no memory that is shared by descriptors",
            words_of(next), next == Way::Ipc ? ", with which they do not grow" : "");
    mine_.way = next;
    return true;
  }

  [[nodiscard]] std::string words_for(std::uint32_t pe) const {
    return pe == me_.value ? descriptions_[pe].error
                           : fmt::format("PE {}: {}", pe, descriptions_[pe].error);
  }

  [[noreturn]] void fail_for(std::uint32_t pe) const {
    fail(static_cast<Status>(static_cast<std::int32_t>(descriptions_[pe].status)), "{}",
         words_for(pe));
  }

  // Of PEs on this node.
  [[nodiscard]] std::uint32_t slot_count() const {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(with_.slots, [](const auto& slot) { return slot.has_value(); }));
  }

  void make_heap() {
    constexpr std::uint64_t kPage = std::uint64_t{2} << 20U;
    const std::uint64_t user = (with_.config.device_heap_size + kPage - 1) / kPage * kPage;
    heap_ = std::make_unique<heap::DeviceHeap>(
        with_.make_segments(
            *device_,
            {.bytes = device::kControlBytes + user,
             .own_bytes = device::kControlBytes,
             .reserved_bytes =
                 device::kControlBytes + std::min(with_.config.device_heap_max, device_->bytes),
             .slot_count = slot_count(),
             .my_slot = with_.slots[me_.value].value(),
             .kind = mine_.way == Way::Ipc ? gpu::MemoryKind::Ipc : gpu::MemoryKind::Virtual,
             .may_use_fabric = mine_.way == Way::Fabric}),
        me_, with_.bootstrap.pe_count(), device::kControlBytes);
    mine_.heap_limit = heap_->limit();
    mine_.heap_alignment = std::uint64_t{1}
                           << std::countr_zero(reinterpret_cast<std::uint64_t>(heap_->base()));
    mine_.offer = heap_->segments().offer();
    mine_.way = way_of(mine_.offer.kind);
  }

  void check_peers() const {
    for (std::uint32_t pe = 0; pe < descriptions_.size(); ++pe) {
      if (descriptions_[pe].heap_size != mine_.heap_size) {
        fail(Status::Mismatch,
             "PE {} wants a device heap of {}, this PE one of {}; WEFT_DEVICE_HEAP_SIZE must be "
             "the same on all PEs",
             pe, format_bytes(descriptions_[pe].heap_size), format_bytes(mine_.heap_size));
      }
      if (pe != me_.value && descriptions_[pe].uuid == mine_.uuid && !with_.config.device_shared) {
        fail(Status::InvalidArgument,
             "PE {} has taken this PE's GPU {} ({}); call cudaSetDevice(weft_machine_pe()) before "
             "weft_device_init, and start no more PEs than the machine has GPUs "
             "(WEFT_DEVICE_SHARED=yes allows it, for tests)",
             pe, device_->index, device_->name);
      }
    }
  }

  void map_peers() {
    for (std::uint32_t pe = 0; pe < descriptions_.size(); ++pe) {
      if (pe != me_.value && with_.slots[pe]) {
        heap_->map_peer(Pe(pe), *with_.slots[pe], descriptions_[pe].offer);
      }
    }
  }

  // A kernel's update of a word there may be lost beside an update by another GPU, and nothing
  // tells.
  void report_missing_atomics() const {
    std::vector<std::uint32_t> mapped;
    std::vector<std::string> addresses;
    for (std::uint32_t pe = 0; pe < descriptions_.size(); ++pe) {
      if (with_.slots[pe] && descriptions_[pe].uuid != mine_.uuid) {
        mapped.push_back(pe);
        addresses.push_back(descriptions_[pe].pci);
      }
    }
    const std::vector<bool> have_atomics = with_.have_atomics(*device_, addresses);
    std::vector<std::uint32_t> without;
    for (std::size_t i = 0; i < mapped.size(); ++i) {
      if (!have_atomics[i]) {
        without.push_back(mapped[i]);
      }
    }
    if (!without.empty()) {
      log::warn(
          "device: GPU {} ({}) reaches the memory of PE {} over PCIe, which carries no atomics of "
          "GPUs: atomics, signals "
          "that add, reductions and barriers in kernels may lose updates there. Puts, gets and "
          "signals that set a word are "
          "not affected. Set WEFT_NODE_SIZE=1: the PEs then use the rails, where all of these are "
          "exact",
          device_->index, device_->pci, fmt::join(without, ", "));
    }
  }

  SharedHeap finish() {
    report_missing_atomics();
    heap_->segments().close_offer();
    std::uint64_t alignment_max = mine_.heap_alignment;
    for (const GpuDescription& description : descriptions_) {
      heap_->limit_to(description.heap_limit);
      alignment_max = std::min(alignment_max, description.heap_alignment);
    }
    alignment_max = std::min(alignment_max, std::bit_floor(heap_->limit()));
    return {.heap = std::move(heap_), .alignment_max = alignment_max};
  }

  const HeapSharing& with_;
  FunctionRef<const gpu::Device&()> take_device_;
  Pe me_;
  const gpu::Device* device_ = nullptr;
  GpuDescription mine_;
  GpuDescriptions descriptions_;  // by PE, of the way that is tried
  std::unique_ptr<heap::DeviceHeap> heap_;
};

}  // namespace

SharedHeap share_heaps(const HeapSharing& with, FunctionRef<const gpu::Device&()> take_device) {
  return Sharing(with, take_device).run();
}

}  // namespace weft::runtime
