// SPDX-License-Identifier: Apache-2.0
// Reads the tensors of a torch.save() archive without running it. A pickle is a program for Python's
// interpreter; only the few opcodes and functions that a dictionary of plain tensors needs are understood;
// everything else is rejected.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/zip.hpp"
#include "pt2/stored_tensor.hpp"

namespace carina::pt2 {

struct PickledTensor {
  std::string name;
  StoredTensor tensor;
};

/// `bytes`: a torch.save() zip whose pickle is a dict (or OrderedDict) from names to tensors or parameters.
/// Two names may share a storage. An empty file is an empty dictionary. Errors name the opcode or function
/// that is not understood. `inflation`: the budget of the file that contains the archive, null if the archive
/// is a file itself.
Result<std::vector<PickledTensor>> readPickledTensors(ByteSpan bytes, std::shared_ptr<const void> owner,
                                                      std::shared_ptr<Budget> inflation = nullptr);

/// `bytes`: a torch.save() zip of the arguments of torch.export, (args, kwargs). Returns the tensors in it in
/// order, including those in tuples, lists and dictionaries; other arguments are left out. Errors and
/// `inflation` as above.
Result<std::vector<StoredTensor>> readPickledArguments(ByteSpan bytes, std::shared_ptr<const void> owner,
                                                       std::shared_ptr<Budget> inflation = nullptr);

}  // namespace carina::pt2
