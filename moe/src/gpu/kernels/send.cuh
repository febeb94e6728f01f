// The send of a dispatch. Group by group: a token's row, once to each rank that owns one of its
// experts; where rows are many, those for this rank itself at once to their places
// (Sending::lays_out).
//
// Device code, behind send_headers (counts.cuh), by all threads of the grid. Where each warp has
// many tokens, the routes of the next are on their way while one is sent.
#pragma once

#include <cstddef>

#include "moe/src/gpu/kernels/counts.cuh"
#include "moe/src/gpu/kernels/formats.cuh"
#include "moe/src/gpu/kernels/places.cuh"
#include "moe/src/gpu/kernels/polled.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// One call as its kernel began it, and what this thread has yet to tell.
template <typename ItsPath>
struct Sending {
  using Path = ItsPath;

  const Receiving<Path>& receiving;
  Ids ids;
  // Rows for this rank are laid out at once, without the way through its memory: `receiving` is
  // behind begin_rows.
  bool lays_out;
  PendingWords<Path::kRows> words;

  const __device__ KernelArguments& exchange() const { return receiving.exchange; }

  const __device__ Dispatch& call() const { return receiving.call; }

  __device__ std::uint64_t number() const { return receiving.number(); }

  __device__ bool lays_out_for(std::int32_t rank) const {
    return Path::kRows == Rows::WarpPerRow && lays_out && rank == exchange().me;
  }
};

// A token's routes; each thread of a warp has one of its lanes.
struct Choice {
  std::int64_t given = -1;  // what the caller says is the expert
  float weight = 0;
  std::int32_t slot = 0;  // of no meaning without an expert
  std::int32_t place = 0;

  __device__ std::int32_t expert(const Ids& ids) const {
    return given < 0 || given >= ids.experts ? -1 : static_cast<std::int32_t>(given);
  }
};

// Where count_places has been before.
inline __device__ Choice counted_choice(const KernelArguments& exchange,
                                        const Dispatch& call,
                                        std::uint32_t token) {
  Choice found;
  if (token < static_cast<std::uint32_t>(call.tokens) && lane() < exchange.shape.topk) {
    const std::uint32_t index = token * exchange.shape.topk + lane();
    found.given = call.ids[index];
    found.weight = call.weights != nullptr ? call.weights[index] : 0.0F;
    found.slot = exchange.workspace[index];
    found.place = exchange.workspace[exchange.shape.lanes() + index];
  }
  return found;
}

// The first warp of the group: where the row goes. `expert` and `slot` are those of the thread's
// lane.
template <typename Path>
__device__ void find_copies(const Sending<Path>& sending,
                            GroupMemory& group,
                            std::int32_t expert,
                            std::int32_t its_slot) {
  const KernelArguments& exchange = sending.exchange();
  const Shape& shape = exchange.shape;
  const std::int32_t owner = expert < 0 ? 0 : shape.map.rank_of(expert);
  const std::int32_t rank =
      expert < 0
          ? -1
          : static_cast<std::int32_t>(destination_of(exchange, static_cast<std::uint32_t>(owner)));
  const unsigned same = __match_any_sync(kAllLanes, rank);
  bool sends = rank >= 0 && __ffs(static_cast<int>(same)) - 1 == static_cast<int>(lane());
  sends = sends &&
          (sending.receiving.entered.missing >> static_cast<std::uint32_t>(rank) & 1) == 0 &&
          !sending.lays_out_for(rank);
  const unsigned senders = __ballot_sync(kAllLanes, sends);
  if (sends) {
    const int copy = __popc(senders & ((1U << lane()) - 1));
    const auto slot = static_cast<std::uint32_t>(its_slot);
    const auto me = static_cast<std::uint32_t>(exchange.me);
    const auto target = static_cast<std::uint32_t>(rank);
    std::byte* memory = exchange.memory[rank];
    const bool is_far = is_remote(exchange, target);
    group.ranks[copy] = target;
    group.to[copy] = is_far ? mine(exchange) + Staging{shape}.row_at(sending.number(), target, slot)
                            : memory + shape.row_at(sending.number(), me, slot);
    group.arrived[copy] =
        is_far ? nullptr : at<std::uint64_t>(memory, shape.arrived_at(sending.number(), me, slot));
    if (Path::kPolls) {
      group.to[copy] = memory + PolledPlaces{shape}.row_at(sending.number(), me, slot);
    } else if (Path::kParcels) {
      group.to[copy] = memory + shape.parcels_at(sending.number(), me, slot);
      group.arrived[copy] = nullptr;
    }
  }
  if (lane() == 0) {
    group.copies = static_cast<std::uint32_t>(__popc(senders));
    group.own_copies = 0;
  }
}

