#include "src/topology/gpu_guess.hpp"

#include <charconv>

#include "src/base/error.hpp"

namespace weft::topology {
namespace {

PciAddress named_gpu(const std::string& setting) {
  const auto address = parse_pci_address(setting);
  if (!address) {
    fail(Status::InvalidArgument,
         "WEFT_GPU={}: neither auto nor none nor the PCI address of a GPU, like 0000:1b:00.0 "
         "(nvidia-smi --query-gpu=pci.bus_id --format=csv)",
         setting);
  }
  return *address;
}

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() ? std::optional(number)
                                                                 : std::nullopt;
}

GpuGuess guess_among_visible(const GpuQuestion& question) {
  const auto& visible = question.visible;
  if (question.current && *question.current < visible.size()) {
    return {visible[*question.current], "this thread has a CUDA context on it"};
  }
  if (visible.size() == 1 && question.machine_gpu_count > 1) {
    return {visible[0], "the only one of the machine that this process sees"};
  }
  if (const auto rank = number_in(question.local_rank); rank && *rank < visible.size()) {
    return {visible[*rank], "the one that LOCAL_RANK numbers"};
  }
  // A single GPU is no evidence: programs that use only the CPU run on such machines, too.
  if (visible.size() > 1 && visible.size() == question.machine_pe_count) {
    return {visible[question.machine_pe], "the machine has as many GPUs as PEs"};
  }
  return {std::nullopt, visible.empty()
                            ? "this process sees none"
                            : "nothing says which it will use; WEFT_GPU, or cudaSetDevice before "
                              "weft_init, would"};
}

}  // namespace

GpuGuess guess_gpu(const GpuQuestion& question) {
  if (question.setting == "none") {
    return {std::nullopt, "WEFT_GPU=none"};
  }
  if (question.setting != "auto") {
    return {named_gpu(question.setting), "WEFT_GPU names it"};
  }
  return guess_among_visible(question);
}

}  // namespace weft::topology
