#include "moe/src/plan/validate.hpp"

#include <weft/moe/experts.hpp>
#include <weft/moe/layouts.hpp>

#include <algorithm>
#include <cstddef>

#include "moe/src/plan/element.hpp"
#include "src/base/error.hpp"

namespace weft::moe::engine {
namespace {

constexpr std::size_t kRowUnit = 16;

constexpr int as_int(std::uint32_t limit) {
  return static_cast<int>(limit);
}

std::string layout_error(weft_moe_layout layout) {
  if (layout_of(layout).name != nullptr) {
    return "";
  }
  std::string names;
  for_layouts([&](int value, const Layout& of) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", of.name, value);
  });
  return fmt::format("layout is {}; give one of {}", static_cast<int>(layout), names);
}

std::string sizes_error(const weft_moe_config& config, int ranks) {
  if (ranks < 1) {
    return "team is not a team of this PE";
  }
  for (const std::string& error :
       {out_of_range("max_tokens", config.max_tokens, 1, as_int(kTokensMax)),
        out_of_range("hidden", config.hidden, 1, 1 << 20),
        out_of_range("topk", config.topk, 1, as_int(kTopkMax)),
        out_of_range("alignment", config.alignment, 1, 1 << 16)}) {
    if (!error.empty()) {
      return error;
    }
  }
  if (config.experts < ranks || config.experts > as_int(kExpertsMax)) {
    return fmt::format("experts is {}; give at least one for each of the {} ranks, at most {}",
                       config.experts, ranks, kExpertsMax);
  }
  if (config.row_per < WEFT_MOE_ROW_PER_AUTO || config.row_per > WEFT_MOE_ROW_PER_NODE) {
    return "row_per is none of the values that weft/moe.h names";
  }
  if (config.row_per == WEFT_MOE_ROW_PER_NODE && config.memory == WEFT_MOE_DEVICE &&
      config.on_timeout == WEFT_MOE_MASK) {
    return "row_per=node with WEFT_MOE_MASK is not supported on GPUs; give auto or rank";
  }
  if (config.outputs_in_place != 0 &&
      (config.memory != WEFT_MOE_DEVICE || !is_by_rank(config.layout))) {
    return "outputs_in_place is for exchanges in GPU memory with a rank layout; leave it 0 for "
           "others";
  }
  if (config.scales_by_column != 0 &&
      (config.layout != WEFT_MOE_EXPERT_PADDED || config.scales == WEFT_MOE_SCALES_NVFP4 ||
       scale_bytes_of(config.scales, static_cast<std::size_t>(config.hidden)) % 4 != 0)) {
    return "scales_by_column is for the layout expert_padded and float32 or ue8m0 scales, of which "
           "a "
           "row has a multiple of 4 bytes; leave it 0 for others";
  }
  if (!(config.timeout_s >= 0)) {
    return fmt::format("timeout is {} s; give more than 0, or 0 for WEFT_MOE_TIMEOUT",
                       config.timeout_s);
  }
  return "";
}

std::string types_error(const weft_moe_config& config) {
  const auto hidden = static_cast<std::size_t>(config.hidden);
  const bool is_fp4 = config.payload == WEFT_MOE_NVFP4;
  if (config.payload < WEFT_MOE_BF16 || config.payload > WEFT_MOE_NVFP4 ||
      config.output < WEFT_MOE_BF16 || config.output > WEFT_MOE_F64 ||
      config.scales < WEFT_MOE_SCALES_NONE || config.scales > WEFT_MOE_SCALES_NVFP4) {
    return "payload, scales or output is none of the values that weft/moe.h names";
  }
  if (is_fp4 != (config.scales == WEFT_MOE_SCALES_NVFP4) ||
      (config.scales != WEFT_MOE_SCALES_NONE && !is_quantized(config.payload))) {
    return fmt::format(
        "scales do not fit the payload {}; nvfp4 has its own scales, fp8 has f32, ue8m0 or none, "
        "others have none",
        name_of(config.payload));
  }
  for (const weft_moe_type type : {config.payload, config.output}) {
    if (row_bytes_of(type, hidden) % kRowUnit != 0) {
      return fmt::format(
          "a row of {} values of {} has {} bytes; give a hidden that makes it a "
          "multiple of {}",
          hidden, name_of(type), row_bytes_of(type, hidden), kRowUnit);
    }
  }
  return "";
}

}  // namespace

std::string out_of_range(const char* name, int value, int least, int most) {
  return value >= least && value <= most
             ? ""
             : fmt::format("{} is {}; give {} to {}", name, value, least, most);
}

void require_in_range(const char* name, int value, int least, int most) {
  if (const std::string error = out_of_range(name, value, least, most); !error.empty()) {
    fail(Status::InvalidArgument, "{}", error);
  }
}

std::string fields_error(const weft_moe_config& config, int ranks) {
  std::string error = layout_error(config.layout);
  error = error.empty() ? sizes_error(config, ranks) : error;
  return error.empty() ? types_error(config) : error;
}

void require_step(Step now, Step wanted, const char* call) {
  if (now == wanted) {
    return;
  }
  const char* state = now == Step::Idle          ? "no step is under way"
                      : now == Step::Dispatching ? "a dispatch was sent, and not received"
                                                 : "a combine was sent, and not received";
  fail(Status::InvalidArgument, "{}, so {} does not fit here", state, call);
}

void require_tokens(const weft_moe_config& config, const weft_moe_tokens& tokens) {
  if (tokens.count < 0 || tokens.count > config.max_tokens) {
    fail(Status::InvalidArgument,
         "x has {} tokens, and the exchange was made for {}; give fewer, or raise max_tokens",
         tokens.count, config.max_tokens);
  }
  const bool is_ready = tokens.type == config.payload;
  if (!is_ready &&
      (!is_quantized(config.payload) || is_quantized(tokens.type) || tokens.type == WEFT_MOE_F64)) {
    fail(Status::InvalidArgument, "x is of {}, and the exchange moves {}; convert it first",
         name_of(tokens.type), name_of(config.payload));
  }
  if (!is_ready && tokens.scales != nullptr) {
    fail(Status::InvalidArgument,
         "x is of {} and gets its scales here; leave out scales, or give x as {}",
         name_of(tokens.type), name_of(config.payload));
  }
}

void require_sum(const weft_moe_config& config, const weft_moe_outputs& outputs) {
  if (is_by_rank(config.layout) &&
      (!sums_at_experts(outputs.precision) || outputs.weighting != WEFT_MOE_UNWEIGHTED)) {
    fail(Status::InvalidArgument,
         "rows by rank are reduced by the caller, so combine takes no weights and precision "
         "'reduced' or 'fp8' alone; use an expert layout for others");
  }
  if (const std::string error = precision_error(config.output, config.hidden, outputs.precision);
      !error.empty()) {
    fail(Status::InvalidArgument, "{}", error);
  }
}

void require_destinations(const weft_moe_destinations& destinations) {
  const weft_moe_destinations& of = destinations;
  require_in_range("tokens", of.tokens, 0, as_int(kTokensMax));
  require_in_range("topk", of.topk, 1, as_int(kTopkMax));
  require_in_range("ranks", of.ranks, 1, as_int(kRanksMax));
  require_in_range("experts", of.experts, std::clamp(of.ranks, 1, as_int(kRanksMax)),
                   as_int(kExpertsMax));
}

}  // namespace weft::moe::engine
