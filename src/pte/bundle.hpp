// SPDX-License-Identifier: Apache-2.0
// Bundled programs (.bpte): a program with test cases, each the inputs of a method and the outputs they must
// give.
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
  std::vector<uint8_t> dimOrder;  // outermost to innermost in memory; empty: as the sizes are
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

/// Reads a .bpte (untrusted): its form; the program inside is for readProgram(). Tensors have as many bytes
/// as they need.
Result<Bundle> readBundle(ByteSpan file);
/// The same bundle always gives the same bytes; the program lies at a multiple of 32 in the file.
Result<std::string> writeBundle(const Bundle& bundle);

/// A tensor in logical (row-major) order, and back in memory order. Fails on types that Carina's tensors do
/// not have.
Result<carina::Tensor> toTensor(const BundleTensor& tensor);
BundleTensor fromTensor(const carina::Tensor& tensor);

/// Suites, cases and what they hold.
std::string printBundle(const Bundle& bundle);

}  // namespace carina::pte
