// The launchers of a libweft_moe that was built without CUDA. They are not reached, because
// weft_device_init has failed.
#include "moe/src/gpu/launchers.hpp"
#include "moe/src/gpu/turns.hpp"
#include "src/base/error.hpp"

namespace weft::moe::gpu {
namespace {

[[noreturn]] void fail_absent() {
  fail(Status::InvalidArgument,
       "this libweft_moe was built without CUDA; build it where nvcc 12.4 or later is found, with "
       "-DWEFT_CUDA=ON");
}

}  // namespace

std::string describe(int /*error*/) {
  return "no CUDA";
}

Residency residency() {
  fail_absent();
}

int dispatch(const KernelArguments& /*exchange*/,
             const Dispatch& /*call*/,
             Grid /*grid*/,
             weft_stream_t /*stream*/) {
  fail_absent();
}

int combine(const KernelArguments& /*exchange*/,
            const Combine& /*call*/,
            Grid /*grid*/,
            weft_stream_t /*stream*/) {
  fail_absent();
}

int find_sources(const KernelArguments& /*exchange*/,
                 const Sources& /*call*/,
                 weft_stream_t /*stream*/) {
  fail_absent();
}

int count_destinations(const Destinations& /*call*/,
                       std::int32_t /*ranks*/,
                       weft_stream_t /*stream*/) {
  fail_absent();
}

int show_row_routes(const RowRoutes& /*call*/, weft_stream_t /*stream*/) {
  fail_absent();
}

bool is_captured(weft_stream_t /*stream*/) {
  fail_absent();
}

int refuse(const KernelArguments& /*exchange*/, weft_moe_step /*step*/, weft_stream_t /*stream*/) {
  fail_absent();
}

struct Turns::Use {};

Turns::Turns() {
  fail_absent();
}

Turns::~Turns() = default;

Turns::Turn::Turn(Turns& of, int /*blocks*/, const Residency& /*held*/, weft_stream_t /*stream*/)
    : of_(of) {
  fail_absent();
}

int Turns::Turn::begin() {
  fail_absent();
}

int Turns::Turn::end() {
  fail_absent();
}

}  // namespace weft::moe::gpu
