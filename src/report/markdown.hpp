// SPDX-License-Identifier: Apache-2.0
// GitHub-flavoured and GitLab-flavoured Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carina::report {

/// Escapes text so that Markdown shows it unchanged on one line, including in table cells.
std::string inMarkdown(std::string_view text);

/// A row of a table, and the line between head and rows: the first `left` columns are left-aligned, the
/// others right-aligned.
std::string markdownRow(const std::vector<std::string>& cells);
std::string markdownRule(size_t columns, size_t left);

}  // namespace carina::report