// A warp that is a group: the same for a row that this rank lays out itself.
template <typename Path>
__device__ void find_own_copies(const Receiving<Path>& receiving,
                                const Ids& ids,
                                GroupMemory& group,
                                const Choice& routes,
                                std::uint32_t token) {
  const KernelArguments& exchange = receiving.exchange;
  const std::int32_t expert = routes.expert(ids);
  const std::int32_t local = expert - exchange.shape.map.first_of(exchange.me);
  const unsigned ours =
      __ballot_sync(kAllLanes, static_cast<std::uint32_t>(local) < local_experts(exchange));
  if (ours == 0) {
    return;
  }
  const int first = __ffs(static_cast<int>(ours)) - 1;
  const auto slot = static_cast<std::uint32_t>(__shfl_sync(kAllLanes, routes.slot, first));
  const Row row{nullptr, static_cast<std::uint32_t>(exchange.me), slot};
  route(receiving, row, {expert, routes.weight, routes.place, token});
  __syncwarp();
  const auto copies = static_cast<std::uint32_t>(receiving.shared.copies[Group::number()]);
  if (lane() < copies) {
    group.to[group.copies + lane()] =
        receiving.call.rows +
        static_cast<std::size_t>(receiving.shared.to[Group::number()][lane()]) *
            exchange.shape.row.payload_bytes;
  }
  if (lane() == 0) {
    group.own_copies = copies;
  }
}

// The second warp of the group, or its only one: scales that the caller gave.
inline __device__ void write_scales(const KernelArguments& exchange,
                                    const Dispatch& call,
                                    std::byte* tail,
                                    std::uint32_t token) {
  const auto bytes = static_cast<std::uint32_t>(exchange.shape.row.scale_bytes);
  const std::byte* scales = call.scales + std::size_t{token} * bytes;
  if ((bytes | reinterpret_cast<std::uint64_t>(call.scales)) % sizeof(std::uint32_t) == 0) {
#pragma unroll 1
    for (std::uint32_t i = lane(); i < bytes / sizeof(std::uint32_t); i += kWarp) {
      at<std::uint32_t>(tail, 0)[i] = reinterpret_cast<const std::uint32_t*>(scales)[i];
    }
  } else {
#pragma unroll 1
    for (std::uint32_t i = lane(); i < bytes; i += kWarp) {
      tail[i] = scales[i];
    }
  }
}

// The same warp: what else stands behind the payload, and the source's part of the plan.
inline __device__ void write_tail(const KernelArguments& exchange,
                                  const Dispatch& call,
                                  const Ids& ids,
                                  GroupMemory& group,
                                  const Choice& routes,
                                  std::uint32_t token) {
  const Shape& shape = exchange.shape;
  std::byte* tail = group.tail;
  const std::size_t skipped = shape.row.scales_at();
  const std::uint32_t index = token * ids.topk + lane();
  if (lane() < ids.topk) {
    const std::int32_t id = routes.expert(ids);
    *at<std::int32_t>(tail, shape.row.ids_at() - skipped + lane() * 4) = id;
    *at<float>(tail, shape.row.weights_at() - skipped + lane() * 4) = routes.weight;
    *at<std::int32_t>(tail, shape.row.places_at() - skipped + lane() * 4) =
        id < 0 ? 0 : routes.place;
    at<std::int32_t>(call.plan, shape.plan().ids_at())[index] = id;
    at<float>(call.plan, shape.plan().weights_at())[index] = routes.weight;
    if (kBetweenNodes || shape.keeps_outputs) {
      at<std::int32_t>(call.plan, shape.plan().slots_at())[index] = routes.slot;
    }
    if (!weft::moe::is_allowed(routes.given, ids.experts)) {
      Record& record = *exchange.record;
      record.bad_id = routes.given;
      record.bad_id_at = static_cast<std::int32_t>(index);
      // SYNC moe-record (pairs with moe/src/gpu/gpu_exchange.cpp): that there is one is written
      // last.
      device::fence_release();
      device::store_relaxed(&record.bad_id_seen, 1);
    }
  }
  if (lane() == 0) {
    *at<std::int32_t>(tail, shape.row.token_at() - skipped) = static_cast<std::int32_t>(token);
  }
}

// What a group of several warps needs of its next token, on its way while it does something else:
// of the payload, and each thread's lane as the caller gave it.
template <Making kMaking>
struct Upcoming {
  Maker<kMaking> maker;
  std::int64_t given = -1;
  float weight = 0;

  __device__ Upcoming(const KernelArguments& exchange, const Dispatch& call, GroupMemory& group)
      : maker(exchange, call, group.tail, group.largest) {}

