// What a NIC can carry: what --nic-rate says, else the limit of the lab it belongs to, else what
// the kernel says of it. The lab comes before the kernel because its virtual NICs claim a rate of
// their own. Called by the main thread at the end of a run, when a lab's limits are those that were
// in force last.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace weft::perf {

struct NicRate {
  std::uint64_t bits_per_s = 0;  // 0: not known
  // How much of these bits is payload: TCP over Ethernet spends some on the headers of full frames.
  double payload_share = 1;
  std::string unknown_because;  // words, where it is not known
};

// "40mbit", "2.5gbit", "800kbit", or bits per second; the units of weft-lab. Throws
// std::invalid_argument with a sentence.
[[nodiscard]] std::uint64_t parse_rate(std::string_view text);

// Of full frames of TCP/IPv4 with time stamps: 12 + 20 + 20 bytes of the MTU, and 14 of Ethernet's
// header beside it (RFC 9293, RFC 7323). 1448 of 1514 bytes at an MTU of 1500.
[[nodiscard]] double tcp_payload_share(std::uint64_t mtu_bytes);

// Address -> bits per second, of a lab's state file (tools/lab/README.md); 0 for no limit. Pure.
// Empty if the text is not one.
[[nodiscard]] std::map<std::string, std::uint64_t> parse_lab_rates(const std::string& text);

class NicRates {
 public:
  // `given_bits_per_s`: of --nic-rate, for every NIC; 0 for none.
  explicit NicRates(std::uint64_t given_bits_per_s);

  [[nodiscard]] NicRate of(const std::string& nic, const std::string& address) const;

 private:
  std::uint64_t given_;
  std::map<std::string, std::uint64_t> lab_;
};

}  // namespace weft::perf
