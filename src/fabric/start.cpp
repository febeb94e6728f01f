#include "src/fabric/start.hpp"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>

#include "src/fabric/handles.hpp"
#include "src/fabric/libfabric.hpp"

namespace weft::fabric {
namespace {

constexpr const char* kBufferSize = "FI_OFI_RXM_BUFFER_SIZE";
constexpr std::uint32_t kFirstWithNativeTcp = FI_VERSION(1, 18);

bool has_rdma_devices() {
  std::error_code error;
  return std::filesystem::exists("/sys/class/infiniband", error) &&
         !std::filesystem::is_empty("/sys/class/infiniband", error);
}

bool wants_smaller_buffers() {
  // concurrency: init is single-threaded with respect to setenv, as POSIX requires.
  return libfabric().version() < kFirstWithNativeTcp &&
         std::getenv(kBufferSize) == nullptr &&  // NOLINT(concurrency-mt-unsafe)
         !has_rdma_devices();
}

// Asks for the providers' names only, which starts all of them.
void ask_for_names() {
  fi_info* found = nullptr;
  static_cast<void>(
      libfabric().getinfo(FI_VERSION(1, 17), nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &found));
  const InfoHandle owner(found);
}

void start() {
  const bool is_smaller = wants_smaller_buffers();
  if (is_smaller) {
    ::setenv(kBufferSize, std::to_string(kMessageBytesMax).c_str(),
             0);  // NOLINT(concurrency-mt-unsafe): as above
  }
  ask_for_names();
  if (is_smaller) {
    ::unsetenv(kBufferSize);  // NOLINT(concurrency-mt-unsafe): as above
  }
}

}  // namespace

void start_libfabric() {
  static std::once_flag once;
  std::call_once(once, start);
}

}  // namespace weft::fabric
