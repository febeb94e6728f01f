#include "tools/info/host_limits.hpp"

#include <fstream>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/info/kernel_features.hpp"

namespace weft::info {
namespace {

std::optional<std::uint64_t> bounded(rlim_t limit) {
  return limit == RLIM_INFINITY ? std::nullopt : std::optional<std::uint64_t>(limit);
}

Limit read_limit(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0
             ? Limit{bounded(limit.rlim_cur), bounded(limit.rlim_max)}
             : Limit{};
}

std::optional<SharedMemory> read_shared_memory() {
  struct statvfs status{};

  if (::statvfs("/dev/shm", &status) != 0) {
    return std::nullopt;
  }
  return SharedMemory{status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize};
}

std::optional<long> read_number(const std::string& path) {
  std::ifstream file(path);
  long number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// Reading our own memory needs no permission, so a failure is a system call that is filtered out
// (seccomp in a container) or a kernel without it.
bool can_read_own_memory() {
  char from = 1;
  char to = 0;
  const iovec local{&to, 1};
  const iovec remote{&from, 1};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == 1 && to == 1;
}

}  // namespace

Permission cross_memory_attach(const std::string& proc, bool can_attach) {
  Permission permission{"cross-memory attach", can_attach, ""};
  if (!can_attach) {
    permission.detail =
        "process_vm_readv is refused; in a container, allow it in the seccomp profile";
    return permission;
  }
  // Documentation/admin-guide/LSM/Yama.rst
  const long scope = read_number(proc + "/kernel/yama/ptrace_scope").value_or(0);
  // 1 allows a parent and those whom the target names (prctl PR_SET_PTRACER), and PEs are neither.
  permission.allowed = scope == 0;
  permission.detail =
      scope == 0 ? "any process of the same user"
                 : fmt::format(
                       "kernel.yama.ptrace_scope is {}; set it to 0, or memory of the node that "
                       "is not mapped is copied twice",
                       scope);
  return permission;
}

Permission user_namespaces(const std::string& proc) {
  Permission permission{"user namespaces", true, "weft-lab needs no root"};
  const auto refuse = [&permission](std::string detail) {
    permission.allowed = false;
    permission.detail = std::move(detail);
  };
  if (read_number(proc + "/user/max_user_namespaces").value_or(0) <= 0) {
    refuse("user.max_user_namespaces is 0 or missing");
  } else if (read_number(proc + "/kernel/unprivileged_userns_clone").value_or(1) == 0) {
    refuse("kernel.unprivileged_userns_clone is 0 (Debian); only root may make them");
  } else if (read_number(proc + "/kernel/apparmor_restrict_unprivileged_userns").value_or(0) != 0) {
    refuse(
        "kernel.apparmor_restrict_unprivileged_userns is 1 (Ubuntu); only root or programs with "
        "a profile may use them");
  }
  return permission;
}

HostLimits read_host_limits() {
  HostLimits limits;
  limits.memlock = read_limit(RLIMIT_MEMLOCK);
  limits.open_files = read_limit(RLIMIT_NOFILE);
  limits.shared_memory = read_shared_memory();
  limits.permissions = {cross_memory_attach("/proc/sys", can_read_own_memory()),
                        user_namespaces("/proc/sys")};
  const auto features = kernel_features("", kernel_release());
  limits.permissions.insert(limits.permissions.end(), features.begin(), features.end());
  return limits;
}

}  // namespace weft::info
