// weft_signal_wait_until: the typed wait on a signal word, which also returns what it saw.
#include "src/runtime/typed_wait.hpp"

int weft_signal_wait_until(uint64_t* word,
                           weft_comparison comparison,
                           uint64_t value,
                           uint64_t* seen) {
  using namespace weft::c_api;
  const typed::Variables<std::uint64_t> variables{word, 1, nullptr, comparison, value};
  if (const weft::Status status = typed::check_variables("weft_signal_wait_until", variables);
      status != weft::Status::Ok) {
    return static_cast<int>(status);
  }
  std::uint64_t last = 0;
  const int status = wait("weft_signal_wait_until", word, [&] {
    last = weft_signal_fetch(word);
    return typed::compare(&last, comparison, value);
  });
  if (status == WEFT_OK && seen != nullptr) {
    *seen = last;
  }
  return status;
}
