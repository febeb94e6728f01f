// What the bare provider can do, without Weft: one process writes to another (a fork) over loopback
// with fi_writemsg as Weft posts it (FI_DELIVERY_COMPLETE, FI_INJECT when it fits), and polls its
// completion queue. Prints one JSON line a size: latency one at a time, and bandwidth with several
// outstanding.
//
//   raw_write_loop [--provider NAME] [--iterations N] [--window N] [--wait none|fd] [SIZE...]
//
// --wait fd opens the completion queue with a wait descriptor, as whoever wants to sleep must.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string provider;
  std::uint64_t iterations = 2000;
  std::uint64_t window = 16;
  std::string wait = "none";
  std::vector<std::size_t> sizes;
};

[[noreturn]] void fail(const std::string& sentence, int status = 1) {
  fmt::print(stderr, "raw_write_loop: {}\n", sentence);
  std::_Exit(status);
}

void check(long code, const char* call) {
  if (code != 0) {
    fail(fmt::format("{}: {}", call, fi_strerror(static_cast<int>(-code))));
  }
}

struct CloseFid {
  template <typename Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

using Info = std::unique_ptr<fi_info, FreeInfo>;

// The same wishes as src/fabric/discovery.cpp.
Info get_info(const std::string& provider) {
  const Info hints(fi_allocinfo());
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  fi_info* found = nullptr;
  const int code =
      fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found);
  if (code != 0) {
    fail(fmt::format("provider {} is not there for 127.0.0.1: {}; fi_info -l lists what is",
                     provider, fi_strerror(-code)),
         2);
  }
  return Info(found);
}

// As Weft chooses (docs/decisions/0003): native tcp endpoints from 1.18 on, the layer over it
// before.
std::string default_provider() {
  return fi_version() >= FI_VERSION(1, 18) ? "tcp" : "tcp;ofi_rxm";
}

// What one side tells the other.
struct EndpointInfo {
  std::array<std::byte, 64> address{};
  std::size_t address_bytes = 64;
  std::uint64_t key = 0;
  std::uint64_t base = 0;
};

// One endpoint with a buffer that may be written to. Used by its process's only thread.
class Side {
 public:
  Side(const Options& options, std::size_t bytes)
      : info_(get_info(options.provider)), buffer_(bytes) {
    open(options.wait == "fd" ? FI_WAIT_FD : FI_WAIT_NONE);
    fid_mr* region = nullptr;
    check(fi_mr_reg(domain_.get(), buffer_.data(), bytes, FI_WRITE | FI_REMOTE_WRITE, 0, 7, 0,
                    &region, nullptr),
          "fi_mr_reg");
    region_.reset(region);
  }

  [[nodiscard]] EndpointInfo endpoint_info() {
    EndpointInfo info;
    check(fi_getname(&endpoint_->fid, info.address.data(), &info.address_bytes), "fi_getname");
    info.key = fi_mr_key(region_.get());
    const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    info.base = virtual_addresses ? reinterpret_cast<std::uint64_t>(buffer_.data()) : 0;
    return info;
  }

  void connect(const EndpointInfo& peer) {
    peer_ = peer;
    if (fi_av_insert(vector_.get(), peer.address.data(), 1, &peer_handle_, 0, nullptr) != 1) {
      fail("fi_av_insert: the address was not accepted");
    }
  }

  void poll() {
    std::array<fi_cq_entry, 16> entries;
    const ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
    if (count > 0) {
      completed_ += static_cast<std::uint64_t>(count);
    } else if (count != -FI_EAGAIN) {
      fail(fmt::format("fi_cq_read: {}", fi_strerror(static_cast<int>(-count))));
    }
  }

  void post(std::size_t bytes) {
    const iovec source{buffer_.data(), bytes};
    void* descriptor = fi_mr_desc(region_.get());
    const fi_rma_iov target{.addr = peer_.base, .len = bytes, .key = peer_.key};
    fi_msg_rma message{};
    message.msg_iov = &source;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = peer_handle_;
    message.rma_iov = &target;
    message.rma_iov_count = 1;
    message.context = &contexts_[posted_ % contexts_.size()];
    const std::uint64_t inject = bytes <= info_->tx_attr->inject_size ? FI_INJECT : 0;
    for (;;) {
      const ssize_t code =
          fi_writemsg(endpoint_.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE | inject);
      if (code == 0) {
        break;
      }
      if (code != -FI_EAGAIN) {
        check(code, "fi_writemsg");
      }
      poll();
    }
    ++posted_;
  }

