// Many-to-many reads with libfabric's shm provider alone, as the base of comparisons; see
// get_all.hpp.
//   raw_get_all PROCESSES BYTES...
//
// Forks its processes, which meet in a page that they share. A process that waits gives up its core
// after each look, so that more processes than cores do not hold each other up.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstdint>
#include <cstring>
#include <ctime>
#include <vector>

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/get_all.hpp"
#include "src/base/atomic.hpp"

namespace {

constexpr int kProcessesMax = 64;

struct Endpoint {
  char address[256];
  std::uint64_t key;
  std::uint64_t base;
  double seconds;
};

struct Shared {
  std::uint64_t arrived;
  Endpoint endpoints[kProcessesMax];
};

void require(long result, const char* what) {
  if (result < 0) {
    fmt::print(stderr, "{} failed: {}\n", what, fi_strerror(static_cast<int>(-result)));
    std::_Exit(1);
  }
}

class Shm {
 public:
  Shm(Shared& shared, int me, int size)
      : shared_(shared),
        me_(me),
        size_(size),
        memory_(get_all::kBytesMax),
        here_(get_all::kBytesMax) {
    open();
    enter_peers();
  }

  [[nodiscard]] int me() const { return me_; }

  [[nodiscard]] int size() const { return size_; }

  void post(int peer, std::size_t bytes) {
    const auto index = static_cast<std::size_t>(peer);
    const Endpoint& endpoint = shared_.endpoints[index];
    long result = 0;
    while ((result = fi_read(endpoint_, here_.data(), bytes, descriptor_, peers_[index],
                             has_addresses_ ? endpoint.base : 0, endpoint.key, nullptr)) ==
           -FI_EAGAIN) {
      poll();
    }
    require(result, "fi_read");
    ++outstanding_;
  }

  void wait() {
    while (outstanding_ > 0) {
      poll();
    }
  }

  // Makes progress meanwhile: others may need it.
  void barrier() {
    // SYNC perf-barrier: both sides; what came before it in any process is seen by all.
    weft::AtomicRef(shared_.arrived).fetch_add(1, std::memory_order_acq_rel);
    ++barriers_;
    const auto all = static_cast<std::uint64_t>(barriers_ * size_);
    // SYNC perf-barrier: as above.
    while (weft::AtomicRef(shared_.arrived).load(std::memory_order_acquire) < all) {
      poll();
    }
  }

  double largest(double mine) {
    shared_.endpoints[me_].seconds = mine;
    barrier();
    double most = shared_.endpoints[0].seconds;
    for (int i = 0; i < size_; ++i) {
      most = std::max(most, shared_.endpoints[i].seconds);
    }
    barrier();
    return most;
  }

 private:
  void open() {
    fi_info* hints = fi_allocinfo();
    hints->caps = FI_RMA | FI_MSG;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL;
    hints->fabric_attr->prov_name = ::strdup("shm");
    fi_info* info = nullptr;
    require(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info), "fi_getinfo for shm");
    fid_fabric* fabric = nullptr;
    require(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    require(fi_domain(fabric, info, &domain_, nullptr), "fi_domain");
    fi_av_attr av_attributes{};
    av_attributes.type = FI_AV_TABLE;
    require(fi_av_open(domain_, &av_attributes, &vector_, nullptr), "fi_av_open");
    fi_cq_attr cq_attributes{};
    cq_attributes.format = FI_CQ_FORMAT_CONTEXT;
    cq_attributes.size = 4096;
    require(fi_cq_open(domain_, &cq_attributes, &queue_, nullptr), "fi_cq_open");
    require(fi_endpoint(domain_, info, &endpoint_, nullptr), "fi_endpoint");
    require(fi_ep_bind(endpoint_, &vector_->fid, 0), "fi_ep_bind to the address vector");
    require(fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to the queue");
    require(fi_enable(endpoint_), "fi_enable");
    has_addresses_ = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    publish();
  }

  void publish() {
    Endpoint& mine = shared_.endpoints[me_];
    fid_mr* region = nullptr;
    require(fi_mr_reg(domain_, memory_.data(), memory_.size(), FI_REMOTE_READ, 0,
                      static_cast<std::uint64_t>(me_) + 1, 0, &region, nullptr),
            "fi_mr_reg");
    mine.key = fi_mr_key(region);
    mine.base = reinterpret_cast<std::uint64_t>(memory_.data());
    fid_mr* local = nullptr;
    require(fi_mr_reg(domain_, here_.data(), here_.size(), FI_READ, 0,
                      static_cast<std::uint64_t>(me_) + 1001, 0, &local, nullptr),
            "fi_mr_reg");
    descriptor_ = fi_mr_desc(local);
    std::size_t length = sizeof mine.address;
    require(fi_getname(&endpoint_->fid, mine.address, &length), "fi_getname");
    barrier();
  }

  void enter_peers() {
    peers_.resize(static_cast<std::size_t>(size_));
    for (int i = 0; i < size_; ++i) {
      require(fi_av_insert(vector_, shared_.endpoints[i].address, 1,
                           &peers_[static_cast<std::size_t>(i)], 0, nullptr) == 1
                  ? 0
                  : -FI_EINVAL,
              "fi_av_insert");
    }
    barrier();
  }

  void poll() {
    fi_cq_entry entries[16];
    const long count = fi_cq_read(queue_, entries, 16);
    if (count > 0) {
      outstanding_ -= static_cast<int>(count);
    } else if (count == -FI_EAGAIN) {
      ::sched_yield();
    } else {
      require(count, "fi_cq_read");
    }
  }

  Shared& shared_;
  int me_;
  int size_;
  std::vector<char> memory_;
  std::vector<char> here_;
  fid_domain* domain_ = nullptr;
  fid_av* vector_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  void* descriptor_ = nullptr;
  std::vector<fi_addr_t> peers_;
  bool has_addresses_ = false;
  int outstanding_ = 0;
  int barriers_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int size = argc < 3 ? 0 : std::atoi(argv[1]);
  if (size < 2 || size > kProcessesMax) {
    fmt::print(stderr, "usage: raw_get_all PROCESSES BYTES...   (2 to {} processes)\n",
               kProcessesMax);
    return 2;
  }
  auto* shared = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int me = 1; me < size; ++me) {
    if (::fork() == 0) {
      Shm library(*shared, me, size);
      const int status = get_all::run(library, argc - 1, argv + 1);
      library.barrier();
      return status;
    }
  }
  Shm library(*shared, 0, size);
  int status = get_all::run(library, argc - 1, argv + 1);
  library.barrier();
  for (int child = 0; ::wait(&child) > 0;) {
    status |= child;
  }
  return status == 0 ? 0 : 1;
}
