#include "tests/conformance/toy/file_transport.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/transport/mapped/atomics.hpp"
#include "src/transport/mapped/copy.hpp"

namespace weft::test::toy {

using transport::Operation;
using transport::OperationKind;

FileTransport::FileTransport(const std::string& folder,
                             Pe me,
                             std::vector<std::span<std::byte>> regions)
    : me_(me),
      path_(fmt::format("{}/pe-{}", folder, me.value)),
      file_(::open(path_.c_str(), O_CREAT | O_TRUNC | O_RDONLY | O_CLOEXEC, 0600)),
      regions_(std::move(regions)) {
  if (file_.get() < 0) {
    fail("open failed on {}: {}", path_, errno_words(errno));
  }
}

bootstrap::Blob FileTransport::describe() const {
  return bootstrap::FieldWriter().text(path_).bytes();
}

void FileTransport::connect(const std::vector<bootstrap::Blob>& connection_data,
                            const std::vector<bool>& reached) {
  peers_.resize(connection_data.size());
  for (std::size_t pe = 0; pe < connection_data.size(); ++pe) {
    if (!reached[pe]) {
      continue;
    }
    const std::string path = bootstrap::FieldReader(connection_data[pe]).text();
    peers_[pe] = FileDescriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (peers_[pe].get() < 0) {
      fail("open failed on {}, the file of PE {}: {}", path, pe, errno_words(errno));
    }
  }
}

bootstrap::Blob FileTransport::add_region(RegionIndex index, std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  regions_.resize(std::max<std::size_t>(regions_.size(), index.value + 1));
  regions_[index.value] = memory;
  return {};
}

void FileTransport::remove_region(RegionIndex index) {
  const std::lock_guard lock(mutex_);
  regions_[index.value] = {};
}

std::byte* FileTransport::at(const heap::Place& address) {
  return regions_[address.region.value].data() + address.offset.value;
}

// One write: records of several senders do not mix.
void FileTransport::send(Pe to, const Record& record, std::span<const std::byte> data) {
  const std::array<iovec, 2> parts{iovec{const_cast<Record*>(&record), sizeof record},
                                   iovec{const_cast<std::byte*>(data.data()), data.size()}};
  const ssize_t written = ::writev(peers_[to.value].get(), parts.data(), parts.size());
  WEFT_CHECK(written == static_cast<ssize_t>(sizeof record + data.size()), "{} written: {}",
             written, errno_words(errno));
}

Status FileTransport::post(const Operation& operation) noexcept {
  const std::lock_guard lock(mutex_);
  const bool has_data =
      operation.kind == OperationKind::Put || operation.kind == OperationKind::PutSignal;
  const std::size_t bytes = has_data ? operation.bytes : 0;
  operation.counter->issue();
  open_.emplace(next_number_, operation);
  send(operation.peer,
       {.from = me_, .number = next_number_, .operation = operation, .data_bytes = bytes},
       {static_cast<const std::byte*>(operation.local), bytes});
  ++next_number_;
  return Status::Ok;
}

void FileTransport::carry_out(Record& record, std::span<const std::byte> data) {
  const Operation& operation = record.operation;
  std::span<const std::byte> answer;
  switch (operation.kind) {
    case OperationKind::Put:
      transport::copy_bytes(at(operation.remote), data.data(), data.size());
      break;
    case OperationKind::Get:
      answer = {at(operation.remote), operation.bytes};
      break;
    case OperationKind::PutSignal:
      transport::copy_bytes(at(operation.remote), data.data(), data.size());
      transport::update_signal(reinterpret_cast<std::uint64_t*>(at(operation.update.word)),
                               operation.update.code, operation.update.operand);
      break;
    case OperationKind::Atomic:
      record.result = transport::apply_atomic(at(operation.update.word), operation.update);
      break;
  }
  const Pe from = record.from;
  record.kind = Record::Kind::Answer;
  record.data_bytes = answer.size();
  send(from, record, answer);
}

void FileTransport::finish(const Record& record, std::span<const std::byte> data) {
  const Operation operation = open_.extract(record.number).mapped();
  if (operation.kind == OperationKind::Get) {
    std::memcpy(operation.local, data.data(), data.size());
  }
  if (operation.result != nullptr) {
    *operation.result = record.result;
  }
  operation.counter->complete(false);
}

bool FileTransport::progress() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;
  }
  bool moved = false;
  for (Record record; ::pread(file_.get(), &record, sizeof record, static_cast<off_t>(position_)) ==
                      sizeof record;) {
    std::vector<std::byte> data(record.data_bytes);
    const auto behind = static_cast<off_t>(position_ + sizeof record);
    if (::pread(file_.get(), data.data(), data.size(), behind) !=
        static_cast<ssize_t>(data.size())) {
      break;  // its end is not written yet
    }
    position_ += sizeof record + data.size();
    if (record.kind == Record::Kind::Request) {
      carry_out(record, data);
    } else {
      finish(record, data);
    }
    moved = true;
  }
  return moved;
}

bool FileTransport::wait_for_event(std::uint32_t timeout_us) noexcept {
  std::this_thread::sleep_for(std::chrono::microseconds(timeout_us));
  return false;
}

}  // namespace weft::test::toy
