// An example of a transport, as small as one can be: PEs write their operations into a file of the
// target, which carries them out when it makes progress, and answers in the sender's file. For
// tests and for who writes a transport.
//
// Threads: any; one lock. All PEs see the same folder. Regions: every number that add_region was
// told.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "src/base/file_descriptor.hpp"
#include "src/transport/transport.hpp"

namespace weft::test::toy {

class FileTransport final : public transport::Transport {
 public:
  // Files are made in `folder`, which the caller removes.
  FileTransport(const std::string& folder, Pe me, std::vector<std::span<std::byte>> regions);

  // The path of this PE's file.
  [[nodiscard]] bootstrap::Blob describe() const override;
  void connect(const std::vector<bootstrap::Blob>& connection_data,
               const std::vector<bool>& reached) override;

  // A target finds its own memory by (region, offset): peers need to know nothing.
  [[nodiscard]] bootstrap::Blob add_region(RegionIndex index, std::span<std::byte> memory) override;

  void connect_region(RegionIndex /*index*/,
                      const std::vector<bootstrap::Blob>& /*region_data*/) override {}

  void remove_region(RegionIndex index) override;

  Status post(const transport::Operation& operation) noexcept override;

  void flush(Pe /*peer*/) noexcept override {}

  bool progress() noexcept override;
  bool wait_for_event(std::uint32_t timeout_us) noexcept override;

  [[nodiscard]] Status peer_status(Pe /*peer*/) const noexcept override { return Status::Ok; }

 private:
  // What stands in a file before the data of a put or of an answer.
  struct Record {
    enum class Kind : std::uint32_t { Request, Answer };

    Kind kind = Kind::Request;
    Pe from;
    std::uint64_t number = 0;  // of the sender's operation
    transport::Operation operation{};
    std::uint64_t result = 0;
    std::uint64_t data_bytes = 0;
  };

  void send(Pe to, const Record& record, std::span<const std::byte> data);
  void carry_out(Record& record, std::span<const std::byte> data);
  void finish(const Record& record, std::span<const std::byte> data);
  [[nodiscard]] std::byte* at(const heap::Place& address);

  mutable std::mutex mutex_;
  Pe me_;
  std::string path_;
  FileDescriptor file_;         // what others have written for this PE
  std::uint64_t position_ = 0;  // up to where it has read
  std::vector<std::span<std::byte>> regions_;
  std::vector<FileDescriptor> peers_;                   // by PE
  std::map<std::uint64_t, transport::Operation> open_;  // by number
  std::uint64_t next_number_ = 0;
};

}  // namespace weft::test::toy
