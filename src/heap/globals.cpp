#include "src/heap/globals.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/file_descriptor.hpp"

namespace weft::heap {
namespace {

std::uintptr_t page_of(std::uintptr_t address) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return address / page * page;
}

std::uintptr_t page_after(std::uintptr_t address) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return page_of(address + page - 1);
}

std::string name_of(const dl_phdr_info& info) {
  std::string path = info.dlpi_name;
  if (path.empty()) {
    std::vector<char> link(4096);
    const ssize_t length = ::readlink("/proc/self/exe", link.data(), link.size());
    path.assign(link.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  }
  return path.substr(path.find_last_of('/') + 1);
}

// Whether the object's dynamic section lists libweft among its dependencies.
bool uses_weft(const dl_phdr_info& info, const ElfW(Dyn) * dynamic) {
  std::uintptr_t strings = 0;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) {
      strings = entry->d_un.d_ptr;
    }
  }
  // The loader has relocated it to an address, except on architectures where this section is
  // read-only.
  strings += strings < info.dlpi_addr ? info.dlpi_addr : 0;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    const auto* name = reinterpret_cast<const char*>(strings + entry->d_un.d_val);
    if (entry->d_tag == DT_NEEDED && std::string_view(name).starts_with("libweft")) {
      return true;
    }
  }
  return false;
}

// The last writable segment, starting after its read-only part (elf(5), PT_GNU_RELRO).
std::optional<std::span<std::byte>> writable_pages(const dl_phdr_info& info) {
  std::uintptr_t first = 0;
  std::uintptr_t last = 0;
  std::uintptr_t read_only_end = 0;
  for (std::size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) & header = info.dlpi_phdr[i];
    const std::uintptr_t start = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0) {
      first = page_of(start);
      last = page_after(start + header.p_memsz);
    } else if (header.p_type == PT_GNU_RELRO) {
      read_only_end = page_of(start + header.p_memsz);
    }
  }
  first = std::max(first, read_only_end);
  if (first >= last) {
    return std::nullopt;
  }
  return std::span(reinterpret_cast<std::byte*>(first), last - first);
}

int collect(dl_phdr_info* info, std::size_t /*size*/, void* result) {
  bool is_wanted = std::string_view(info->dlpi_name).empty();  // the program itself
  for (std::size_t i = 0; i < info->dlpi_phnum && !is_wanted; ++i) {
    const ElfW(Phdr) & header = info->dlpi_phdr[i];
    is_wanted =
        header.p_type == PT_DYNAMIC &&
        uses_weft(*info, reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + header.p_vaddr));
  }
  if (const auto pages = writable_pages(*info); is_wanted && pages) {
    static_cast<std::vector<DataPages>*>(result)->push_back({name_of(*info), *pages});
  }
  return 0;
}

// The shared pages of this process. A child of fork maps them privately, so that what it writes, if
// only in a destructor at its end, does not change its parent's variables. The kernel copies a page
// when the child writes to it: a copy of all pages would make each fork cost the size of the
// program's arrays.
class PagesToSplit {
 public:
  void add(std::span<std::byte> pages, int descriptor) {
    FileDescriptor own(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
    if (!own.is_open()) {
      fail("fcntl(F_DUPFD_CLOEXEC) failed: {}; raise the limit of open files (ulimit -n)",
           errno_words(errno));
    }
    keep_loaded(pages.data());
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(entries_, pages.data(),
                                         [](const Entry& entry) { return entry.pages.data(); });
    Entry& entry = known == entries_.end() ? entries_.emplace_back() : *known;
    entry = {.pages = pages, .descriptor = std::move(own)};
  }

  void prepare() { mutex_.lock(); }

  void end_in_parent() { mutex_.unlock(); }

  void end_in_child() {
    for (const Entry& entry : entries_) {
      // If it fails, the child goes on sharing the variables with its parent.
      static_cast<void>(::mmap(entry.pages.data(), entry.pages.size(), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_FIXED, entry.descriptor.get(), 0));
    }
    mutex_.unlock();
  }

 private:
  struct Entry {
    std::span<std::byte> pages;
    FileDescriptor descriptor;
  };

  // The addresses must not become another object's.
  static void keep_loaded(const void* data) {
    Dl_info info{};
    if (::dladdr(data, &info) != 0 && info.dli_fname != nullptr) {
      // Null for the program itself, which stays in any case.
      static_cast<void>(::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE));
    }
  }

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

PagesToSplit& pages_to_split() {
  // Never destroyed: a process may fork while it exits.
  static PagesToSplit& only = *new PagesToSplit;
  return only;
}

void split_at_fork() {
  static const int registered =
      ::pthread_atfork([] { pages_to_split().prepare(); }, [] { pages_to_split().end_in_parent(); },
                       [] { pages_to_split().end_in_child(); });
  if (registered != 0) {
    fail("pthread_atfork failed: {}", errno_words(registered));
  }
}

}  // namespace

std::vector<DataPages> symmetric_data() {
  std::vector<DataPages> found;
  ::dl_iterate_phdr(&collect, &found);
  return found;
}

SharedData share(const DataPages& data) {
  split_at_fork();
  SharedData shared{.object = data.object,
                    .segment = Segment::put_behind("globals of " + data.object, data.pages)};
  pages_to_split().add(data.pages, shared.segment.descriptor());
  return shared;
}

}  // namespace weft::heap
