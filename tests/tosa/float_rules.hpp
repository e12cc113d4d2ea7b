// SPDX-License-Identifier: Apache-2.0
// How far a float32 result may be from the reference: the accuracy rules of the TOSA specification, per
// operator.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

namespace carina::test {

/// Runs a graph of one operator and compares its results with refN (computed in double precision) by the
/// operator's rule; integer and bool results must be equal.
::testing::AssertionResult withinTolerance(const std::filesystem::path& tosa,
                                           const std::filesystem::path& npz);

}  // namespace carina::test
