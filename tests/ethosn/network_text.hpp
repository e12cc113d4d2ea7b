// SPDX-License-Identifier: Apache-2.0
// Networks of Ethos-N operations as lines of text, so that another compiler can take them; the weights stand
// in a second file of bytes.
//
//   tensor TENSOR                                  in the order of their numbers; as in support_protocol.hpp
//   input NUMBER / output NUMBER
//   operation IN,IN,... OUT,... WEIGHTS BIASES QUERY
//     WEIGHTS, BIASES   OFFSET+BYTES in the second file, "-" where there are none; biases are 32-bit, little-
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
