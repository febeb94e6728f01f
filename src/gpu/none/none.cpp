// The implementation of the GPU interface in a libweft built without CUDA: it only reports that.
#include "src/base/error.hpp"
#include "src/gpu/applier.hpp"
#include "src/gpu/buffer.hpp"
#include "src/gpu/copier.hpp"
#include "src/gpu/device.hpp"
#include "src/gpu/inventory.hpp"
#include "src/gpu/nic_access.hpp"
#include "src/gpu/on_stream.hpp"
#include "src/gpu/segments.hpp"
#include "src/gpu/user_memory.hpp"

namespace weft::gpu {
namespace {

[[noreturn]] void fail_absent() {
  fail(Status::InvalidArgument,
       "this libweft was built without CUDA; build it where nvcc 12.4 or later is found, with "
       "-DWEFT_CUDA=ON");
}

}  // namespace

bool is_built_in() {
  return false;
}

Device current_device() {
  fail_absent();
}

std::int32_t device_count() {
  fail_absent();
}

Device describe_device(std::int32_t /*index*/) {
  fail_absent();
}

Inventory take_inventory() {
  return {.absence = "this Weft was built without CUDA"};
}

std::vector<bool> have_atomics(const Device& /*device*/, std::span<const std::string> peers) {
  return std::vector<bool>(peers.size(), true);
}

VisibleGpus find_visible_gpus() {
  return {};
}

void use_device(const Device& /*device*/) {
  fail_absent();
}

void use_device_once(const Device& /*device*/) noexcept {}

void ignore_captures() noexcept {}

BorrowedThread::BorrowedThread() noexcept = default;

BorrowedThread::~BorrowedThread() = default;

bool is_reached_by_kernels(const void* /*address*/) {
  return false;
}

bool is_device_memory(const void* /*address*/) {
  return false;
}

UserMemoryInfo find_user_memory(std::span<const std::byte> /*memory*/) {
  return {};
}

bool has_driver() {
  return false;
}

std::string nic_refusal(const Device& /*device*/, MemoryKind /*kind*/) {
  return "this libweft was built without CUDA";
}

DmaBuf dma_buf_of(const Device& /*device*/, std::span<std::byte> /*memory*/) {
  return {.descriptor = {}, .why_not = "this libweft was built without CUDA"};
}

bool show_nic_writes(const Device& /*device*/) noexcept {
  return true;
}

std::unique_ptr<Segments> make_segments(const Device& /*device*/, const SegmentPlan& /*plan*/) {
  fail_absent();
}

PinnedBuffer::PinnedBuffer(std::size_t /*bytes*/) {
  fail_absent();
}

PinnedBuffer::~PinnedBuffer() = default;

DeviceBuffer::DeviceBuffer(std::size_t /*bytes*/) {
  fail_absent();
}

DeviceBuffer::~DeviceBuffer() = default;

void DeviceBuffer::read(std::size_t /*offset*/, std::span<std::byte> /*bytes*/) const {
  fail_absent();
}

void DeviceBuffer::write(std::size_t /*offset*/, std::span<const std::byte> /*bytes*/) {
  fail_absent();
}

void fill(std::byte* /*device_memory*/, std::size_t /*bytes*/, std::uint32_t /*word*/) {
  fail_absent();
}

void clear(std::byte* /*device_memory*/, std::size_t /*bytes*/) {
  fail_absent();
}

struct Applier::Stream {};

Applier::Applier(const Device& /*device*/) {
  fail_absent();
}

Applier::~Applier() = default;

void Applier::wake() noexcept {}

struct Copier::Streams {};

Copier::Copier(const Device& /*device*/, std::function<bool(const void* address)> /*is_heap*/) {
  fail_absent();
}

Copier::~Copier() = default;

std::uint64_t Copier::start(CopyDirection /*direction*/,
                            void* /*dest*/,
                            const void* /*source*/,
                            std::size_t /*bytes*/) noexcept {
  return 0;
}

std::uint64_t Copier::start_whole(void* /*dest*/,
                                  const void* /*source*/,
                                  std::size_t /*bytes*/) noexcept {
  return 0;
}

bool Copier::is_done(CopyDirection /*direction*/, std::uint64_t /*number*/) noexcept {
  return false;
}

const std::string* Copier::failure() const noexcept {
  return nullptr;
}

// ---- On streams: not reached, because weft_device_init has failed.

namespace on_stream {

std::string words_of(int /*error*/) {
  return "no CUDA";
}

void preload_kernels() {
  fail_absent();
}

int put(const StreamTransfer& /*transfer*/, weft_stream_t /*stream*/) {
  fail_absent();
}

int get(const StreamTransfer& /*transfer*/, weft_stream_t /*stream*/) {
  fail_absent();
}

int put_signal(const StreamTransfer& /*transfer*/,
               const weft_signal& /*signal*/,
               weft_stream_t /*stream*/) {
  fail_absent();
}

int putv(const StreamList& /*list*/, const weft_signal* /*signal*/, weft_stream_t /*stream*/) {
  fail_absent();
}

int signal(const weft_signal& /*signal*/, int /*pe*/, weft_stream_t /*stream*/) {
  fail_absent();
}

int wait_until(const std::uint64_t* /*word*/,
               weft_comparison /*comparison*/,
               std::uint64_t /*value*/,
               weft_stream_t /*stream*/) {
  fail_absent();
}

int quiet(weft_stream_t /*stream*/) {
  fail_absent();
}

int barrier_all(weft_stream_t /*stream*/) {
  fail_absent();
}

int sync(int /*number*/, weft_stream_t /*stream*/) {
  fail_absent();
}

int alltoall(const StreamCollective& /*call*/, weft_stream_t /*stream*/) {
  fail_absent();
}

int broadcast(const StreamCollective& /*call*/, int /*root*/, weft_stream_t /*stream*/) {
  fail_absent();
}

int fcollect(const StreamCollective& /*call*/, weft_stream_t /*stream*/) {
  fail_absent();
}

bool can_reduce(weft_type /*type*/, weft_reduction /*reduction*/) {
  return false;
}

int reduce(const StreamCollective& /*call*/,
           const ReduceOptions& /*options*/,
           weft_stream_t /*stream*/) {
  fail_absent();
}

}  // namespace on_stream
}  // namespace weft::gpu
