// SPDX-License-Identifier: Apache-2.0
// Markdown of GitHub's and GitLab's flavour.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carina::report {

/// Text that Markdown shows as it is, in one line, also in the cell of a table.
std::string inMarkdown(std::string_view text);

/// A row of a table, and the line between head and rows: the first `left` columns to the left, the others to
/// the right.
std::string markdownRow(const std::vector<std::string>& cells);
std::string markdownRule(size_t columns, size_t left);

}  // namespace carina::report
