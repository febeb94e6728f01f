// The GPUs and their links, for people and for programs. Pure; any thread.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "src/gpu/inventory.hpp"

namespace weft::info {

// `on_machine`: how many GPUs the PCI tree has, of which this process may see fewer.
[[nodiscard]] std::string gpus_text(const gpu::Inventory& inventory, std::size_t on_machine);
[[nodiscard]] nlohmann::ordered_json gpus_json(const gpu::Inventory& inventory);

// "13.0" for 13000, as CUDA counts.
[[nodiscard]] std::string cuda_version_text(std::int32_t version);

}  // namespace weft::info
