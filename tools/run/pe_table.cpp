#include "tools/run/pe_table.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "src/bootstrap/protocol.hpp"

namespace weft::run {

std::string name_of(const AgentLink& link) {
  return link.is_local ? "the agent of this machine" : fmt::format("'{}'", link.host);
}

bool PeTable::has_failed(std::uint32_t pe) const {
  const auto& status = states_[pe].wait_status;
  return status && exit_status_of(*status) != 0;
}

bool PeTable::have_ended_well() const {
  return std::ranges::all_of(states_, [](const State& state) {
    return state.wait_status && exit_status_of(*state.wait_status) == 0;
  });
}

std::vector<Pe> PeTable::running_of(const AgentLink& link) const {
  std::vector<Pe> running;
  for (const std::uint32_t pe : link.pes) {
    if (!states_[pe].wait_status) {
      running.emplace_back(pe);
    }
  }
  return running;
}

std::string PeTable::describe_running(std::span<const AgentLink> links) const {
  std::vector<Pe> running;
  for (const AgentLink& link : links) {
    std::ranges::copy_if(running_of(link), std::back_inserter(running),
                         [this](Pe pe) { return states_[pe.value].pid != 0; });
  }
  std::ranges::sort(running, {}, &Pe::value);
  const std::string unstarted = describe_unstarted(links);
  const std::string ran =
      running.empty() ? "" : fmt::format("{} still ran", bootstrap::format_pes(running));
  return fmt::format("{}{}{}", ran, ran.empty() || unstarted.empty() ? "" : "; ", unstarted);
}

std::string PeTable::describe_unstarted(std::span<const AgentLink> links) const {
  std::string text;
  for (const AgentLink& link : links) {
    std::vector<Pe> pes = running_of(link);
    std::erase_if(pes, [this](Pe pe) { return states_[pe.value].pid != 0; });
    if (!pes.empty()) {
      text += fmt::format("{}{} has not started {}", text.empty() ? "" : "; ", name_of(link),
                          bootstrap::format_pes(pes));
    }
  }
  return text;
}

}  // namespace weft::run
