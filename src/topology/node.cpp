#include "src/topology/node.hpp"

#include <array>
#include <fstream>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::topology {
namespace {

// The namespace's inode identifies it while anything holds it open: namespaces(7).
std::string namespace_inode(const std::string& path) {
  struct stat status{};

  return ::stat(path.c_str(), &status) == 0 ? std::to_string(status.st_ino) : "none";
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "unknown";
}

}  // namespace

NodeIdentity node_identity(const std::string& proc) {
  std::string boot;
  std::ifstream file(proc + "/sys/kernel/random/boot_id");
  std::getline(file, boot);
  NodeIdentity identity;
  identity.hostname = host_name();
  identity.id = fmt::format("{}/net:{}/pid:{}/host:{}", boot.empty() ? identity.hostname : boot,
                            namespace_inode(proc + "/self/ns/net"),
                            namespace_inode(proc + "/self/ns/pid"), identity.hostname);
  return identity;
}

std::string machine_of(std::string_view id) {
  return std::string(id.substr(0, id.find('/')));
}

std::string network_of(std::string_view id) {
  return std::string(id.substr(0, id.find("/pid:")));
}

std::vector<NodePlace> group_nodes(std::span<const std::string> identities,
                                   std::uint32_t node_size) {
  std::vector<NodePlace> places;
  std::map<std::string_view, std::uint32_t> seen;  // PEs so far, per real node
  std::map<std::pair<std::string_view, std::uint32_t>, std::uint32_t> nodes;  // (real node, block)
  std::vector<std::uint32_t> counts;
  for (const std::string& identity : identities) {
    const std::uint32_t position = seen[identity]++;
    const std::uint32_t block = node_size == 0 ? 0 : position / node_size;
    const auto next = static_cast<std::uint32_t>(nodes.size());
    const auto [node, is_new] = nodes.try_emplace({identity, block}, next);
    if (is_new) {
      counts.push_back(0);
    }
    places.push_back({node->second, counts[node->second]++, 0});
  }
  for (NodePlace& place : places) {
    place.local_count = counts[place.node_index];
  }
  return places;
}

}  // namespace weft::topology
