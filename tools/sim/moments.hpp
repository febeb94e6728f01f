// How evenly the NICs of PEs are used at each moment: by short intervals, the bytes of each NIC. A
// run can be even as a whole while at each moment one NIC of a PE carries everything.
//
// One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/sim/setup.hpp"

namespace weft::sim {

class Moments {
 public:
  // `rates`: bytes/ns of each NIC; those of a PE lie side by side.
  Moments(const Setup& setup, std::vector<double> rates)
      : setup_(setup), rates_(std::move(rates)), bytes_(rates_.size()) {}

  // A window begins. Its intervals have this length; 0: nothing is counted.
  void begin(double now_ns, double length_ns) {
    std::ranges::fill(bytes_, 0.0);
    end_ns_ = now_ns + length_ns;
    length_ns_ = length_ns;
  }

  void add(std::uint32_t nic, double bytes, double now_ns) {
    if (length_ns_ <= 0) {
      return;
    }
    while (now_ns > end_ns_) {
      close();
      end_ns_ += length_ns_;
    }
    bytes_[nic] += bytes;
  }

  // The mean over intervals and PEs of the busiest NIC's bytes over the mean of its PE's NICs.
  [[nodiscard]] double max_over_mean() const {
    return count_ > 0 ? uneven_sum_ / static_cast<double>(count_) : 1;
  }

  // The mean over intervals of the part of the time that the busiest NIC of a PE was busy, for the
  // PE where it is highest.
  [[nodiscard]] double busiest() const {
    double most = 0;
    for (const double sum : busy_sums_) {
      most = std::max(most, intervals_ > 0 ? sum / static_cast<double>(intervals_) : 0);
    }
    return most;
  }

 private:
  void close() {
    busy_sums_.resize(setup_.pe_count());
    ++intervals_;
    std::uint32_t nic = 0;
    for (std::uint32_t pe = 0; pe < setup_.pe_count(); ++pe) {
      const std::uint32_t nics = setup_.nics_of(pe);
      double most = 0;
      double sum = 0;
      double busy = 0;
      for (std::uint32_t i = 0; i < nics; ++i, ++nic) {
        most = std::max(most, bytes_[nic]);
        sum += bytes_[nic];
        busy = std::max(busy, bytes_[nic] / rates_[nic] / length_ns_);
        bytes_[nic] = 0;
      }
      busy_sums_[pe] += std::min(busy, 1.0);
      if (sum > 0) {
        uneven_sum_ += most * nics / sum;
        ++count_;
      }
    }
  }

  const Setup& setup_;
  std::vector<double> rates_;
  std::vector<double> bytes_;  // by NIC, in this interval
  double end_ns_ = 0;
  double length_ns_ = 0;
  double uneven_sum_ = 0;
  std::uint64_t count_ = 0;
  std::vector<double> busy_sums_;  // by PE
  std::uint64_t intervals_ = 0;
};

}  // namespace weft::sim
