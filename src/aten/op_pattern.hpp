// SPDX-License-Identifier: Apache-2.0
// Patterns by which users refer to operators, nodes and modules of a network: shell patterns with * and ?.
#pragma once

#include <string>
#include <string_view>

namespace carina::aten {

/// * matches any sequence of characters, ? a single one.
bool matchesGlob(const std::string& pattern, const std::string& text);

/// "relu" and "aten.relu" match all overloads of aten.relu, "aten.relu.default" only that overload. `opName`
/// is an OpDef's name.
bool matchesOperator(const std::string& pattern, std::string_view opName);

/// "encoder.0" matches the module and every module inside it ("encoder.0.conv").
bool matchesModule(const std::string& pattern, const std::string& path);

/// "Conv2d" matches the class in any Python module; "torch.nn.Conv2d" and the full
/// "torch.nn.modules.conv.Conv2d" match PyTorch's class, which is recorded under the full name.
bool matchesClass(const std::string& pattern, const std::string& type);

}  // namespace carina::aten
