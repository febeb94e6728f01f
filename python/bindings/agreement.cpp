#include "agreement.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "array.hpp"
#include "session.hpp"
#include "teams.hpp"

namespace nb = nanobind;

namespace weft::python {

// With the position of the library's publication in one cache line.
struct CallNote {
  static constexpr std::uint8_t kTag = 1;  // no text begins with it

  std::uint8_t tag = kTag;
  std::uint8_t refused = 0;  // 1: this PE's arguments were
  std::uint16_t reduction = 0;
  nb::dlpack::dtype dtype{};  // of no lanes: the call has no memory
  std::uint64_t count = 0;
  std::uint64_t room = 0;
  std::int32_t root = -1;
  std::array<char, 20> name{};

  friend bool operator==(const CallNote&, const CallNote&) = default;

  [[nodiscard]] std::string text() const;
};

static_assert(sizeof(CallNote) == 48);

namespace {

constexpr std::size_t kTextBytes = 256;
constexpr std::size_t kPesNamed = 8;
constexpr std::size_t kWishesNamed = 4;

// Nothing for what does not tell where its memory is.
std::optional<bool> is_on_host(nb::handle object) {
  if (const Array* array = array_of(object)) {
    return array->block->device == kHost;
  }
  if (const nb::object is_cpu = nb::getattr(object, "is_cpu", nb::none()); !is_cpu.is_none()) {
    return PyObject_IsTrue(is_cpu.ptr()) == 1;
  }
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    return std::nullopt;
  }
  return !nb::hasattr(object, "__cuda_array_interface__");
}

// Who wants what, with equal wishes together: "A on PE 0, 2; B on PE 1". Empty if all are equal.
std::string differences(const std::vector<std::string>& wishes) {
  std::vector<std::pair<std::string_view, std::vector<std::size_t>>> groups;
  for (std::size_t pe = 0; pe < wishes.size(); ++pe) {
    const auto same =
        std::ranges::find(groups, wishes[pe], [](const auto& one) { return one.first; });
    (same != groups.end() ? *same : groups.emplace_back(wishes[pe], 0)).second.push_back(pe);
  }
  std::string text;
  for (std::size_t i = 0; groups.size() > 1 && i < std::min(groups.size(), kWishesNamed); ++i) {
    const auto& [wish, pes] = groups[i];
    text += (i == 0 ? "" : "; ") + std::string(wish) + " on PE ";
    for (std::size_t j = 0; j < std::min(pes.size(), kPesNamed); ++j) {
      text += (j == 0 ? "" : ", ") + std::to_string(pes[j]);
    }
    text += pes.size() > kPesNamed ? ", ..." : "";
  }
  return text;
}

[[noreturn]] void refuse_mismatch(const std::string& name,
                                  weft_team_t team,
                                  const std::vector<std::string>& wishes) {
  const std::string whose = team == WEFT_TEAM_WORLD ? "" : " of the team";
  for (std::size_t pe = 0; pe < wishes.size(); ++pe) {
    if (wishes[pe].starts_with('!')) {
      throw Failure(Kind::Mismatch, name + ": PE " + std::to_string(pe) + whose +
                                        " could not take part: " + wishes[pe].substr(1));
    }
  }
  throw Failure(Kind::Mismatch, name + ": the PEs" + whose + " differ: " + differences(wishes) +
                                    "; call it with the same arguments on all PEs");
}

// What a PE showed, by either kind of note.
std::string wish_of(const char* bytes, std::size_t size) {
  return std::string(bytes, ::strnlen(bytes, size));
}

CallNote note_at(const char* bytes) {
  CallNote note;
  std::memcpy(&note, bytes, sizeof note);
  return note;
}

std::vector<std::string> texts_of(const std::vector<CallNote>& notes) {
  std::vector<std::string> texts(notes.size());
  std::ranges::transform(notes, texts.begin(), &CallNote::text);
  return texts;
}

}  // namespace

std::string CallNote::text() const {
  if (tag != kTag) {
    return wish_of(reinterpret_cast<const char*>(this), sizeof *this);
  }
  const std::string call(name.data(), ::strnlen(name.data(), name.size()));
  if (refused != 0) {
    return "!its arguments of " + call + " were refused, with an exception there";
  }
  std::string text = call;
  if (reduction != 0) {
    text += " (" + std::string(reduction_name(static_cast<weft_reduction>(reduction))) + ")";
  }
  if (const Dtype* type = dtype.lanes == 0 ? nullptr : find_dtype(dtype)) {
    text += " of " + std::to_string(count) + " " + std::string(type->name);
  }
  return root < 0 ? text : text + ", root " + std::to_string(root);
}

