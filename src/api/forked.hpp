// A child of fork(2) of a PE has the PE's memory and connections, and none of the threads that
// serve them. It is in no job and cannot join one; this says so to every call.
//
// Threads: set in the child, before it has another thread; read by any.
#pragma once

namespace weft::api {

// In such a process the PE that it was forked from; else -1.
inline int pe_forked_from = -1;

}  // namespace weft::api
