// Before a collective the PEs of its team show each other what they are about to do, so that all of
// them raise Mismatch where one differs, and none waits for a PE whose arguments were refused.
// WEFT_CHECK_COLLECTIVES says when.
//
// Threads: any that is attached to Python, one at a time for each team, as the collectives
// themselves.
#pragma once

#include <weft/weft.h>

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "failure.hpp"
#include "memory.hpp"

namespace weft::python {

// The arguments of a collective that are the same on all PEs.
struct CallArguments {
  const Memory* memory = nullptr;  // its element type and number of elements
  int root = -1;                   // of a broadcast
  std::uint8_t reduction = 0;      // a weft_reduction
};

// What one PE shows of its call.
struct CallNote;

// One call of this PE. If it is destroyed before `show`, the arguments were refused: the others
// hear of that.
class Announcement {
 public:
  // Both are those of the user: the first that tells its place decides whether the call is one on
  // CPU memory.
  Announcement(weft_team_t team, const char* name, nanobind::handle dest, nanobind::handle source);
  // For a call without memory. Not compared where `stream` is one, unless all calls are.
  static Announcement without_memory(weft_team_t team, const char* name, nanobind::handle stream);
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;
  ~Announcement();

  // Returns when all PEs have shown theirs. Throws Mismatch, with who wanted what, if they differ.
  void show(const CallArguments& arguments);
  // As show, for a call in which each PE brings a number of elements of its own, and has room for
  // `room`: their numbers, by PE. Compares in any case. Throws WrongShape on all PEs if one has
  // less room than all elements need.
  std::vector<std::size_t> show_counts(const Memory& source, std::size_t room);

 private:
  Announcement(weft_team_t team, const char* name, bool is_compared);
  [[nodiscard]] CallNote note() const;
  std::vector<CallNote> exchange(const CallNote& mine);

  weft_team_t team_;
  const char* name_;
  bool is_compared_;
  bool is_shown_ = false;
};

// Collective over all PEs: throws Mismatch unless all show the same text. One that begins with ! is
// an error of that PE.
void agree(const std::string& text, const std::string& name);

}  // namespace weft::python