  __device__ void begin(const KernelArguments& exchange,
                        const Dispatch& call,
                        std::uint32_t token) {
    if (token >= static_cast<std::uint32_t>(call.tokens)) {
      return;
    }
    maker.begin(token, static_cast<std::uint32_t>(exchange.shape.row.payload_bytes) / kUnit);
    if (Group::warp() == 1 && lane() < exchange.shape.topk) {
      const std::uint32_t index = token * exchange.shape.topk + lane();
      given = call.ids[index];
      weight = call.weights != nullptr ? call.weights[index] : 0.0F;
    }
  }
};

// The lane of a token, when its places have been counted by the group or before.
template <typename Path>
__device__ Choice choice_here(const KernelArguments& exchange,
                              const Dispatch& call,
                              const Ids& ids,
                              const GroupMemory& group,
                              std::uint32_t token) {
  if (!Path::kHasFewTokens && ids.here == nullptr) {
    return counted_choice(exchange, call, token);
  }
  Choice found;
  if (lane() < ids.topk) {
    found.slot = group.slots[lane()];
    found.place = Path::kCountsSlots && !kBetweenNodes ? 0 : group.places[lane()];
    found.given = ids.here[token * ids.topk + lane()];
  }
  return found;
}

// Prepares destinations and metadata before the payload is copied. Begins and ends with the group's
// barrier. A warp that is a group has all of the routes already, the second one of several what the
// caller gave.
template <typename Path>
__device__ void prepare_token(const Sending<Path>& sending,
                              GroupMemory& group,
                              const Choice& routes,
                              std::uint32_t token) {
  constexpr Rows kRows = Path::kRows;
  const KernelArguments& exchange = sending.exchange();
  const Dispatch& call = sending.call();
  const Ids& ids = sending.ids;
  if constexpr (kRows == Rows::WarpPerRow) {
    __syncwarp();  // the last token's places are read
    find_copies(sending, group, routes.expert(ids), routes.slot);
    __syncwarp();
    if (sending.lays_out) {
      find_own_copies(sending.receiving, ids, group, routes, token);
    }
    write_tail(exchange, call, ids, group, routes, token);
    if (!sending.receiving.by_bulk.scales) {
      write_scales(exchange, call, group.tail, token);
    }
  } else {
    if (Path::kHasFewTokens || ids.here != nullptr) {
      if constexpr (Path::kCountsSlots) {
        find_slots(exchange, ids, group, token);
      } else {
        find_places(exchange, ids, group, token);
      }
    }
    Group::sync<kRows>();
    const std::uint32_t warp = Group::warp();
    if (warp < 2) {
      const Choice found = choice_here<Path>(exchange, call, ids, group, token);
      if (warp == 0) {
        find_copies(sending, group, found.expert(ids), found.slot);
      } else {
        write_tail(exchange, call, ids, group,
                   {routes.given, routes.weight, found.slot, found.place}, token);
        if (call.type == exchange.payload) {
          write_scales(exchange, call, group.tail, token);
        }
      }
    }
  }
  Group::sync<kRows>();
  if (Path::kCountsSlots) {
    clear_slots(group);
  }
}

// A warp: the row goes through its pipeline, as the caller gave it. `routes` are those of token
// `next` afterwards.
template <typename Path>
__device__ void send_token_by_bulk(Sending<Path>& sending,
                                   GroupMemory& group,
                                   Choice& routes,
                                   std::uint32_t token,
                                   std::uint32_t next) {
  const Shape& shape = sending.exchange().shape;
  const Dispatch& call = sending.call();
  const BulkPipeline<DispatchPipeline> pipeline = sending.receiving.pipeline();
  const ByBulk& by_bulk = sending.receiving.by_bulk;
  const std::byte* from = call.x + token * shape.row.payload_bytes;
  const auto scales = static_cast<std::uint32_t>(shape.row.scale_bytes);
  if (lane() == 0) {
    pipeline.begin_row(
        by_bulk.payload, from,
        {group.tail, call.scales + std::size_t{token} * scales, by_bulk.scales ? scales : 0});
  }
  prepare_token(sending, group, routes, token);
  routes = counted_choice(sending.exchange(), call, next);
  fence_shared_for_bulk();  // each thread wrote a part of the tail
  pipeline.await(0);        // and the scales are there
  __syncwarp();
  const std::uint32_t copies = group.copies;
  if (lane() == 0) {
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      store_bulk(group.to[copy] + shape.row.scales_at(), group.tail,
                 static_cast<std::uint32_t>(shape.row.bytes() - shape.row.scales_at()));
    }
    const std::int32_t* own = sending.receiving.shared.to[Group::number()];
    for (std::uint32_t copy = 0; by_bulk.scales && copy < group.own_copies; ++copy) {
      store_bulk(call.row_scales + static_cast<std::size_t>(own[copy]) * scales, group.tail,
                 scales);
    }
    pipeline.store_row(by_bulk.payload, from,
                       [&](const std::byte* piece, std::uint32_t begin, std::uint32_t bytes) {
                         for (std::uint32_t copy = 0; copy < copies + group.own_copies; ++copy) {
                           store_bulk(group.to[copy] + begin, piece, bytes);
                         }
                       });
  }
  if (group.own_copies > 0 && !by_bulk.scales) {
    copy_scales(sending.receiving,
                [&](std::size_t byte) { return *at<std::uint32_t>(group.tail, byte); });
  }
  __syncwarp();
  sending.words.add(lane() < copies ? group.arrived[lane()] : nullptr, sending.number());
}