  // Seconds for `count` writes with at most `window` outstanding.
  double write(std::size_t bytes, std::uint64_t count, std::uint64_t window) {
    const Clock::time_point start = Clock::now();
    const std::uint64_t wanted = posted_ + count;
    while (completed_ < wanted) {
      if (posted_ < wanted && posted_ - completed_ < window) {
        post(bytes);
      } else {
        poll();
      }
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  [[nodiscard]] const char* provider() const { return info_->fabric_attr->prov_name; }

 private:
  void open(fi_wait_obj wait) {
    fid_fabric* fabric = nullptr;
    check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    check(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
    domain_.reset(domain);
    fi_cq_attr queue_attributes{};
    queue_attributes.format = FI_CQ_FORMAT_CONTEXT;
    queue_attributes.wait_obj = wait;
    fid_cq* queue = nullptr;
    check(fi_cq_open(domain, &queue_attributes, &queue, nullptr), "fi_cq_open");
    queue_.reset(queue);
    fi_av_attr vector_attributes{};
    fid_av* vector = nullptr;
    check(fi_av_open(domain, &vector_attributes, &vector, nullptr), "fi_av_open");
    vector_.reset(vector);
    fid_ep* endpoint = nullptr;
    check(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "fi_endpoint");
    endpoint_.reset(endpoint);
    check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_ep_bind(endpoint, &vector->fid, 0), "fi_ep_bind");
    check(fi_enable(endpoint), "fi_enable");
  }

  Info info_;
  std::vector<std::byte> buffer_;
  std::unique_ptr<fid_fabric, CloseFid> fabric_;
  std::unique_ptr<fid_domain, CloseFid> domain_;
  std::unique_ptr<fid_cq, CloseFid> queue_;
  std::unique_ptr<fid_av, CloseFid> vector_;
  std::unique_ptr<fid_mr, CloseFid> region_;
  std::unique_ptr<fid_ep, CloseFid> endpoint_;
  std::array<fi_context2, 256> contexts_{};
  EndpointInfo peer_;
  fi_addr_t peer_handle_ = FI_ADDR_UNSPEC;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
};

void exchange(int socket, Side& side) {
  const EndpointInfo mine = side.endpoint_info();
  EndpointInfo theirs;
  if (::write(socket, &mine, sizeof(mine)) != sizeof(mine) ||
      ::read(socket, &theirs, sizeof(theirs)) != sizeof(theirs)) {
    fail("the other process is gone");
  }
  side.connect(theirs);
}

// The target makes progress until the writer hangs up.
void serve(int socket, const Options& options, std::size_t bytes) {
  Side side(options, bytes);
  exchange(socket, side);
  for (std::uint64_t round = 0;; ++round) {
    side.poll();
    char byte = 0;
    if (round % 1024 == 0 && ::recv(socket, &byte, 1, MSG_DONTWAIT) == 0) {
      std::_Exit(0);
    }
  }
}

void measure(Side& side, const Options& options, std::size_t size) {
  // Large messages take longer; some 256 MiB in all say enough.
  const std::uint64_t enough = std::max<std::uint64_t>((std::size_t{256} << 20U) / size, 32);
  const std::uint64_t count = std::min(options.iterations, enough);
  side.write(size, std::max<std::uint64_t>(count / 10, 16), 1);
  const double latency = side.write(size, count, 1) / static_cast<double>(count);
  const double seconds = side.write(size, count, options.window);
  const double bandwidth = static_cast<double>(size * count) / seconds / 1e9;
  fmt::print(
      "{{\"program\": \"raw_write_loop\", \"provider\": \"{}\", \"size\": {}, \"iterations\": {}, "
      "\"window\": {}, \"wait\": \"{}\", \"latency_us\": {:.3f}, \"bandwidth_GB_per_s\": "
      "{:.4f}}}\n",
      side.provider(), size, count, options.window, options.wait, latency * 1e6, bandwidth);
  static_cast<void>(std::fflush(stdout));
}

Options parse(int argc, char** argv) {
  Options options{.provider = default_provider()};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = word.starts_with("--") && i + 1 < argc;
    const std::string value = has_value ? argv[i + 1] : "";
    const std::uint64_t number = std::strtoull(has_value ? argv[i + 1] : argv[i], nullptr, 10);
    if (has_value && word == "--provider") {
      options.provider = argv[++i];
    } else if (has_value && word == "--iterations" && number > 0) {
      options.iterations = number, ++i;
    } else if (has_value && word == "--window" && number > 0 && number <= 256) {
      options.window = number, ++i;
    } else if (has_value && word == "--wait" && (value == "none" || value == "fd")) {
      options.wait = value, ++i;
    } else if (!word.starts_with("--") && number > 0) {
      options.sizes.push_back(number);
    } else {
      fail(fmt::format("{}: usage: raw_write_loop [--provider NAME] [--iterations N] [--window "
                       "1..256] [--wait none|fd] [SIZE...]",
                       word),
           2);
    }
  }
  if (options.sizes.empty()) {
    options.sizes = {8, 4096, 65536, std::size_t{1} << 20U};
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::size_t bytes = *std::max_element(options.sizes.begin(), options.sizes.end());
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) {
    fail("socketpair failed");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(sockets[0]);
    serve(sockets[1], options, bytes);
  }
  ::close(sockets[1]);
  {
    Side side(options, bytes);
    exchange(sockets[0], side);
    for (const std::size_t size : options.sizes) {
      measure(side, options, size);
    }
    ::close(sockets[0]);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
