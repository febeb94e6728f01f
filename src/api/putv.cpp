// Lists of segments to one PE: checks, then rma. A rejected segment is named by its place in the
// list.
#include <weft/weft.h>

#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/api/calls.hpp"

namespace weft::api {
namespace {

using rma::Blocking;

struct PutvList {
  const weft_segment* segments;
  std::size_t count;
  int pe;
};

using Segments = std::vector<transport::GatherSegment>;

Status check_segment(const Caller& caller,
                     const char* name,
                     const weft_segment& segment,
                     int pe,
                     heap::Place& place) {
  const Access access{.name = name,
                      .address = segment.dest,
                      .bytes = segment.bytes,
                      .pe = pe,
                      .context = caller.context};
  const Status status = check(access, &place);
  return status == Status::Ok ? check_local(access, segment.source) : status;
}

// The PE and the context too, of an empty list as well. On Ok `segments` has those that are not
// empty.
Status check_list(const Caller& caller, const PutvList& list, Segments& segments) {
  const Status status = check({.name = caller.name,
                               .address = nullptr,
                               .bytes = 0,
                               .pe = list.pe,
                               .context = caller.context});
  if (status != Status::Ok) {
    return status;
  }
  if (list.segments == nullptr && list.count != 0 && check_level() > 0) {
    report(Status::InvalidArgument,
           fmt::format("{}: the list is null, for {} segments", caller.name, list.count));
    return Status::InvalidArgument;
  }
  for (std::size_t i = 0; i < list.count; ++i) {
    const weft_segment& segment = list.segments[i];
    heap::Place place;
    if (check_segment(caller, caller.name, segment, list.pe, place) != Status::Ok) {
      const std::string name = fmt::format("{}: segment {} of {}", caller.name, i, list.count);
      return check_segment(caller, name.c_str(), segment, list.pe, place);
    }
    if (segment.bytes > 0) {
      segments.push_back(
          {.remote = place, .local = const_cast<void*>(segment.source), .bytes = segment.bytes});
    }
  }
  return Status::Ok;
}

int putv(const Caller& caller, const PutvList& list, const weft_signal* signal, Blocking blocking) {
  thread_local Segments segments;  // keeps its memory from call to call
  segments.clear();
  rma::Signal update;
  Status status = check_list(caller, list, segments);
  if (status == Status::Ok && signal != nullptr) {
    status = check_signal({.name = caller.name,
                           .address = nullptr,
                           .bytes = 0,
                           .pe = list.pe,
                           .context = caller.context},
                          *signal, update);
  }
  if (status != Status::Ok) {
    return static_cast<int>(status);
  }
  return finish(
      current()->putv(context_of(caller.context), segments, signal == nullptr ? nullptr : &update,
                      Pe(world_pe(caller.context, list.pe)), blocking),
      caller.name);
}

}  // namespace
}  // namespace weft::api

using weft::rma::Blocking;

namespace api = weft::api;

int weft_putv(const weft_segment* segments, size_t count, int pe) {
  return api::putv({"weft_putv"}, {segments, count, pe}, nullptr, Blocking::Yes);
}

int weft_putv_nbi(const weft_segment* segments, size_t count, int pe) {
  return api::putv({"weft_putv_nbi"}, {segments, count, pe}, nullptr, Blocking::No);
}

int weft_putv_signal(const weft_segment* segments, size_t count, weft_signal signal, int pe) {
  return api::putv({"weft_putv_signal"}, {segments, count, pe}, &signal, Blocking::Yes);
}

int weft_putv_signal_nbi(const weft_segment* segments, size_t count, weft_signal signal, int pe) {
  return api::putv({"weft_putv_signal_nbi"}, {segments, count, pe}, &signal, Blocking::No);
}

int weft_ctx_putv(weft_ctx_t context, const weft_segment* segments, size_t count, int pe) {
  return api::putv({"weft_ctx_putv", context}, {segments, count, pe}, nullptr, Blocking::Yes);
}

int weft_ctx_putv_nbi(weft_ctx_t context, const weft_segment* segments, size_t count, int pe) {
  return api::putv({"weft_ctx_putv_nbi", context}, {segments, count, pe}, nullptr, Blocking::No);
}

int weft_ctx_putv_signal(
    weft_ctx_t context, const weft_segment* segments, size_t count, weft_signal signal, int pe) {
  return api::putv({"weft_ctx_putv_signal", context}, {segments, count, pe}, &signal,
                   Blocking::Yes);
}

int weft_ctx_putv_signal_nbi(
    weft_ctx_t context, const weft_segment* segments, size_t count, weft_signal signal, int pe) {
  return api::putv({"weft_ctx_putv_signal_nbi", context}, {segments, count, pe}, &signal,
                   Blocking::No);
}
