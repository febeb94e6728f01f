#include "moe/src/engines.hpp"

#include "moe/src/cpu/exchange.hpp"
#include "moe/src/gpu/gpu_exchange.hpp"
#include "moe/src/gpu/layout.hpp"
#include "moe/src/plan/agree.hpp"
#include "moe/src/plan/validate.hpp"
#include "src/base/error.hpp"

namespace weft::moe::engine {
namespace {

// A second agreement: that each rank can reach the others' memory is known only now.
std::unique_ptr<Engine> make_on_gpu(const weft_moe_config& config, std::byte* memory) {
  std::unique_ptr<Engine> made;
  std::string error;
  if (config.team != WEFT_TEAM_INVALID) {
    try {
      made = std::make_unique<GpuExchange>(config, memory);
    } catch (const Error& raised) {
      error = raised.what();
    }
  }
  static_cast<void>(agree(config, 0, error));
  return made;
}

}  // namespace

std::string config_error(const weft_moe_config& config, const Ranks& ranks) {
  std::string error = fields_error(config, static_cast<int>(ranks.count()));
  return error.empty() && config.memory == WEFT_MOE_DEVICE ? gpu_error(config, ranks) : error;
}

std::size_t memory_bytes(const weft_moe_config& config, const Ranks& ranks) {
  return config.memory == WEFT_MOE_DEVICE ? gpu::memory_bytes(gpu_shape(config, ranks))
                                          : cpu_memory_bytes(config, ranks);
}

std::unique_ptr<Engine> make_engine(const weft_moe_config& config,
                                    bool shares_memory,
                                    std::byte* memory) {
  if (config.memory == WEFT_MOE_DEVICE) {
    return make_on_gpu(config, memory);
  }
  return config.team == WEFT_TEAM_INVALID
             ? nullptr
             : std::make_unique<CpuExchange>(config, shares_memory, memory);
}

}  // namespace weft::moe::engine
