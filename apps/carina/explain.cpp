// SPDX-License-Identifier: Apache-2.0
// carina explain: what a diagnostic's code means.
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/codes.hpp"
#include "base/nearest.hpp"
#include "commands.hpp"
#include "console.hpp"

namespace carina::app {
namespace {

/// Wraps words into lines of up to `width` characters.
std::string wrapped(std::string_view text, size_t width) {
  std::string lines;
  size_t column = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column > 0 && column + 1 + end > width) {
      lines += '\n';
      column = 0;
    }
    if (column > 0) lines += ' ', ++column;
    lines += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

int list() {
  for (const CodeInfo& info : allCodes()) fmt::print("{}  {}\n", codeId(info.code), info.title);
  return 0;
}

int explain(const std::string& id) {
  if (id.empty()) return list();
  if (const CodeInfo* info = findCode(id)) {
    fmt::print("{}: {}\n\n{}\n", codeId(info->code), info->title, wrapped(info->explanation, 100));
    return 0;
  }
  std::vector<std::string> ids;
  for (const CodeInfo& info : allCodes()) ids.push_back(codeId(info.code));
  const std::string nearest = nearestWord(id, ids);
  return report(
      fail(Code::UnknownName, "there is no diagnostic '{}'", id)
          .withRemedy(nearest.empty() ? "carina explain lists them all" : "did you mean " + nearest + "?"));
}

}  // namespace

void addExplain(CommandLine& line, Run& run) {
  Command command = line.add("explain", "Explain the code of an error, such as E0104, or list all codes");
  auto id = std::make_shared<std::string>();
  command.option("code", *id, "Code in the brackets of the message");
  command.callback([id, &run] { run = [id] { return explain(*id); }; });
}

}  // namespace carina::app
