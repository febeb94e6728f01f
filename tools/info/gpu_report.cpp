#include "tools/info/gpu_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::info {
namespace {

using gpu::InventoryGpu;
using gpu::PeerLink;

// As nvidia-smi topo writes it: NV18 are 18 links, or a switch behind 18 links.
std::string link_text(const InventoryGpu& from, const PeerLink& link) {
  if (!link.has_access) {
    return "none";
  }
  const std::uint32_t links = link.nvlink_count > 0 ? link.nvlink_count : from.nvlink_count;
  return (link.is_nvlink ? fmt::format("NV{}", links) : std::string("PCIe")) +
         (link.has_atomics ? "" : "*");
}

std::string nvlink_text(const InventoryGpu& gpu) {
  if (gpu.nvlink_count == 0) {
    return "no NVLink";
  }
  return gpu.nvlink_bytes_per_s == 0
             ? fmt::format("{} NVLinks", gpu.nvlink_count)
             : fmt::format("{} NVLinks of {:.1f} GB/s each way", gpu.nvlink_count,
                           static_cast<double>(gpu.nvlink_bytes_per_s) / 1e9);
}

std::string_view yes_no(bool value) {
  return value ? "yes" : "no";
}

std::string gpu_text(const InventoryGpu& gpu) {
  const gpu::Device& device = gpu.device;
  return fmt::format(
      "  GPU {}  {}  {}, {:.1f} GiB, compute {}.{}, {} multiprocessors, {}\n"
      "         device heap by virtual memory management: {}, fabric handles: {}; for NICs: RDMA "
      "{}, "
      "dma-buf {}{}\n",
      device.index, device.pci, device.name, static_cast<double>(device.bytes) / 0x1p30,
      gpu.compute_major, gpu.compute_minor, gpu.multiprocessor_count, nvlink_text(gpu),
      yes_no(device.has_posix_handles), yes_no(device.has_fabric_handles), yes_no(device.has_rdma),
      yes_no(device.has_dma_buf),
      !device.has_rdma || device.nic_writes_seen_by == gpu::Seers::AllGpus ? ""
      : device.nic_writes_seen_by == gpu::Seers::Owner ? ", writes must be flushed for other GPUs"
                                                       : ", writes must be flushed");
}

std::string matrix_text(const gpu::Inventory& inventory) {
  std::string text = "  from\\to";
  for (const InventoryGpu& to : inventory.gpus) {
    text += fmt::format(" {:>6}", to.device.index);
  }
  text += "\n";
  for (std::size_t from = 0; from < inventory.gpus.size(); ++from) {
    const InventoryGpu& gpu = inventory.gpus[from];
    text += fmt::format("  {:>7}", gpu.device.index);
    for (std::size_t to = 0; to < gpu.links.size(); ++to) {
      text += fmt::format(" {:>6}", to == from ? "-" : link_text(gpu, gpu.links[to]));
    }
    text += "\n";
  }
  return text +
         "  NV: NVLinks, or the links to a switch; PCIe: peer-to-peer over PCIe; none: such "
         "PEs use the proxy; *: without atomics\n";
}

nlohmann::ordered_json link_json(const PeerLink& link) {
  return {{"access", link.has_access},
          {"atomics", link.has_atomics},
          {"kind", !link.has_access ? "none"
                   : link.is_nvlink ? "nvlink"
                                    : "pcie"},
          {"direct_nvlinks", link.nvlink_count}};
}

nlohmann::ordered_json gpu_json(const InventoryGpu& gpu) {
  auto links = nlohmann::ordered_json::array();
  for (std::size_t to = 0; to < gpu.links.size(); ++to) {
    const bool is_self = static_cast<std::int32_t>(to) == gpu.device.index;
    links.push_back(is_self ? nlohmann::ordered_json(nullptr) : link_json(gpu.links[to]));
  }
  return {{"index", gpu.device.index},
          {"name", gpu.device.name},
          {"pci", gpu.device.pci},
          {"memory_bytes", gpu.device.bytes},
          {"compute_capability", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)},
          {"multiprocessor_count", gpu.multiprocessor_count},
          {"posix_handles", gpu.device.has_posix_handles},
          {"fabric_handles", gpu.device.has_fabric_handles},
          {"rdma", gpu.device.has_rdma},
          {"dma_buf", gpu.device.has_dma_buf},
          {"needs_rdma_flush", gpu.device.nic_writes_seen_by == gpu::Seers::Nobody},
          {"needs_rdma_flush_for_peers", gpu.device.nic_writes_seen_by != gpu::Seers::AllGpus},
          {"nvlink_count", gpu.nvlink_count},
          {"nvlink_bytes_per_s", gpu.nvlink_bytes_per_s == 0
                                     ? nlohmann::ordered_json(nullptr)
                                     : nlohmann::ordered_json(gpu.nvlink_bytes_per_s)},
          {"links", links}};
}

nlohmann::ordered_json version_json(std::int32_t version) {
  return version == 0 ? nlohmann::ordered_json(nullptr)
                      : nlohmann::ordered_json(cuda_version_text(version));
}

}  // namespace

std::string cuda_version_text(std::int32_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string gpus_text(const gpu::Inventory& inventory, std::size_t on_machine) {
  if (inventory.gpus.empty()) {
    return fmt::format("\nGPUs: none to use: {}\n", inventory.absence);
  }
  std::string text =
      fmt::format("\nGPUs: {} to use, built with CUDA {}, driver {}for CUDA {}\n",
                  inventory.gpus.size(), cuda_version_text(inventory.runtime_version),
                  inventory.driver_release.empty() ? "" : inventory.driver_release + " ",
                  cuda_version_text(inventory.driver_version));
  for (const InventoryGpu& gpu : inventory.gpus) {
    text += gpu_text(gpu);
  }
  text += inventory.gpus.size() > 1 ? matrix_text(inventory) : "";
  if (on_machine > inventory.gpus.size()) {
    text += fmt::format(
        "  the machine has {}; look at CUDA_VISIBLE_DEVICES and the container's devices\n",
        on_machine);
  }
  return text;
}

nlohmann::ordered_json gpus_json(const gpu::Inventory& inventory) {
  auto gpus = nlohmann::ordered_json::array();
  for (const InventoryGpu& gpu : inventory.gpus) {
    gpus.push_back(gpu_json(gpu));
  }
  using Json = nlohmann::ordered_json;
  return {{"absence", inventory.absence.empty() ? Json(nullptr) : Json(inventory.absence)},
          {"cuda_version", version_json(inventory.runtime_version)},
          {"driver_cuda_version", version_json(inventory.driver_version)},
          {"driver_release",
           inventory.driver_release.empty() ? Json(nullptr) : Json(inventory.driver_release)},
          {"gpus", gpus}};
}

}  // namespace weft::info
