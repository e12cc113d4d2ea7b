// SPDX-License-Identifier: Apache-2.0
// One evaluation by several processes, each of which does a part of the data.
#pragma once

#include <memory>

#include "evaluate/evaluate.hpp"
#include "evaluate/ranks.hpp"

namespace carina::evaluate {

/// evaluate(), each process a shard of it. The first of them gets the whole, the same bits as one process
/// would, the others nothing. With Options::records each keeps its own in FILE.I-of-N until the first one has
/// written FILE: processes that were stopped go on there. Errors are those of this process; the others end
/// without a result.
Result<std::unique_ptr<Evaluation>> evaluateTogether(const Options& options, const Ranks& ranks);

}  // namespace carina::evaluate
