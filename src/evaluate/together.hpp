// SPDX-License-Identifier: Apache-2.0
// One evaluation by several processes, each of which processes part of the data.
#pragma once

#include <memory>

#include "evaluate/evaluate.hpp"
#include "evaluate/ranks.hpp"

namespace carina::evaluate {

/// evaluate(), with one shard per process. The first process gets the whole result, bit-identical to that of
/// a single process, the others null. With Options::records each process keeps its own records in FILE.I-of-N
/// until the first one has written FILE: interrupted processes resume there. Errors are those of this
/// process; the other processes end without a result.
Result<std::unique_ptr<Evaluation>> evaluateTogether(const Options& options, const Ranks& ranks);

}  // namespace carina::evaluate
