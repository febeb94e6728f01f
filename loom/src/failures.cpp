// The tables.
//
// Threads: any.
#include "loom/src/failures.hpp"

#include <rdma/fi_errno.h>

namespace loom {
namespace {

// libfabric 1.22 to 2.7, prov/efa/src/efa_errno.h: EFA_IO_COMP_STATUSES and to_fi_errno.
Failure efa_failure(Cause cause, const Settings& settings) {
  switch (cause) {
    case Cause::Unreachable:
      return {FI_EHOSTUNREACH, 15};  // LOCAL_ERROR_UNREACH_REMOTE
    case Cause::Silent:
      return {settings.libfabric < version_of(2, 0) ? FI_EHOSTUNREACH : FI_ECONNABORTED,
              13};  // LOCAL_ERROR_UNRESP_REMOTE
    case Cause::NoEndpoint:
      return {FI_ENOTCONN, 9};  // REMOTE_ERROR_BAD_DEST_QPN
    case Cause::UnknownPeer:
      return {FI_ENOTCONN, 14};  // REMOTE_ERROR_UNKNOWN_PEER
    case Cause::BadKey:
      return {FI_EINVAL, 7};  // REMOTE_ERROR_BAD_ADDRESS
    case Cause::NoReceive:
      return {FI_ENORX, 10};  // REMOTE_ERROR_RNR
    case Cause::Chance:
      return {FI_EREMOTEIO, 12};  // REMOTE_ERROR_BAD_STATUS
  }
  return {FI_EOTHER, 0};
}

// libfabric 2.7, prov/cxi/src/cxip_cq.c, proverr2errno. The numbers of its C_RC_... are in
// Cassini's headers, which libfabric does not carry: the error stands for them.
Failure cxi_failure(Cause cause) {
  const bool is_undelivered = cause == Cause::Unreachable || cause == Cause::Silent;
  const int error = is_undelivered ? FI_EHOSTUNREACH : FI_EIO;
  return {error, error};
}

// libfabric 2.7, prov/verbs/src/verbs_cq.c: FI_EIO and the status of the work completion
// (rdma-core, verbs.h). Who was never reached has no connection (prov/rxm/src/rxm_conn.c).
Failure verbs_failure(Cause cause) {
  switch (cause) {
    case Cause::Unreachable:
      return {FI_EHOSTUNREACH, FI_EHOSTUNREACH};
    case Cause::Silent:
    case Cause::NoEndpoint:
      return {FI_EIO, 12};  // IBV_WC_RETRY_EXC_ERR
    case Cause::UnknownPeer:
    case Cause::Chance:
      return {FI_EIO, 11};  // IBV_WC_REM_OP_ERR
    case Cause::BadKey:
      return {FI_EIO, 10};  // IBV_WC_REM_ACCESS_ERR
    case Cause::NoReceive:
      return {FI_EIO, 13};  // IBV_WC_RNR_RETRY_EXC_ERR
  }
  return {FI_EIO, 0};
}

// The same for every NIC.
int plain_error(Cause cause) {
  switch (cause) {
    case Cause::Unreachable:
    case Cause::Silent:
    case Cause::NoEndpoint:
      return FI_EHOSTUNREACH;
    case Cause::UnknownPeer:
      return FI_ENOTCONN;
    case Cause::BadKey:
      return FI_EACCES;
    case Cause::NoReceive:
      return FI_EAGAIN;
    case Cause::Chance:
      return FI_EIO;
  }
  return FI_EOTHER;
}

}  // namespace

Failure failure_of(Cause cause, const FabricKind& kind, const Settings& settings) {
  if (settings.errors_by_case == 0) {
    const int error = plain_error(cause);
    return {error, error};
  }
  switch (kind.address_format) {
    case FI_ADDR_EFA:
      return efa_failure(cause, settings);
    case FI_ADDR_CXI:
      return cxi_failure(cause);
    default:
      return verbs_failure(cause);
  }
}

}  // namespace loom
