// The folder of counter pages: the file names of pages, and the removal of pages of dead PEs. The
// folder is shared with other users, so its contents are not trusted: links are not followed, and
// only plain files of this user are opened.
//
// Any thread, any process at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"

namespace weft {

// The default of WEFT_COUNTERS_DIR, and its value for no pages.
inline constexpr std::string_view kDefaultCountersFolder = "/dev/shm";
inline constexpr std::string_view kNoCountersFolder = "off";

struct PageName {
  std::uint32_t uid = 0;
  std::string job;  // any text; the file name has at most 64 of [A-Za-z0-9._-], others as '_'
  Pe pe;
  std::int64_t pid = 0;
};

// "weft-<uid>-<job>-<pe>-<pid>.page". Pure.
[[nodiscard]] std::string page_file_name(const PageName& name);
// The name of a page until its header is complete. Pure.
[[nodiscard]] std::string unfinished_file_name(const std::string& file_name);
// The process that owns a page of user `uid`, finished or not; empty for any other name. Pure.
[[nodiscard]] std::optional<std::int64_t> pid_of_page(std::string_view file_name,
                                                      std::uint32_t uid);

// The names of this user's pages whose process has ended, or whose process id now belongs to
// another process. A locked page is never one of them: its process may run in a container, where
// the id has no meaning here. `folder` is an open descriptor.
[[nodiscard]] std::vector<std::string> dead_pages(int folder);

// Removes those pages. Returns their number.
std::size_t remove_dead_pages(int folder);
// Removes none if the folder cannot be opened.
std::size_t remove_dead_pages(const std::string& folder);

}  // namespace weft
