#include "block.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

namespace weft::python {
namespace {

struct Blocks {
  std::mutex mutex;
  std::vector<std::weak_ptr<Block>> all;
};

// Never destroyed: arrays may go after static objects.
Blocks& blocks() {
  static auto* const all = new Blocks;
  return *all;
}

struct Pages {
  std::uintptr_t start;
  std::uintptr_t end;
};

Pages pages_of(const Block& block) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(block.address);
  return {start / page * page, (start + block.bytes + page - 1) / page * page};
}

// Maps each page that is not mapped; blocks may share one. Pages stay mapped as long as the
// process: who looks at them is not known after a numpy array was handed on.
bool map_pages(const Pages& pages, std::vector<std::uintptr_t>& mapped) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (std::uintptr_t at = pages.start; at < pages.end; at += page) {
    if (std::ranges::find(mapped, at) != mapped.end()) {
      continue;
    }
    void* wanted = reinterpret_cast<void*>(
        at);  // NOLINT(performance-no-int-to-ptr): an address that a view has
    if (::mmap(wanted, page, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != wanted) {
      return false;
    }
    mapped.push_back(at);
  }
  return true;
}

}  // namespace

void remember(const std::shared_ptr<Block>& block) {
  const std::unique_lock lock(blocks().mutex);
  std::erase_if(blocks().all, [](const auto& known) { return known.expired(); });
  blocks().all.push_back(block);
}

std::vector<std::shared_ptr<Block>> live_blocks() {
  const std::unique_lock lock(blocks().mutex);
  std::vector<std::shared_ptr<Block>> live;
  for (const auto& known : blocks().all) {
    if (auto block = known.lock(); block != nullptr && !block->is_freed()) {
      live.push_back(std::move(block));
    }
  }
  return live;
}

void KeptViews::keep_exported() {
  for (auto& block : live_blocks()) {
    if (block->device == kHost && block->exports > 0) {
      kept_.push_back({block, {block->address, block->address + block->bytes}});
    }
  }
}

std::size_t KeptViews::restore() {
  std::vector<std::uintptr_t> mapped;
  std::size_t lost = 0;
  for (const Kept& kept : kept_) {
    if (map_pages(pages_of(*kept.block), mapped)) {
      std::memcpy(kept.block->address, kept.contents.data(), kept.contents.size());
    } else {
      lost += kept.contents.size();
    }
  }
  kept_.clear();
  return lost;
}

}  // namespace weft::python
