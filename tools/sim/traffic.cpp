#include "tools/sim/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::sim {
namespace {

constexpr std::uint64_t kSignalBytes = 8;
// Sizes follow a Pareto law with this exponent, from the largest / kParetoSpread to the largest.
constexpr double kParetoExponent = 1.2;
constexpr double kParetoSpread = 64;
constexpr std::uint64_t kShuffleFactor = 7919;

}  // namespace

Traffic::Traffic(const Setup& setup) : setup_(setup), random_(setup.seed) {
  if (setup.traffic.pattern != Pattern::Moe) {
    return;
  }
  const MoeRoutes& moe = setup.traffic.moe;
  experts_.resize(moe.experts);
  std::iota(experts_.begin(), experts_.end(), 0U);
  std::ranges::shuffle(experts_, random_);
  double sum = 0;
  for (std::uint32_t i = 0; i < moe.experts; ++i) {
    sum += 1 / std::pow(static_cast<double>(i + 1), moe.zipf);
    popularity_.push_back(sum);
  }
}

std::uint64_t Traffic::draw_bytes() {
  const std::uint64_t most = setup_.traffic.bytes;
  if (!setup_.traffic.is_pareto) {
    return most;
  }
  const double uniform = (static_cast<double>(random_() % 1'000'000) + 1) / 1e6;
  const double size =
      static_cast<double>(most) / kParetoSpread / std::pow(uniform, 1 / kParetoExponent);
  return std::max<std::uint64_t>(1, std::min(most, static_cast<std::uint64_t>(size)));
}

std::vector<std::uint32_t> Traffic::peers_of(std::uint32_t pe) const {
  const TrafficShape& traffic = setup_.traffic;
  const std::uint32_t count = setup_.pe_count();
  std::vector<std::uint32_t> peers;
  switch (traffic.pattern) {
    case Pattern::Pairs:
      peers.push_back((pe + count / 2) % count);
      break;
    case Pattern::Incast:
      peers.push_back(0);
      break;
    case Pattern::AllToAll:
    case Pattern::Random:
    case Pattern::Moe:
      for (std::uint32_t k = 1; k < count && peers.size() < traffic.peers_max; ++k) {
        if (!setup_.is_near(pe, (pe + k) % count)) {
          peers.push_back((pe + k) % count);
        }
      }
      break;
  }
  std::erase_if(peers, [&](std::uint32_t peer) { return setup_.is_near(pe, peer); });
  if (traffic.is_shuffled) {
    std::ranges::shuffle(peers, std::mt19937_64(setup_.seed * kShuffleFactor + pe));
  }
  return peers;
}

std::vector<std::uint32_t> Traffic::targets_of(std::uint32_t pe) {
  if (setup_.traffic.pattern != Pattern::Random) {
    return peers_of(pe);
  }
  const std::uint32_t count = setup_.pe_count();
  const auto peer = (pe + 1 + static_cast<std::uint32_t>(random_() % (count - 1))) % count;
  return setup_.is_near(pe, peer) ? std::vector<std::uint32_t>() : std::vector{peer};
}

// Each token goes to top_k different experts; two of one PE, or of one node, share a message
// according to `messages`. By node it goes to the PE with the sender's place on its node.
std::vector<Post> Traffic::routed(std::uint32_t pe) {
  const MoeRoutes& moe = setup_.traffic.moe;
  std::vector<Post> posts;
  std::vector<std::uint64_t> bytes(setup_.pe_count());
  std::vector<std::uint32_t> targets;
  std::vector<std::uint32_t> chosen;
  std::uniform_real_distribution<double> uniform(0, popularity_.back());
  for (std::uint32_t token = 0; token < moe.tokens; ++token) {
    targets.clear();
    chosen.clear();
    while (chosen.size() < moe.top_k) {
      const auto rank = std::ranges::upper_bound(popularity_, uniform(random_));
      const std::uint32_t expert = experts_[std::min<std::size_t>(
          static_cast<std::size_t>(rank - popularity_.begin()), experts_.size() - 1)];
      if (std::ranges::find(chosen, expert) != chosen.end()) {
        continue;
      }
      chosen.push_back(expert);
      auto target =
          static_cast<std::uint32_t>(std::uint64_t{expert} * setup_.pe_count() / moe.experts);
      if (moe.messages == MoeMessages::ByNode) {
        target = setup_.node_of(target) * setup_.pes_per_node + pe % setup_.pes_per_node;
      }
      if (!setup_.is_near(pe, target) && std::ranges::find(targets, target) == targets.end()) {
        targets.push_back(target);
      }
    }
    for (const std::uint32_t target : targets) {
      bytes[target] += setup_.traffic.bytes;
      if (moe.messages == MoeMessages::ByToken) {
        posts.push_back({target, setup_.traffic.bytes});
      }
    }
  }
  if (moe.messages != MoeMessages::ByToken) {
    for (const std::uint32_t peer : peers_of(pe)) {
      if (bytes[peer] > 0) {
        posts.push_back({peer, bytes[peer]});
      }
    }
  }
  return posts;
}

std::vector<Post> Traffic::posts_of(std::uint32_t pe) {
  const TrafficShape& traffic = setup_.traffic;
  std::vector<Post> posts;
  for (std::uint32_t step = 0; step < traffic.steps; ++step) {
    if (traffic.pattern == Pattern::Moe) {
      const auto routes = routed(pe);
      posts.insert(posts.end(), routes.begin(), routes.end());
      continue;
    }
    const auto targets = targets_of(pe);
    for (std::uint32_t i = 0; i < traffic.count_per_step; ++i) {
      for (const std::uint32_t peer : targets) {
        posts.push_back({peer, draw_bytes()});
        if (traffic.alternates_signal) {
          posts.push_back({peer, kSignalBytes});
        }
      }
    }
  }
  return posts;
}

double Traffic::delay_ns() {
  const double most = setup_.traffic.start_apart_ns;
  return most > 0 ? std::uniform_real_distribution<double>(0, most)(random_) : 0;
}

}  // namespace weft::sim
