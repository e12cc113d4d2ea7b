// SPDX-License-Identifier: Apache-2.0
// The origin of a node in the user's source, as recorded in the archive.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "pt2/json.hpp"

namespace carina::pt2 {

/// Location of a node from its "metadata" object. Unrecognised parts stay empty; never fails.
ir::LocationRef readLocation(std::string_view nodeName, std::optional<JsonValue> metadata);

/// A module of the network and its Python class: {"layers.0.conv", "torch.nn.modules.conv.Conv2d"}. The root
/// has the path "".
struct ModuleClass {
  std::string path, type;
  friend bool operator==(const ModuleClass&, const ModuleClass&) = default;
};
/// The modules that contain a node, outermost first, from its "metadata" object. Never fails.
std::vector<ModuleClass> readModuleClasses(std::optional<JsonValue> metadata);
/// The same from an nn_module_stack.
std::vector<ModuleClass> moduleClassesOf(std::string_view moduleStack);

/// Path of the innermost module of an nn_module_stack: "layers.0.conv"; "" for the root or if unknown.
std::string modulePathOf(std::string_view moduleStack);
/// "net.py:14" of the innermost line of a traceback that is not torch's own; "" if there is none.
std::string sourceLineOf(std::string_view stackTrace);

}  // namespace carina::pt2
