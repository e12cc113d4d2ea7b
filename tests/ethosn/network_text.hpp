// SPDX-License-Identifier: Apache-2.0
// Networks of Ethos-N operations as lines of text that another compiler can read; the weights are in a
// second, binary file.
//
//   tensor TENSOR                                  in order of tensor number; as in support_protocol.hpp
//   input NUMBER / output NUMBER
//   operation IN,IN,... OUT,... WEIGHTS BIASES QUERY
//     WEIGHTS, BIASES   OFFSET+BYTES in the second file, "-" if there are none; biases are 32-bit, little-
//                       endian
//     QUERY             the support query of the operation (support_protocol.hpp)
#pragma once

#include <filesystem>

#include "ethosn/compiler/network.hpp"
#include "ethosn/support_protocol.hpp"

namespace carina::ethosn::test {

struct TargetNetwork {
  Target target;
  Network network;
};

/// FILE and FILE.bin.
Status writeNetwork(const TargetNetwork& network, const std::filesystem::path& file);
Result<TargetNetwork> readNetwork(const std::filesystem::path& file);

}  // namespace carina::ethosn::test
