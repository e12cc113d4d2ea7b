// SPDX-License-Identifier: Apache-2.0
// The runtime's kernels by the aten operator that they compute, with the arguments of a call.
#pragma once

#include <string_view>
#include <vector>

namespace carina::cpu {

struct KernelArgument {
  std::string_view name;         // as in the schema: "alpha"
  std::string_view defaultText;  // "" if there is none
  bool output = false;
  bool list = false;  // an output that is a list of tensors
};

struct KernelSchema {
  std::string_view kernel;                // "aten::add.out"
  std::vector<KernelArgument> arguments;  // outputs last
};

/// The arguments of a schema as the runtime lists them: "Tensor self, *, Scalar alpha=1, Tensor(a!) out".
std::vector<KernelArgument> argumentsOf(std::string_view schema);
/// The kernel for an operator ("aten.add.Tensor"); null if this library has none.
const KernelSchema* findKernelFor(std::string_view op);
/// Whether the library has a kernel of this name ("aten::as_strided_copy.out").
bool hasKernelNamed(std::string_view kernel);

}  // namespace carina::cpu