// A group of several warps.
template <typename Path, typename Maker>
__device__ void send_token(Sending<Path>& sending,
                           GroupMemory& group,
                           const Maker& maker,
                           const Choice& routes,
                           std::uint32_t token) {
  const KernelArguments& exchange = sending.exchange();
  const Shape& shape = exchange.shape;
  const auto units = static_cast<std::uint32_t>(shape.row.payload_bytes) / kUnit;
  prepare_token(sending, group, routes, token);
  const std::uint32_t copies = group.copies;
  ForPoller for_poller;
  const auto store = [&](std::uint32_t copy, std::uint32_t unit, const Vector16& data) {
    if constexpr (Path::kPolls) {
      for_poller.store(at<Vector16>(group.to[copy], 0) + unit, data);
    } else if constexpr (Path::kParcels) {
      store_as_parcels(group.to[copy], unit, data, sending.number());
    } else {
      device::store_data(at<Vector16>(group.to[copy], 0) + unit, data);
    }
  };
  maker.for_units(units, [&](std::uint32_t unit, const Vector16& made) {
#pragma unroll 1
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      store(copy, unit, made);
    }
  });
  Group::sync<Rows::BlockPerRow>();  // the scales are in the tail
  const auto tail_units =
      static_cast<std::uint32_t>(shape.row.used_bytes() - shape.row.scales_at()) / kUnit;
#pragma unroll 1
  for (std::uint32_t i = Group::thread(); i < tail_units * copies; i += Group::size()) {
    const std::uint32_t copy = i / tail_units;
    const std::uint32_t unit = i - copy * tail_units;
    store(copy, units + unit, at<Vector16>(group.tail, 0)[unit]);
  }
  if constexpr (Path::kPolls) {
    if (Group::all<Rows::BlockPerRow>(!for_poller.has_nothing)) {
      return;
    }
  }
  Group::sync<Rows::BlockPerRow>();
  std::uint64_t* word = Group::thread() < copies ? group.arrived[Group::thread()] : nullptr;
  if (kBetweenNodes && Group::thread() < copies && word == nullptr) {
    add_staged(exchange, sending.number(), group.ranks[Group::thread()], 1);
  }
  sending.words.add(word, sending.number());
}

// Groups of several warps; `next` has begun with the group's first token.
template <Making kMaking, typename Path>
__device__ void send_few_rows(Sending<Path> sending, SendMemory& shared, Upcoming<kMaking>& next) {
  const Dispatch& call = sending.call();
#pragma unroll 1
  for (std::uint32_t token = Group::index(); token < static_cast<std::uint32_t>(call.tokens);
       token += Group::count()) {
    send_token(sending, shared.group(), next.maker, {next.given, next.weight}, token);
    next.begin(sending.exchange(), call, token + Group::count());
  }
}

// So many warps of each block send, while the others lay out what comes. A warp that did both would
// wait for the link with all others, and then leave it idle with all others.
inline constexpr std::uint32_t kSenders = 10;

// The first `senders` warps of each block.
template <typename Path>
__device__ void send_many_rows(Sending<Path> sending, SendMemory& shared, std::uint32_t senders) {
  const KernelArguments& exchange = sending.exchange();
  const Dispatch& call = sending.call();
  if (Group::number() >= senders) {
    return;
  }
  const auto tokens = static_cast<std::uint32_t>(call.tokens);
  SendNumbers<Path::kRows> numbers(exchange, sending.receiving.entered, senders);
  Choice routes = counted_choice(exchange, call, numbers.index());
  numbers.begin_next();
#pragma unroll 1
  while (numbers.index() < tokens) {
    const std::uint32_t token = numbers.index();
    numbers.next();
    numbers.begin_next();
    send_token_by_bulk(sending, shared.group(), routes, token, numbers.index());
  }
  sending.words.store(sending.number());
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
