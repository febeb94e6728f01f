#include "src/topology/links.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/file_descriptor.hpp"

namespace weft::topology {
namespace {

struct LinkRequest {
  nlmsghdr header{};
  ifinfomsg body{};
};

bool send_request(int socket) {
  LinkRequest request;
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  return ::send(socket, &request, sizeof(request), 0) == static_cast<ssize_t>(sizeof(request));
}

std::string_view text_of(const rtattr& attribute) {
  const std::string_view text(static_cast<const char*>(RTA_DATA(&attribute)),
                              RTA_PAYLOAD(&attribute));
  return text.substr(0, text.find('\0'));
}

// IFLA_INFO_KIND inside IFLA_LINKINFO.
std::string kind_in(const rtattr& nest) {
  const auto* inner = static_cast<const rtattr*>(RTA_DATA(&nest));
  auto left = static_cast<int>(RTA_PAYLOAD(&nest));
  for (; RTA_OK(inner, left); inner = RTA_NEXT(inner, left)) {
    if (inner->rta_type == IFLA_INFO_KIND) {
      return std::string(text_of(*inner));
    }
  }
  return "";
}

Link parse_link(const nlmsghdr& message) {
  const auto* body = static_cast<const ifinfomsg*>(NLMSG_DATA(&message));
  Link link{.index = body->ifi_index};
  const auto* attribute = IFLA_RTA(body);
  auto left = static_cast<int>(IFLA_PAYLOAD(&message));
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == IFLA_IFNAME) {
      link.name = text_of(*attribute);
    } else if (attribute->rta_type == IFLA_MASTER) {
      std::memcpy(&link.bridge, RTA_DATA(attribute), sizeof(link.bridge));
    } else if ((attribute->rta_type & NLA_TYPE_MASK) == IFLA_LINKINFO) {
      link.kind = kind_in(*attribute);
    }
  }
  return link;
}

// False at the end of the list.
bool take_messages(std::span<std::byte> bytes, std::vector<Link>& links) {
  const auto* message = reinterpret_cast<const nlmsghdr*>(bytes.data());
  auto left = static_cast<unsigned int>(bytes.size());
  for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) {
      return false;
    }
    if (message->nlmsg_type == RTM_NEWLINK) {
      links.push_back(parse_link(*message));
    }
  }
  return true;
}

// Ports of containers and of VMs. Everything else has hardware below it: a NIC, a bond or a VLAN of
// one.
bool is_virtual(const Link& port) {
  return port.kind == "veth" || port.kind == "tun" || port.kind == "dummy";
}

}  // namespace

std::vector<Link> list_links() {
  const FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.is_open() || !send_request(socket.get())) {
    return {};
  }
  std::vector<Link> links;
  alignas(nlmsghdr) std::array<std::byte, std::size_t{32} << 10U>
      bytes;  // what a dump sends at once
  for (ssize_t count = 1; count > 0;) {
    // The kernel has answered when send(2) returns: there is nothing to wait for.
    count = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0 &&
        !take_messages(std::span(bytes).first(static_cast<std::size_t>(count)), links)) {
      break;
    }
  }
  return links;
}

bool leads_to_a_network(const std::vector<Link>& links, std::string_view bridge) {
  const auto found = std::ranges::find(links, bridge, &Link::name);
  return found != links.end() && std::ranges::any_of(links, [&found](const Link& link) {
           return link.bridge == found->index && !is_virtual(link);
         });
}

}  // namespace weft::topology
