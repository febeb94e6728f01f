// See collective_data.hpp.
#include "tools/perf/gpu/collective_data.hpp"
#include "tools/perf/gpu/memory.cuh"
#include "tools/perf/option_names.hpp"
#include "tools/perf/reduction_values.hpp"

namespace weft::perf::gpu {
namespace {

std::string reduction_type(const ElementType& type, weft_reduction reduction) {
  const std::string name = type.type == WEFT_INT32 ? "int" : type.name;
  return name + "-" + std::string(perf::name_of(reduction));
}

template <typename T>
void prepare_as(const Session& session, const CollectivePlan& plan, std::size_t count) {
  const auto pes = static_cast<std::size_t>(session.pe_count());
  fill<T>(session.source(), plan.source_has_blocks ? pes : 1, count, session.me(),
          plan.reduction == WEFT_PROD);
  poison(session.dest(), (plan.dest_has_blocks ? pes : 1) * count * sizeof(T));
}

template <typename T>
std::uint64_t count_wrong_as(const Session& session,
                             const CollectivePlan& plan,
                             std::size_t count) {
  const auto pes = static_cast<std::size_t>(session.pe_count());
  return count_wrong<T>(
      session.dest(), plan.dest_has_blocks ? pes : 1, count,
      {plan.pattern, session.me(), session.pe_count(), 0, static_cast<int>(plan.reduction)});
}

}  // namespace

CollectivePlan plan_of(const Session& session,
                       weft_reduction reduction,
                       const std::string& suffix) {
  const Options& options = session.options();
  const double bus = (session.pe_count() - 1.0) / session.pe_count();
  CollectivePlan plan;
  plan.title = (options.kind == Kind::Bcast ? "broadcast" : options.name) + suffix;
  plan.type = width_of(options.type);
  plan.element_bytes = options.type.bytes;
  plan.element = plan.element_bytes == 4 ? WEFT_UINT32 : WEFT_UINT64;
  plan.bus_factor = bus;
  if (options.kind == Kind::Alltoall) {
    plan.source_has_blocks = plan.dest_has_blocks = true;
  } else if (options.kind == Kind::Fcollect) {
    plan.pattern = Pattern::Gather;
    plan.dest_has_blocks = true;
  } else if (options.kind == Kind::Bcast) {
    plan.pattern = Pattern::One;
    plan.bus_factor = 1;
  } else if (options.kind == Kind::Barrier || options.kind == Kind::Sync ||
             options.kind == Kind::SyncRelaxed) {
    plan.moves_nothing = true;
  } else {
    const bool scatters = options.kind == Kind::ReduceScatter;
    plan.pattern = scatters ? Pattern::ReduceScatter : Pattern::Reduce;
    plan.source_has_blocks = scatters;
    plan.bus_factor = scatters ? bus : 2 * bus;
    plan.reduction = reduction;
    plan.element = options.type.type;
    plan.type = reduction_type(options.type, reduction);
  }
  return plan;
}

std::vector<weft_reduction> reductions_of(const Options& options) {
  if (options.kind != Kind::Reduction && options.kind != Kind::ReduceScatter) {
    return {WEFT_SUM};
  }
  std::vector<weft_reduction> reductions;
  for (int value = WEFT_AND; value <= WEFT_PROD; ++value) {
    const auto reduction = static_cast<weft_reduction>(value);
    if (options.reduction ? *options.reduction == reduction
                          : is_allowed(reduction, options.type.type)) {
      reductions.push_back(reduction);
    }
  }
  return reductions;
}

void prepare(const Session& session, const CollectivePlan& plan, std::size_t count) {
  if (plan.element == WEFT_FLOAT) {
    prepare_as<float>(session, plan, count);
  } else if (plan.element == WEFT_DOUBLE) {
    prepare_as<double>(session, plan, count);
  } else if (plan.element_bytes == 4) {
    prepare_as<std::uint32_t>(session, plan, count);
  } else {
    prepare_as<std::uint64_t>(session, plan, count);
  }
  Session::barrier();
}

std::uint64_t count_wrong(const Session& session, const CollectivePlan& plan, std::size_t count) {
  if (plan.moves_nothing || !session.options().verifies) {
    return 0;
  }
  if (plan.element == WEFT_FLOAT) {
    return count_wrong_as<float>(session, plan, count);
  }
  if (plan.element == WEFT_DOUBLE) {
    return count_wrong_as<double>(session, plan, count);
  }
  return plan.element_bytes == 4 ? count_wrong_as<std::uint32_t>(session, plan, count)
                                 : count_wrong_as<std::uint64_t>(session, plan, count);
}

}  // namespace weft::perf::gpu
