// SPDX-License-Identifier: Apache-2.0
// How people name operators, nodes and modules of a network: shell patterns with * and ?.
#pragma once

#include <string>
#include <string_view>

namespace carina::aten {

/// * stands for any characters, ? for one.
bool matchesGlob(const std::string& pattern, const std::string& text);

/// "relu" and "aten.relu" stand for all overloads of aten.relu, "aten.relu.default" for that one. `opName` is
/// an OpDef's name.
bool matchesOperator(const std::string& pattern, std::string_view opName);

/// "encoder.0" matches the module and every module inside of it ("encoder.0.conv").
bool matchesModule(const std::string& pattern, const std::string& path);

/// "Conv2d" matches the class whatever its Python module; "torch.nn.Conv2d" and the full
/// "torch.nn.modules.conv.Conv2d" match that of PyTorch, which is recorded under the full name.
bool matchesClass(const std::string& pattern, const std::string& type);

}  // namespace carina::aten
