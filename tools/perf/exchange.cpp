#include "tools/perf/exchange.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "tools/perf/payload.hpp"

namespace weft::perf {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::uint64_t kReportsMax = 4;

bool has_one_partner(Pattern pattern) {
  return pattern == Pattern::OneWay || pattern == Pattern::BothWays;
}

std::size_t stride_of(const ExchangePlan& plan) {
  // weft_alltoall wants the blocks side by side.
  return plan.collective ? plan.message_bytes
                         : (plan.message_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace

ExchangePlan plan_exchange(const Job& job,
                           const Options& options,
                           Pattern pattern,
                           std::size_t message_bytes) {
  return {.pattern = pattern,
          .world = {.pe_count = job.pe_count(),
                    .first = 0,
                    .second = job.partner(),
                    .seed = options.seed},
          .message_bytes = message_bytes,
          .window = options.collective ? 1 : window_for(options, message_bytes),
          .count_per_step = options.collective ? 1 : options.count_per_step,
          .start_apart_us = options.start_apart_us,
          .size_rule = options.size_rule,
          .reads = options.reads,
          .alternates_signal = options.alternates_signal,
          .collective = options.collective,
          .verifies = options.verifies};
}

Exchange::Exchange(const Job& job, const ExchangePlan& plan)
    : job_(job),
      plan_(plan),
      targets_(targets_of(plan.pattern, plan.world, job.me(), 0)),
      stride_(stride_of(plan)),
      slot_count_(plan.verifies ? plan.window * plan.count_per_step : 1),
      peer_count_(has_one_partner(plan.pattern) ? 1 : job.pe_count()),
      source_peer_count_(plan.verifies || plan.collective ? peer_count_ : 1),
      source_(stride_ * slot_count_ * source_peer_count_),
      dest_(stride_ * slot_count_ * peer_count_),
      signals_(slot_count_ * peer_count_ * sizeof(std::uint64_t)),
      signal_values_(slot_count_ * sizeof(std::uint64_t)) {
  fill_payload(source_.bytes(), {.source = job.me()});
  fill_poison(dest_.bytes());
  fill_poison(signals_.bytes());
  Job::barrier();
}

MessageId Exchange::id_of(const Message& message) const {
  const std::uint64_t iteration = message.step * plan_.count_per_step + message.index;
  return plan_.reads ? MessageId{message.target, message.initiator, iteration}
                     : MessageId{message.initiator, message.target, iteration};
}

std::size_t Exchange::size_of(const Message& message) const {
  return plan_.size_rule.size_of(id_of(message), plan_.message_bytes);
}

std::size_t Exchange::slot_of(const Message& message) const {
  return slot_count_ == 1 ? 0 : message.step % plan_.window * plan_.count_per_step + message.index;
}

std::byte* Exchange::place(std::byte* area, std::uint32_t peer, const Message& message) const {
  const std::size_t peer_place = peer_count_ == 1 ? 0 : peer;
  return area + (peer_place * slot_count_ + slot_of(message)) * stride_;
}

std::byte* Exchange::source_place(const Message& message, std::uint32_t peer) const {
  return source_peer_count_ == 1 && peer_count_ != 1 ? source_.data()
                                                     : place(source_.data(), peer, message);
}

std::uint64_t* Exchange::signal_place(std::uint32_t peer, const Message& message) const {
  const std::size_t peer_place = peer_count_ == 1 ? 0 : peer;
  return signals_.words() + peer_place * slot_count_ + slot_of(message);
}

std::vector<std::uint32_t> Exchange::others_in(std::uint64_t step, bool begun_here) const {
  return begun_here ? targets_of(plan_.pattern, plan_.world, job_.me(), step)
                    : initiators_to(plan_.pattern, plan_.world, job_.me(), step);
}

template <typename Visit>
void Exchange::for_each(Steps steps, bool begun_here, const Visit& visit) const {
  const std::uint32_t me = job_.me();
  const bool draws = plan_.pattern == Pattern::Random;
  std::vector<std::uint32_t> others = begun_here ? targets_ : others_in(steps.first, begun_here);
  for (std::uint64_t step = steps.first; step < steps.first + steps.count; ++step) {
    if (draws) {
      others = others_in(step, begun_here);
    }
    for (std::uint64_t index = 0; index < plan_.count_per_step; ++index) {
      for (const std::uint32_t other : others) {
        visit(Message{.initiator = begun_here ? me : other,
                      .target = begun_here ? other : me,
                      .step = step,
                      .index = index});
      }
    }
  }
}

void Exchange::prepare(Steps steps) {
  fill_poison(dest_.bytes());
  fill_poison(signals_.bytes());
  // The data of a get lies with the PE that is asked, so that one fills it.
  for_each(steps, !plan_.reads, [&](const Message& message) {
    const std::uint32_t peer = plan_.reads ? message.initiator : message.target;
    fill_payload({source_place(message, peer), size_of(message)}, id_of(message));
  });
}

void Exchange::post_signal(const Message& message) {
  std::uint64_t* value = signal_values_.words() + slot_of(message);
  if (plan_.verifies) {
    *value = id_of(message).iteration;
  }
  require(weft_put_nbi(signal_place(message.initiator, message), value, sizeof(*value),
                       static_cast<int>(message.target)));
}

void Exchange::post_message(const Message& message) {
  const std::size_t bytes = size_of(message);
  const int target = static_cast<int>(message.target);
  if (plan_.reads) {
    const auto get = plan_.waits_for_each ? weft_get : weft_get_nbi;
    require(get(place(dest_.data(), message.target, message),
                source_place(message, message.initiator), bytes, target));
  } else {
    require(weft_put_nbi(place(dest_.data(), message.initiator, message),
                         source_place(message, message.target), bytes, target));
    if (plan_.waits_for_each) {
      require(weft_quiet());
    }
  }
  posted_bytes_ += bytes;
  remote_bytes_ += job_.node_of(message.target) != job_.node_of(message.initiator) ? bytes : 0;
  if (plan_.alternates_signal) {
    post_signal(message);
  }
}

void Exchange::post(Steps steps) {
  if (!plan_.collective) {
    for_each(steps, true, [&](const Message& message) { post_message(message); });
    return;
  }
  require(weft_alltoall(dest_.data(), source_.data(), plan_.message_bytes));
  posted_bytes_ += plan_.message_bytes * job_.pe_count();
  for (std::uint32_t pe = 0; pe < job_.pe_count(); ++pe) {
    remote_bytes_ += job_.node_of(pe) != job_.node_of(job_.me()) ? plan_.message_bytes : 0;
  }
}

void Exchange::check_message(const Message& message) {
  const MessageId id = id_of(message);
  const std::size_t bytes = size_of(message);
  const PayloadCheck data = check_payload({place(dest_.data(), id.source, message), bytes}, id);
  const bool is_signal_wrong =
      plan_.alternates_signal && *signal_place(id.source, message) != id.iteration;
  wrong_bytes_ += data.wrong_bytes + (is_signal_wrong ? sizeof(std::uint64_t) : 0);
  if ((data.is_right() && !is_signal_wrong) || ++reported_ > kReportsMax) {
    return;
  }
  fmt::print(stderr,
             "weft-perf: PE {}: {} of {} bytes from PE {} are wrong in iteration {}, the first at "
             "offset {}{}\n",
             job_.me(), data.wrong_bytes, bytes, id.source, id.iteration, data.first_wrong_offset,
             is_signal_wrong ? "; the 8 bytes after them are wrong" : "");
}

void Exchange::check(Steps steps) {
  for_each(steps, plan_.reads, [&](const Message& message) { check_message(message); });
}

}  // namespace weft::perf
