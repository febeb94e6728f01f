// The folder of counter pages: how a page's file is called, and the removal of pages whose PE has died.
// The folder is shared with other users, so nothing in it is believed: no link is followed, and only
// plain files of this user are looked at.
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

// What WEFT_COUNTERS_DIR is by default, and what it is for no pages.
inline constexpr std::string_view kDefaultCountersFolder = "/dev/shm";
inline constexpr std::string_view kNoCountersFolder = "off";

struct PageName {
  std::uint32_t uid = 0;
  std::string job;  // any text; in the file's name at most 64 of [A-Za-z0-9._-], others as '_'
  Pe pe;
  std::int64_t pid = 0;
};

// "weft-<uid>-<job>-<pe>-<pid>.page". Pure.
[[nodiscard]] std::string page_file_name(const PageName& name);
// The name that a page has until its header is complete. Pure.
[[nodiscard]] std::string unfinished_file_name(const std::string& file_name);
// The process that a page of user `uid`, finished or not, belongs to; empty for any other name. Pure.
[[nodiscard]] std::optional<std::int64_t> pid_of_page(std::string_view file_name,
                                                      std::uint32_t uid);

// The names of this user's pages whose process has ended, or has a number that now belongs to another one.
// A page that is locked is none: its process may run where its number says nothing here (a container).
// `folder` is an open descriptor.
[[nodiscard]] std::vector<std::string> dead_pages(int folder);

// Removes those. How many.
std::size_t remove_dead_pages(int folder);
// None where the folder cannot be opened.
std::size_t remove_dead_pages(const std::string& folder);

}  // namespace weft
