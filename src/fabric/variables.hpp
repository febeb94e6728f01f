// The variables of libfabric's providers that Weft sets where the user has not: which, and for how
// long.
//
// Some are read when the providers start, the others each time an endpoint is opened. They are set
// for that call alone, so programs that this process starts do not inherit them. A variable that is
// set stands, whatever its value. Control path. POSIX lets no other thread read the environment
// while it is changed, which holds for init.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::fabric {

// prov/cxi/src/cxip_rma.c: cxip_rma_is_idc. The first is of 2.3 and later; before 2.0 the second
// covers writes, too; in between there is none.
inline constexpr const char* kNoSmallWriteCopies = "FI_CXI_DISABLE_NON_INJECT_RMA_IDC";
inline constexpr const char* kNoSmallMessageCopies = "FI_CXI_DISABLE_NON_INJECT_MSG_IDC";

struct Variable {
  std::string name;
  std::string value;
};

// What decides about the variables; a value, so that tests can make any machine.
struct StartFacts {
  std::uint32_t library_version = 0;  // fi_version()
  std::size_t rdma_devices = 0;       // /sys/class/infiniband
  std::size_t cxi_devices = 0;        // /sys/class/cxi
  std::size_t pe_count = 1;
  bool uses_gpu = false;
  bool verbs_needs_fork_support = false;  // and can still be given it
  bool kernel_copies_at_fork = true;      // pinned pages: from Linux 5.13 on
  std::function<bool(std::string_view)> is_set = [](std::string_view) { return false; };
};

// Before the first fi_getinfo(3) of a process.
[[nodiscard]] std::vector<Variable> variables_at_start(const StartFacts& facts);

// Before an endpoint of this provider is opened.
[[nodiscard]] std::vector<Variable> variables_at_opening(std::string_view provider,
                                                         const StartFacts& facts);

// Whether this library, started with these values, leaves the sources of small writes to the NIC.
// `value_of` gives "" for a variable that was not set.
[[nodiscard]] bool leaves_small_writes_to_nic(
    std::uint32_t library_version, const std::function<std::string(std::string_view)>& value_of);

// Sets variables for its lifetime; those that are set already are left as they are.
class ScopedVariables {
 public:
  explicit ScopedVariables(std::vector<Variable> variables);
  ScopedVariables(const ScopedVariables&) = delete;
  ScopedVariables& operator=(const ScopedVariables&) = delete;
  ~ScopedVariables();

 private:
  std::vector<Variable> set_;
};

// Whether the user has said what is to be done about fork(2).
[[nodiscard]] bool is_fork_decided(const std::function<bool(std::string_view)>& is_set);

// Whether this process's environment has the variable.
[[nodiscard]] bool is_in_environment(std::string_view name);

}  // namespace weft::fabric
