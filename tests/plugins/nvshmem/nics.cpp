// The variables. A process finds or makes an emulated fabric by itself (loom/README.md, Options).
#include "tests/plugins/nvshmem/nics.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include "tests/support/paths.hpp"

namespace weft::plugins::nvshmem {
namespace {

constexpr const char* kLoomFolder = WEFT_BINARY_DIR "/../lib";

// libfabric's name of the provider that a persona stands for.
std::string provider_of(const std::string& persona) {
  return persona.starts_with("efa") ? "efa" : persona;
}

}  // namespace

Nics::Nics(int rail_count) : rail_count_(rail_count) {}

Nics::Nics(std::string persona, int nics_per_node, int pe_count)
    : persona_(std::move(persona)), rail_count_(nics_per_node), pe_count_(pe_count) {
  std::string pattern = ::testing::TempDir() + "weft-fabric-XXXXXX";
  folder_ = ::mkdtemp(pattern.data()) == nullptr ? "" : pattern;
}

Nics::~Nics() {
  std::error_code ignored;
  if (!folder_.empty()) {
    std::filesystem::remove_all(folder_, ignored);
  }
}

std::string Nics::why_absent() const {
  if (!is_emulated()) {
    return "";
  }
  if (folder_.empty()) {
    return "no folder can be made in " + ::testing::TempDir();
  }
  return std::filesystem::exists(std::string(kLoomFolder) + "/libloom-fi.so")
             ? ""
             : std::string("there is no libloom-fi.so in ") + kLoomFolder;
}

Variables Nics::variables(int pe) const {
  Variables set{{"WEFT_NICS_SHARED", "yes"}, {"WEFT_JOB_SECRET", "of a test on one machine"}};
  if (!is_emulated()) {
    std::string addresses;
    for (int rail = 1; rail <= rail_count_; ++rail) {
      addresses += (addresses.empty() ? "127.0.0." : ",127.0.0.") + std::to_string(rail);
    }
    set["WEFT_PROVIDER"] = "tcp";
    set["WEFT_NICS"] = addresses;
    return set;
  }
  set["WEFT_PROVIDER"] = provider_of(persona_);
  set["FI_PROVIDER"] = provider_of(persona_);
  set["FI_PROVIDER_PATH"] = kLoomFolder;
  set["LOOM_DIR"] = folder_;
  set["LOOM_JOB"] = "test";
  set["LOOM_PERSONA"] = persona_;
  set["LOOM_NODES"] = std::to_string(pe_count_);
  set["LOOM_NICS_PER_NODE"] = std::to_string(rail_count_);
  set["LOOM_NODE"] = std::to_string(pe);
  set["LOOM_SHREDDED"] = "1";
  set["LOOM_LATENCY_US"] = "5";
  set["LOOM_JITTER_US"] = "30";
  set["RANK"] = std::to_string(pe);
  set["WORLD_SIZE"] = std::to_string(pe_count_);
  return set;
}

int run_loom(const std::string& words) {
  const std::string command = WEFT_BINARY_DIR "/loom " + words;
  return std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe,cert-env33-c)
}

}  // namespace weft::plugins::nvshmem
