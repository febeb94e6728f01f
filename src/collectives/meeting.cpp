#include "src/collectives/meeting.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace weft::collectives {
namespace {

constexpr std::string_view kName = "team_join";
// In the place of a round: this meeting has failed.
constexpr std::uint32_t kRefused = 0xFFFF;

void write(MeetingRecord& record, const CollectiveRequest& request) {
  record.words = {request.kind, request.bytes, request.alignment, request.offset};
}

CollectiveRequest read(const MeetingRecord& record) {
  return {.kind = record.words[0],
          .bytes = record.words[1],
          .alignment = record.words[2],
          .offset = record.words[3]};
}

// All of a record but the word that announces it.
std::span<const std::byte> message_of(const MeetingRecord& record) {
  return std::as_bytes(std::span(&record, 1)).subspan(sizeof record.round);
}

std::vector<Pe> first_pes(std::uint32_t count) {
  std::vector<Pe> pes;
  for (std::uint32_t pe = 0; pe < count; ++pe) {
    pes.emplace_back(pe);
  }
  return pes;
}

}  // namespace

Meeting::Meeting(rma::Rma& rma, Pe me, MeetingId id, Place place)
    : rma_(rma), context_(rma.pe_count()), me_(me), id_(id), place_(place) {}

RemoteControl& Meeting::control() const {
  return reinterpret_cast<HeapControl*>(rma_.heap().control())->remote;
}

Status Meeting::exchange(const CollectiveRequest& mine, std::span<CollectiveRequest> all) {
  ++round_;
  Status status = arrive(mine);
  if (status == Status::Ok) {
    status = id_.host() == me_ ? host_round() : await_all();
  }
  if (status != Status::Ok) {
    return status;
  }
  const auto answers = std::span(control().meeting_answers).first(place_.count);
  std::ranges::transform(answers, all.begin(), read);
  pes_.clear();
  for (const MeetingRecord& answer : answers) {
    pes_.emplace_back(answer.pe);
  }
  return Status::Ok;
}

Status Meeting::arrive(const CollectiveRequest& mine) {
  MeetingRecord record{.index = place_.index, .pe = me_.value};
  write(record, mine);
  const MeetingRecord& dest = control().meeting_arrivals[me_.value];
  const Pe host = id_.host();
  const rma::Signal arrived{.word = rma_.place_of(&dest.round, host), .value = id_.round(round_)};
  return rma_.put_signal(context_, rma_.place_of(&dest.index, host), message_of(record), arrived,
                         host, rma::Blocking::Yes);
}

std::vector<Pe> Meeting::take_arrivals() {
  std::vector<std::optional<Pe>> found(place_.count);
  const auto arrivals = std::span(control().meeting_arrivals).first(rma_.pe_count());
  for (std::uint32_t pe = 0; pe < arrivals.size(); ++pe) {
    const MeetingRecord& record = arrivals[pe];
    if (rma::load_word(&record.round) != id_.round(round_)) {
      continue;
    }
    if (record.index >= place_.count || found[record.index]) {
      return {};
    }
    found[record.index] = Pe(pe);
  }
  std::vector<Pe> pes;
  for (const std::optional<Pe>& pe : found) {
    pes.push_back(pe.value_or(me_));
  }
  return pes;
}

Status Meeting::host_round() {
  const auto arrivals = std::span(control().meeting_arrivals).first(rma_.pe_count());
  const auto count_here = [&] {
    return std::ranges::count_if(arrivals, [&](const MeetingRecord& record) {
      return rma::load_word(&record.round) == id_.round(round_);
    });
  };
  const Status status = rma_.waiter().wait([&] { return count_here() >= place_.count; },
                                           [&] {
                                             return fmt::format("{} of {} PEs are there in {}",
                                                                count_here(), place_.count, kName);
                                           },
                                           first_pes(rma_.pe_count()));
  if (status != Status::Ok) {
    return status;
  }
  const std::vector<Pe> pes = take_arrivals();
  if (pes.empty()) {
    std::vector<Pe> refused = first_pes(rma_.pe_count());
    std::erase_if(refused, [&](Pe pe) {
      return rma::load_word(&arrivals[pe.value].round) != id_.round(round_);
    });
    static_cast<void>(answer(refused, id_.round(kRefused)));
    return Status::Mismatch;
  }
  for (std::uint32_t i = 0; i < place_.count; ++i) {
    control().meeting_answers[i] = arrivals[pes[i].value];
  }
  return answer(pes, id_.round(round_));
}

Status Meeting::answer(std::span<const Pe> pes, std::uint64_t word) {
  const auto answers = std::as_bytes(std::span(control().meeting_answers).first(place_.count));
  for (const Pe pe : pes) {
    if (pe == me_) {
      continue;
    }
    const rma::Signal answered{.word = rma_.place_of(&control().meeting_round.value, pe),
                               .value = word};
    const Status status = rma_.put_signal(context_, rma_.place_of(answers.data(), pe), answers,
                                          answered, pe, rma::Blocking::No);
    if (status != Status::Ok) {
      return status;
    }
  }
  return rma_.quiet(context_);
}

Status Meeting::await_all() {
  const std::array<Pe, 1> host{id_.host()};
  std::uint64_t word = 0;
  const Status status = rma_.waiter().wait(
      [&] {
        word = rma::load_word(&control().meeting_round.value);
        return word == id_.round(round_) || word == id_.round(kRefused);
      },
      [&] {
        return fmt::format("waiting for PE {}, which made the id, in {}", host[0].value, kName);
      },
      host);
  return status == Status::Ok && word == id_.round(kRefused) ? Status::Mismatch : status;
}

}  // namespace weft::collectives
