// Operations that fail by themselves while their peer and its links work: what the provider
// refuses, and what fails on every attempt. Later operations are not affected. One report a second,
// as a program may post thousands of them.
//
// Called under the transport's lock.
#pragma once

#include <string_view>

#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Failures {
 public:
  explicit Failures(State& state) : state_(state) {}

  // The rail takes neither this memory nor a copy of it.
  void end_refused(OperationRecord& record, const fabric::Rail& rail);
  // Each attempt at a piece has failed, the last as the provider says in `words`.
  void end_repeated(const PieceRecord& piece, std::string_view words);

 private:
  // True if it is time for another report.
  bool end(OperationRecord& record);

  State& state_;
};

}  // namespace weft::transport::rails
