#include "src/proxy/request_table.hpp"

namespace weft::proxy {

using device::CommandKind;

RequestTable::RequestTable(std::uint32_t count) : requests_(count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    free_.push_back(i);
  }
}

std::uint32_t RequestTable::take(const device::Command& command, const CommandOrigin& origin) {
  const device::GetCommand get =
      command.kind == CommandKind::Get ? device::GetCommand::from(command) : device::GetCommand{};
  const std::uint32_t index = free_.back();
  free_.pop_back();
  requests_[index] = {.origin = origin,
                      .dest_address = get.dest_address,
                      .bytes = get.bytes,
                      .bytes_left = get.bytes,
                      .use = (requests_[index].use + 1) % (UINT32_MAX / kRequestsMax),
                      .kind = command.kind,
                      .answers = (command.flags & device::kReplyWanted) != 0};
  return requests_[index].use * kRequestsMax + index;
}

Request* RequestTable::find(std::uint32_t token) {
  const std::uint32_t index = token % kRequestsMax;
  if (index >= requests_.size() || requests_[index].use != token / kRequestsMax ||
      requests_[index].kind == CommandKind::Nop) {
    return nullptr;
  }
  return &requests_[index];
}

void RequestTable::end(Request& request) {
  request.kind = CommandKind::Nop;
  free_.push_back(static_cast<std::uint32_t>(&request - requests_.data()));
}

bool RequestTable::is_awaited(const Record& reply) {
  const Request* const request = find(reply.request);
  if (request == nullptr) {
    return false;
  }
  if (reply.kind == RecordKind::FetchReply) {
    return request->kind == CommandKind::Atomic;
  }
  const std::uint64_t offset =
      GetReplyRecord::from(reply).requester_address - request->dest_address;
  return request->kind == CommandKind::Get && offset <= request->bytes &&
         reply.payload_bytes <= request->bytes - offset;
}

}  // namespace weft::proxy
