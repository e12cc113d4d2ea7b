// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernel_schema.hpp"

#include <map>

#include "carina/kernels.hpp"

namespace carina::cpu {
namespace {

/// "Scalar alpha=1", "int[2] padding=[0, 0]", "Tensor(a!) out"
KernelArgument parseArgument(std::string_view text) {
  KernelArgument argument;
  const size_t equals = text.find('=');
  const std::string_view declared = text.substr(0, equals);
  const size_t blank = declared.rfind(' ');
  argument.name = declared.substr(blank + 1);
  if (equals != std::string_view::npos) argument.defaultText = text.substr(equals + 1);
  const std::string_view type = declared.substr(0, blank);
  argument.output = type.find("!)") != std::string_view::npos;
  argument.list = argument.output && type.substr(type.size() - 2) == "[]";
  return argument;
}

std::map<std::string_view, KernelSchema> makeTable() {
  std::map<std::string_view, KernelSchema> table;
  for (const rt::KernelInfo& info : rt::kernelInfos()) {
    if (*info.aten != '\0') table.emplace(info.aten, KernelSchema{info.name, argumentsOf(info.arguments)});
  }
  return table;
}

}  // namespace

std::vector<KernelArgument> argumentsOf(std::string_view text) {
  std::vector<KernelArgument> arguments;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    std::string_view item = text.substr(start, i - start);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    if (!item.empty() && item != "*") arguments.push_back(parseArgument(item));
    start = i + 1;
  }
  return arguments;
}

const KernelSchema* findKernelFor(std::string_view op) {
  static const std::map<std::string_view, KernelSchema> kTable = makeTable();
  const auto found = kTable.find(op);
  return found == kTable.end() ? nullptr : &found->second;
}

bool hasKernelNamed(std::string_view kernel) {
  return rt::findKernelInfo({kernel.data(), kernel.size()}) != nullptr;
}

}  // namespace carina::cpu
