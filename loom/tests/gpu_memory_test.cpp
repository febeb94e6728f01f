// Memory of GPUs behind emulated NICs: registered by one process, written and read by another. Each
// test runs in two processes of its own, as CUDA does not survive fork(). Without a GPU they are
// skipped.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loom/src/fabric_link.hpp"
#include "loom/src/gpu_driver.hpp"
#include "loom/tests/client.hpp"

namespace loom::test {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20U;
constexpr std::uint64_t kAll =
    FI_READ | FI_WRITE | FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;

void check(CUresult error) {
  if (error != CUDA_SUCCESS) {
    throw std::runtime_error(words_of(error));
  }
}

template <typename Function>
Function driver_function(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

enum class Kind : std::uint8_t { Host, Malloc, Virtual };

CUdeviceptr allocate_virtual(const Gpu& gpu) {
  const GpuDriver& driver = *gpu_driver();
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu.index()};
  CUmemGenericAllocationHandle allocation{};
  check(driver_function<decltype(&::cuMemCreate)>("cuMemCreate")(&allocation, kBytes, &properties,
                                                                 0));
  CUdeviceptr memory = 0;
  check(driver.reserve(&memory, kBytes, 0, 0, 0));
  check(driver.map(memory, kBytes, 0, allocation, 0));
  const CUmemAccessDesc access{.location = properties.location,
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  check(driver.set_access(memory, kBytes, &access, 1));
  check(driver.release_allocation(allocation));
  return memory;
}

// Memory of one kind, registered with a client; never freed, as its process ends soon.
class Buffer {
 public:
  Buffer(Client& client, Kind kind) : client_(client), kind_(kind), gpu_(*open_gpu(0)) {
    const CurrentGpu current(gpu_);
    if (kind == Kind::Host) {
      first_ = reinterpret_cast<std::uint64_t>(client.memory().data());
      key_ = client.key();
      descriptor_ = client.descriptor();
      return;
    }
    if (kind == Kind::Malloc) {
      check(driver_function<decltype(&::cuMemAlloc)>("cuMemAlloc_v2")(&first_, kBytes));
    } else {
      first_ = allocate_virtual(gpu_);
    }
    const iovec all{reinterpret_cast<void*>(first_), kBytes};
    fi_mr_attr attributes{};
    attributes.mr_iov = &all;
    attributes.iov_count = 1;
    attributes.access = kAll;
    attributes.iface = FI_HMEM_CUDA;
    const bool by_endpoint = (client.info().domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
    int error = fi_mr_regattr(client.domain(), &attributes, 0, &region_);
    if (error == 0 && by_endpoint) {
      fi_mr_bind(region_, &client.endpoint()->fid, 0);
      error = fi_mr_enable(region_);
    }
    if (error != 0) {
      throw std::runtime_error(fi_strerror(-error));
    }
    key_ = fi_mr_key(region_);
    descriptor_ = fi_mr_desc(region_);
  }

  void close() { fi_close(&region_->fid); }

  [[nodiscard]] std::uint64_t first() const { return first_; }

  [[nodiscard]] void* descriptor() const { return descriptor_; }

  [[nodiscard]] std::uint64_t key() const { return key_; }

  // As a peer has to name its first byte.
  [[nodiscard]] std::uint64_t remote() const {
    return (client_.info().domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0 ? first_ : 0;
  }

  void set(const std::vector<std::byte>& bytes) {
    copy(first_, reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size());
  }

  [[nodiscard]] std::vector<std::byte> get() const {
    std::vector<std::byte> bytes(kBytes);
    copy(reinterpret_cast<std::uint64_t>(bytes.data()), first_, bytes.size());
    return bytes;
  }

 private:
  void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) const {
    const CurrentGpu current(gpu_);
    check(gpu_driver()->copy(to, from, bytes, gpu_.stream()));
    check(gpu_driver()->wait_for_stream(gpu_.stream()));
  }

  Client& client_;
  Kind kind_;
  const Gpu& gpu_;
  CUdeviceptr first_ = 0;
  std::uint64_t key_ = 0;
  void* descriptor_ = nullptr;
  fid_mr* region_ = nullptr;
};

// Differs from byte to byte and from one value to the next.
std::vector<std::byte> pattern(unsigned value) {
  std::vector<std::byte> bytes(kBytes);
  unsigned state = value * 2654435761U + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  return bytes;
}

// What the two processes of a test tell each other.
struct Word {
  Name name{};
  std::uint64_t remote = 0;
  std::uint64_t key = 0;
};

class Line {
 public:
  explicit Line(int socket) : socket_(socket) {}

  void say(const Word& word) const {
    ASSERT_EQ(::write(socket_, &word, sizeof(word)), static_cast<ssize_t>(sizeof(word)));
  }

  [[nodiscard]] Word hear() const {
    Word word;
    EXPECT_EQ(::recv(socket_, &word, sizeof(word), MSG_WAITALL),
              static_cast<ssize_t>(sizeof(word)));
    return word;
  }

 private:
  int socket_;
};

using Side = std::function<void(const Line&)>;

bool run_child(const Side& side, int socket) {
  try {
    side(Line(socket));
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  return !::testing::Test::HasFailure();
}

// Runs the two sides in processes of their own.
void run_two(const Side& one, const Side& other) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  std::array<pid_t, 2> children{};
  for (std::size_t i = 0; i < 2; ++i) {
    children.at(i) = ::fork();
    if (children.at(i) == 0) {
      ::close(sockets.at(1 - i));
      ::_exit(run_child(i == 0 ? one : other, sockets.at(i)) ? 0 : 1);
    }
  }
  ::close(sockets[0]);
  ::close(sockets[1]);
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

// Asks in a process of its own, so that this one never opens the driver.
bool has_gpu() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(gpu_count() > 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0;
}

constexpr Client::Options kOptions{.buffer_bytes = kBytes, .has_gpu = true};

// One transfer of `bytes` between my buffer and the peer's; its error, or -1 if it never ends.
int transfer(Client& client, const Buffer& mine, fi_addr_t peer, const Word& theirs, bool is_read) {
  void* here = reinterpret_cast<void*>(mine.first());
  const ssize_t posted = is_read ? fi_read(client.endpoint(), here, kBytes, mine.descriptor(), peer,
                                           theirs.remote, theirs.key, nullptr)
                                 : fi_write(client.endpoint(), here, kBytes, mine.descriptor(),
                                            peer, theirs.remote, theirs.key, nullptr);
  EXPECT_EQ(posted, 0);
  const auto ended = client.next(10);
  return ended ? ended->error : -1;
}

struct Pair {
  Kind local;
  Kind remote;
};

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) {
      GTEST_SKIP() << "no GPU on this machine";
    }
  }
};

class GpuMemory : public OnGpu, public ::testing::WithParamInterface<Pair> {};

TEST_P(GpuMemory, IsWrittenAndReadByAnotherProcess) {
  const auto initiator = [&](const Line& line) {
    Client client(kOptions);
    Buffer buffer(client, GetParam().local);
    const Word theirs = line.hear();
    const fi_addr_t peer = client.add(theirs.name);
    line.say({.name = client.name()});
    for (unsigned round = 0; round < 5; ++round) {
      buffer.set(pattern(round));
      EXPECT_EQ(transfer(client, buffer, peer, theirs, false), 0);
      line.say({});
      static_cast<void>(line.hear());  // it has looked, and changed its memory
      EXPECT_EQ(transfer(client, buffer, peer, theirs, true), 0);
      EXPECT_EQ(buffer.get(), pattern(100 + round));
    }
    line.say({});
  };
  const auto target = [&](const Line& line) {
    Client client(kOptions);
    Buffer buffer(client, GetParam().remote);
    line.say({.name = client.name(), .remote = buffer.remote(), .key = buffer.key()});
    static_cast<void>(client.add(line.hear().name));
    for (unsigned round = 0; round < 5; ++round) {
      static_cast<void>(line.hear());
      EXPECT_EQ(buffer.get(), pattern(round));
      buffer.set(pattern(100 + round));
      line.say({});
    }
    static_cast<void>(line.hear());
  };
  run_two(initiator, target);
}

TEST_P(GpuMemory, WhoseKeyIsClosedIsAnError) {
  const auto initiator = [&](const Line& line) {
    Client client(kOptions);
    Buffer buffer(client, GetParam().local);
    const Word theirs = line.hear();
    const fi_addr_t peer = client.add(theirs.name);
    line.say({.name = client.name()});
    static_cast<void>(line.hear());
    EXPECT_EQ(transfer(client, buffer, peer, theirs, false), 0);
    line.say({});
    static_cast<void>(line.hear());
    const bool is_cxi = client.info().addr_format == FI_ADDR_CXI;
    EXPECT_EQ(transfer(client, buffer, peer, theirs, false), is_cxi ? FI_EIO : FI_EINVAL);
    line.say({});
  };
  const auto target = [&](const Line& line) {
    Client client(kOptions);
    Buffer buffer(client, GetParam().remote == Kind::Host ? Kind::Malloc : GetParam().remote);
    line.say({.name = client.name(), .remote = buffer.remote(), .key = buffer.key()});
    static_cast<void>(client.add(line.hear().name));
    line.say({});
    static_cast<void>(line.hear());
    buffer.close();
    line.say({});
    static_cast<void>(line.hear());
  };
  run_two(initiator, target);
}

TEST_F(OnGpu, SaysThatHostMemoryIsNoneOfAGpu) {
  const auto one = [](const Line&) {
    Client client(kOptions);
    const iovec all{client.memory().data(), client.memory().size()};
    fi_mr_attr attributes{};
    attributes.mr_iov = &all;
    attributes.iov_count = 1;
    attributes.access = kAll;
    attributes.iface = FI_HMEM_CUDA;
    fid_mr* region = nullptr;
    int error = fi_mr_regattr(client.domain(), &attributes, 0, &region);
    if (error == 0) {  // FI_MR_ENDPOINT
      error = fi_mr_enable(region);
    }
    EXPECT_EQ(error, -FI_EINVAL);
  };
  run_two(one, [](const Line&) {});
}

TEST_F(OnGpu, AddsToWordsOfAPeersGpu) {
  const auto initiator = [](const Line& line) {
    Client client(kOptions);
    const Word theirs = line.hear();
    const fi_addr_t peer = client.add(theirs.name);
    for (std::uint64_t i = 0; i < 100; ++i) {
      const ssize_t posted = fi_atomic(client.endpoint(), &i, 1, nullptr, peer, theirs.remote,
                                       theirs.key, FI_UINT64, FI_SUM, nullptr);
      if (posted == -FI_ENOSYS) {
        break;  // a persona without
      }
      EXPECT_EQ(posted, 0);
      const auto ended = client.next(10);
      EXPECT_TRUE(ended && ended->error == 0);
    }
    line.say({.key = 4950});
  };
  const auto target = [](const Line& line) {
    Client client(kOptions);
    Buffer buffer(client, Kind::Virtual);
    buffer.set(std::vector<std::byte>(kBytes));
    line.say({.name = client.name(), .remote = buffer.remote(), .key = buffer.key()});
    static_cast<void>(line.hear());
    std::uint64_t value = 0;
    const std::vector<std::byte> bytes = buffer.get();
    std::memcpy(&value, bytes.data(), sizeof(value));
    const bool has_atomics = (client.info().caps & FI_ATOMIC) != 0;
    EXPECT_TRUE(value == 4950 || !has_atomics) << value;
  };
  run_two(initiator, target);
}

TEST_F(OnGpu, IsCopiedByTheCpuInSmallWritesWhereTheNicHasNoOtherWay) {
  const auto one = [](const Line&) {
    Client client(kOptions);
    Client peer({.nic = 1});
    Buffer buffer(client, Kind::Malloc);
    buffer.set(pattern(3));
    const fi_addr_t to = client.meet(peer);
    const Segment& segment = open_segment(segment_path(default_folder(), *variable("LOOM_JOB")));
    const bool is_cxi = client.info().addr_format == FI_ADDR_CXI;
    const auto copies_of = [&](std::size_t bytes) {
      const std::uint64_t before = look(segment.nics[0].cpu_copies);
      EXPECT_EQ(fi_write(client.endpoint(), reinterpret_cast<void*>(buffer.first()), bytes,
                         buffer.descriptor(), to, peer.remote(0), peer.key(), nullptr),
                0);
      EXPECT_EQ(client.next(10).value_or(Ended{.error = -1}).error, 0);
      EXPECT_EQ(std::memcmp(peer.memory().data(), pattern(3).data(), bytes), 0);
      return look(segment.nics[0].cpu_copies) - before;
    };
    EXPECT_EQ(copies_of(64), is_cxi ? 1U : 0U);
    EXPECT_EQ(copies_of(224), is_cxi ? 1U : 0U);
    EXPECT_EQ(copies_of(225), 0U);
    ::setenv("FI_CXI_DISABLE_NON_INJECT_RMA_IDC", "1", 1);  // NOLINT(concurrency-mt-unsafe)
    EXPECT_EQ(copies_of(64), 0U);
  };
  run_two(one, [](const Line&) {});
}

std::string name_of(const ::testing::TestParamInfo<Pair>& info) {
  constexpr std::array kNames{"Host", "Malloc", "Virtual"};
  return std::string(kNames.at(static_cast<std::size_t>(info.param.local))) + "To" +
         kNames.at(static_cast<std::size_t>(info.param.remote));
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         GpuMemory,
                         ::testing::Values(Pair{Kind::Host, Kind::Malloc},
                                           Pair{Kind::Host, Kind::Virtual},
                                           Pair{Kind::Malloc, Kind::Malloc},
                                           Pair{Kind::Malloc, Kind::Virtual},
                                           Pair{Kind::Virtual, Kind::Malloc},
                                           Pair{Kind::Virtual, Kind::Virtual},
                                           Pair{Kind::Malloc, Kind::Host},
                                           Pair{Kind::Virtual, Kind::Host}),
                         name_of);

}  // namespace
}  // namespace loom::test
