// Fabrics and domains, and the tables that open what is in them.
//
// Threads: any.
#include "loom/src/domain.hpp"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "loom/src/completion_queue.hpp"
#include "loom/src/endpoint.hpp"
#include "loom/src/fork_support.hpp"
#include "loom/src/info.hpp"

namespace loom {
namespace {

// ---- Event queues: there are no events, but clients may want one.

struct EventQueue : fid_eq {};

fi_ops_eq kEventOps{
    .size = sizeof(fi_ops_eq),
    .read = [](fid_eq*, std::uint32_t*, void*, std::size_t, std::uint64_t) -> ssize_t {
      return -FI_EAGAIN;
    },
    .readerr = [](fid_eq*, fi_eq_err_entry*, std::uint64_t) -> ssize_t { return -FI_EAGAIN; },
    .write = kNotThere,
    .sread = [](fid_eq*, std::uint32_t*, void*, std::size_t, int, std::uint64_t) -> ssize_t {
      return -FI_EAGAIN;
    },
    .strerror = [](fid_eq*, int, const void*, char*, std::size_t) -> const char* {
      return "loom";
    }};

int open_events(fid_fabric* /*fabric*/,
                fi_eq_attr* /*attributes*/,
                fid_eq** result,
                void* context) {
  static fi_ops ops = closing_ops<EventQueue, fid_eq>();
  auto* queue = new EventQueue{};
  queue->fid.fclass = FI_CLASS_EQ;
  queue->fid.context = context;
  queue->fid.ops = &ops;
  queue->ops = &kEventOps;
  *result = queue;
  return 0;
}

// ---- Fabric

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** result, void* context) {
  auto& owner = object_of<Fabric>(fabric);
  std::uint32_t nic = 0;
  if (!find_nic(owner.link(), *info, nic)) {
    return -FI_ENODATA;
  }
  prepare_for_fork(owner.kind(), owner.link().settings());
  *result = new Domain(owner, nic, info->caps, context);
  return 0;
}

int open_domain_with_flags(fid_fabric* fabric,
                           fi_info* info,
                           fid_domain** result,
                           std::uint64_t /*flags*/,
                           void* context) {
  return open_domain(fabric, info, result, context);
}

int try_wait(fid_fabric* /*fabric*/, fid** handles, int count) {
  for (int i = 0; i < count; ++i) {
    if (handles[i]->fclass == FI_CLASS_CQ &&
        !object_of_fid<CompletionQueue, fid_cq>(handles[i]).arm()) {
      return -FI_EAGAIN;
    }
  }
  return 0;
}

fi_ops_fabric kFabricOps{.size = sizeof(fi_ops_fabric),
                         .domain = open_domain,
                         .passive_ep = kNotThere,
                         .eq_open = open_events,
                         .wait_open = kNotThere,
                         .trywait = try_wait,
                         .domain2 = open_domain_with_flags};

// ---- Domain

// fi_query_atomic(3): which form is told by flags.
int query_atomic(fid_domain* domain,
                 fi_datatype type,
                 fi_op op,
                 fi_atomic_attr* attributes,
                 std::uint64_t flags) {
  if ((object_of<Domain>(domain).kind().caps & FI_ATOMIC) == 0) {
    return -FI_ENOSYS;
  }
  const AtomicForm form = (flags & FI_COMPARE_ATOMIC) != 0 ? AtomicForm::Compare
                          : (flags & FI_FETCH_ATOMIC) != 0 ? AtomicForm::Fetch
                                                           : AtomicForm::Base;
  const int error = check_atomic(form, op, type);
  if (error == 0) {
    attributes->count = 1;
    attributes->size = atomic_bytes(type);
  }
  return error;
}

fi_ops_domain kDomainOps{.size = sizeof(fi_ops_domain),
                         .av_open = open_vector,
                         .cq_open = open_queue,
                         .endpoint = open_endpoint,
                         .scalable_ep = kNotThere,
                         .cntr_open = open_counter,
                         .poll_open = kNotThere,
                         .stx_ctx = kNotThere,
                         .srx_ctx = kNotThere,
                         .query_atomic = query_atomic,
                         .query_collective = kNotThere,
                         .endpoint2 = kNotThere};

fi_ops domain_fid_ops() {
  fi_ops ops = closing_ops<Domain, fid_domain>();
  ops.bind = [](fid*, fid*, std::uint64_t) { return 0; };  // an event queue, which stays empty
  return ops;
}

}  // namespace

Fabric::Fabric(FabricLink& link, const FabricKind& kind, void* context)
    : fid_fabric{}, link_(link), kind_(kind) {
  static fi_ops fid_ops = closing_ops<Fabric, fid_fabric>();
  fid.fclass = FI_CLASS_FABRIC;
  fid.context = context;
  fid.ops = &fid_ops;
  ops = &kFabricOps;
}

// prov/efa/src/rdm/efa_rdm_cq.c, efa_shm.c: with shm there is none. efa-direct has one from 2.3 on,
// efa from 2.5.
bool Domain::sleeps() const {
  const Settings& settings = link().settings();
  if (settings.efa_shm == 0 || kind().address_format != FI_ADDR_EFA) {
    return kind().sleeps;
  }
  const bool is_remote_only = (caps_ & FI_REMOTE_COMM) != 0 && (caps_ & FI_LOCAL_COMM) == 0;
  const bool has_shm =
      kind().has_protocol && !is_remote_only && is_on("FI_EFA_ENABLE_SHM_TRANSFER", true);
  const std::uint64_t since = kind().has_protocol ? version_of(2, 5) : version_of(2, 3);
  return kind().sleeps && !has_shm && settings.libfabric >= since;
}

Domain::Domain(Fabric& fabric, std::uint32_t nic, std::uint64_t caps, void* context)
    : fid_domain{}, fabric_(fabric), nic_(nic), caps_(caps) {
  static fi_ops fid_ops = domain_fid_ops();
  fid.fclass = FI_CLASS_DOMAIN;
  fid.context = context;
  fid.ops = &fid_ops;
  ops = &kDomainOps;
  mr = memory_ops();
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** result, void* context) {
  FabricLink* link = fabric_link();
  if (link == nullptr || attributes->name == nullptr) {
    return -FI_ENODATA;
  }
  for (const FabricKind& kind : link->persona().kinds) {
    if (kind.name == attributes->name) {
      *result = new Fabric(*link, kind, context);
      return 0;
    }
  }
  return -FI_ENODATA;
}

}  // namespace loom