Announcement::Announcement(weft_team_t team, const char* name, bool is_compared)
    : team_(team), name_(name), is_compared_(is_compared) {}

Announcement::Announcement(weft_team_t team, const char* name, nb::handle dest, nb::handle source)
    : Announcement(team, name, false) {
  const int level = weft_team_check_level(team);
  if (level == 1) {
    const std::optional<bool> of_dest = is_on_host(dest);
    is_compared_ = of_dest ? *of_dest : is_on_host(source).value_or(false);
  } else {
    is_compared_ = level == 2;
  }
}

Announcement Announcement::without_memory(weft_team_t team, const char* name, nb::handle stream) {
  const int level = weft_team_check_level(team);
  return {team, name, level == 2 || (level == 1 && stream.is_none())};
}

Announcement::~Announcement() {
  if (!is_compared_ || is_shown_) {
    return;
  }
  CallNote mine = note();
  mine.refused = 1;
  try {
    exchange(mine);
  } catch (const std::exception&) {
    weft_take_error();  // this PE throws what its arguments were refused with
  }
}

CallNote Announcement::note() const {
  CallNote note;
  std::memcpy(note.name.data(), name_, std::min(note.name.size(), std::strlen(name_)));
  return note;
}

std::vector<CallNote> Announcement::exchange(const CallNote& mine) {
  is_shown_ = true;
  std::vector<CallNote> all(static_cast<std::size_t>(weft_team_pe_count(team_)));
  run(name_, [&] { return weft_team_exchange(team_, &mine, sizeof mine, all.data()); });
  return all;
}

void Announcement::show(const CallArguments& arguments) {
  if (!is_compared_) {
    return;
  }
  CallNote mine = note();
  mine.root = arguments.root;
  mine.reduction = arguments.reduction;
  if (arguments.memory != nullptr) {
    mine.dtype = arguments.memory->dtype().dlpack;
    mine.count = arguments.memory->count();
  }
  const std::vector<CallNote> all = exchange(mine);
  if (!std::ranges::all_of(all, [&](const CallNote& one) { return one == mine; })) [[unlikely]] {
    refuse_mismatch(name_, team_, texts_of(all));
  }
}

std::vector<std::size_t> Announcement::show_counts(const Memory& source, std::size_t room) {
  CallNote mine = note();
  mine.dtype = source.dtype().dlpack;
  mine.count = source.count();
  mine.room = room;
  const std::vector<CallNote> all = exchange(mine);
  const auto is_like_mine = [&](CallNote one) {
    one.count = mine.count;
    one.room = mine.room;
    return one == mine;
  };
  if (!std::ranges::all_of(all, is_like_mine)) {
    refuse_mismatch(name_, team_, texts_of(all));
  }
  std::vector<std::size_t> counts;
  for (const CallNote& one : all) {
    counts.push_back(one.count);
  }
  const std::size_t needed = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const auto least = std::ranges::min_element(all, {}, &CallNote::room);
  if (least->room < needed) {
    throw Failure(Kind::WrongShape, std::string(name_) + ": the PEs bring " +
                                        std::to_string(needed) + " elements, and dest of PE " +
                                        std::to_string(least - all.begin()) + " has room for " +
                                        std::to_string(least->room) + "; make dest larger");
  }
  return counts;
}

void agree(const std::string& text, const std::string& name) {
  const auto count = static_cast<std::size_t>(weft_pe_count());
  std::array<char, kTextBytes> mine{};
  std::memcpy(mine.data(), text.c_str(), std::min(text.size(), kTextBytes - 1));
  std::vector<std::array<char, kTextBytes>> all(count);
  run(name.c_str(),
      [&] { return weft_team_exchange(WEFT_TEAM_WORLD, mine.data(), kTextBytes, all.data()); });
  if (!std::ranges::all_of(all, [&](const auto& one) { return one == mine; })) {
    std::vector<std::string> wishes;
    for (const auto& one : all) {
      wishes.push_back(one.front() == CallNote::kTag ? note_at(one.data()).text()
                                                     : wish_of(one.data(), kTextBytes));
    }
    refuse_mismatch(name, WEFT_TEAM_WORLD, wishes);
  }
}

}  // namespace weft::python
