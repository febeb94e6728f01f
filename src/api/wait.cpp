// weft_signal_wait_until: the typed wait on a signal word, which also returns the value seen.
#include "src/api/typed_wait.hpp"

namespace weft::api {

int signal_wait_until(const Caller& caller,
                      std::uint64_t* word,
                      weft_comparison comparison,
                      std::uint64_t value,
                      std::uint64_t* seen) {
  const typed::Variables<std::uint64_t> variables{word, 1, nullptr, comparison, &value, 0};
  if (const Status status = typed::check_variables(caller.name, variables); status != Status::Ok) {
    return end_job_if_failed(caller, static_cast<int>(status));
  }
  std::uint64_t last = 0;
  const int status = wait(caller.name, {word, 1, sizeof *word}, [&] {
    last = rma::load_word(word);
    return typed::compare(last, comparison, value);
  });
  if (status == WEFT_OK && seen != nullptr) {
    *seen = last;
  }
  return end_job_if_failed(caller, status);
}

}  // namespace weft::api

int weft_signal_wait_until(uint64_t* word,
                           weft_comparison comparison,
                           uint64_t value,
                           uint64_t* seen) {
  return weft::api::signal_wait_until({"weft_signal_wait_until"}, word, comparison, value, seen);
}
