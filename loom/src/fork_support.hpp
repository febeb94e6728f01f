// fork() as the providers have it on kernels before 5.13, which give the parent's registered pages
// to the child: EFA's ends the process unless fork support was asked for, and with such support
// registered pages are not inherited.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "loom/src/persona.hpp"
#include "loom/src/settings.hpp"

namespace loom {

// When a domain is opened. Nothing happens on a new kernel (Settings::old_kernel).
void prepare_for_fork(const FabricKind& kind, const Settings& settings);

// Whether registered host memory is kept from children: fork support was asked for, on an old
// kernel.
[[nodiscard]] bool keeps_from_children(const FabricKind& kind, const Settings& settings);

// Such memory is registered: its pages are left out of children. 0, or a negative error.
[[nodiscard]] int keep_from_children(std::uint64_t first, std::uint64_t bytes);
// It no longer is.
void give_to_children(std::uint64_t first, std::uint64_t bytes);

}  // namespace loom
