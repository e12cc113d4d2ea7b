// SPDX-License-Identifier: Apache-2.0
// Bundled programs (.bpte): a program with test cases, each with the inputs of a method and the expected
// outputs.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "pte/program.hpp"

namespace carina::pte {

struct BundleTensor {
  ScalarType type = ScalarType::Float32;
  std::vector<int32_t> sizes;     // logical order
  std::vector<uint8_t> dimOrder;  // outermost to innermost in memory; empty: row-major
  ByteVector bytes;               // in memory order
  friend bool operator==(const BundleTensor&, const BundleTensor&) = default;
};
using BundleValue = std::variant<None, BundleTensor, int64_t, bool, double>;

struct BundleCase {
  std::vector<BundleValue> inputs, expected;
  friend bool operator==(const BundleCase&, const BundleCase&) = default;
};
struct BundleSuite {
  std::string method;
  std::vector<BundleCase> cases;
  friend bool operator==(const BundleSuite&, const BundleSuite&) = default;
};

struct Bundle {
  uint32_t version = 2;
  std::vector<BundleSuite> suites;
  ByteVector program;  // a whole .pte
  friend bool operator==(const Bundle&, const Bundle&) = default;
};

/// Reads a .bpte (untrusted) and checks its structure, but not the program inside (see readProgram()).
/// Tensors have exactly the bytes that they need.
Result<Bundle> readBundle(ByteSpan file);
/// The same bundle always gives the same bytes; the program is at a multiple of 32 in the file.
Result<std::string> writeBundle(const Bundle& bundle);

/// Conversion to a tensor in logical (row-major) order, and from one. Fails for types that Carina's tensors
/// do not have.
Result<carina::Tensor> toTensor(const BundleTensor& tensor);
BundleTensor fromTensor(const carina::Tensor& tensor);

/// Text of the suites, the cases and their contents.
std::string printBundle(const Bundle& bundle);

}  // namespace carina::pte
