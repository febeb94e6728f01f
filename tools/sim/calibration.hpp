// Fits values of a machine to a measured table: each from the rows that depend on it most, so that
// the other rows stay predictions.
//
// One thread.
#pragma once

#include <string>
#include <vector>

#include "tools/sim/machine.hpp"
#include "tools/sim/prediction.hpp"
#include "tools/sim/reference.hpp"

namespace weft::sim {

// What is fitted: "put_bw" from a table of bandwidths; from one of times "start" (floor, efficiency
// and start of the call), "floor" (with the start of `single`), "overload", "copies", "latency".
[[nodiscard]] std::vector<std::string> fit_names();

// Throws Error if the table lacks rows that a fit needs, or no value explains it.
void calibrate(Machine& machine,
               const Question& question,
               const Reference& reference,
               const std::string& fit);

// The question of a row.
[[nodiscard]] Question question_of(const Question& question, const ReferenceRow& row);

}  // namespace weft::sim
