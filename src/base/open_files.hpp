// The limit of open files (RLIMIT_NOFILE, getrlimit(2)). Systems set the soft limit low, usually to
// 1024, for programs that use select(2); a job's PEs and its rendezvous need a descriptor for each
// connection.
//
// Any thread; the limit is the process's.
#pragma once

#include <cstdint>
#include <string>

#include <sys/resource.h>

namespace weft {

// Raises the soft limit to the hard one, but to no more than kOpenFilesMax. Returns the limit as it
// was. Never lowers it.
rlimit raise_open_files() noexcept;

// More are not needed, and some programs walk through all descriptors that the limit allows.
inline constexpr std::uint64_t kOpenFilesMax = std::uint64_t{1} << 20U;

// How many descriptors this process has open; 0 without /proc.
[[nodiscard]] std::uint64_t count_open_files();

// Whether `more` descriptors can be opened beside those that are open.
[[nodiscard]] bool has_room_for_open_files(std::uint64_t more);

// For a message: what to do where there is no room for `more` descriptors.
[[nodiscard]] std::string open_files_hint(std::uint64_t more);

// Opens /dev/null for those of the descriptors 0 to 2 that are closed. Else a connection may get
// such a number, and whatever writes to standard output writes into it.
void open_standard_streams() noexcept;

}  // namespace weft
