// SPDX-License-Identifier: Apache-2.0
// Runs exported programs and compares their outputs with recorded ones.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "aten/executor.hpp"
#include "base/npy.hpp"
#include "pt2/exported_program.hpp"
#include "support/contents.hpp"
#include "support/require.hpp"

namespace carina::aten::test {

using carina::test::arraysNamed;

/// Floats: |a - b| <= 1e-5 * max|expected| + 1e-6 (equal infinities and NaNs match); everything else exactly.
inline ::testing::AssertionResult close(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return ::testing::AssertionFailure()
           << dtypeName(actual.dtype()) << shapeText(actual.shape()) << " instead of "
           << dtypeName(expected.dtype()) << shapeText(expected.shape());
  }
  double largest = 0;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    const double value = std::abs(expected.realAt(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  const double tolerance = isFloat(expected.dtype()) ? 1e-5 * largest + 1e-6 : 0;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    const double a = actual.realAt(i), b = expected.realAt(i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance) continue;
    return ::testing::AssertionFailure()
           << "element " << i << " is " << a << " instead of " << b << " (tolerance " << tolerance << ")";
  }
  return ::testing::AssertionSuccess();
}

/// NAME.pt2 run on NAME.npz's inputs gives NAME.npz's outputs.
inline void checkExport(const std::filesystem::path& archive) {
  SCOPED_TRACE(archive.filename().string());
  auto program = require(pt2::readExportedProgram(archive));
  auto recorded = require(readNpz(std::filesystem::path(archive).replace_extension(".npz")));
  const std::vector<Tensor> inputs = arraysNamed(recorded, "in"), expected = arraysNamed(recorded, "out");
  ASSERT_FALSE(expected.empty());
  auto outputs = require(execute(program.graph, inputs));
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(outputs[i], expected[i])) << "output " << i;
}

}  // namespace carina::aten::test
