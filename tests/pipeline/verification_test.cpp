// SPDX-License-Identifier: Apache-2.0
// What carina verify says in the end.
#include "report/verification.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carina::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(VerificationText, PartsWithoutLayersOfTheirOwnAreOnTheNpu) {
  pipeline::Verification verification;
  verification.samples = 2;
  verification.delegates = 1;
  verification.cycles = 1234;
  const std::string text = verificationText(verification, false);
  EXPECT_THAT(text, HasSubstr("partly on the CPU\n"));
  EXPECT_THAT(text,
              HasSubstr("NPU and TOSA agree bit for bit: results equal over 2 samples; 1,234 NPU cycles"));
  verification.delegateMismatches = 1;
  EXPECT_THAT(verificationText(verification, false), HasSubstr("NPU and TOSA DIFFER"));
}

TEST(VerificationText, WhatTheCheckerFindsIsListed) {
  pipeline::Verification verification;
  verification.samples = verification.delegates = 1;
  EXPECT_THAT(verificationText(verification, false), Not(HasSubstr("checker")));
  EXPECT_TRUE(verification.ok());
  verification.findings = {"NPU call 0, offset 0x270: hazard: BLOCKDEP 7"};
  EXPECT_THAT(verificationText(verification, false),
              HasSubstr("  NPU call 0, offset 0x270: hazard: BLOCKDEP 7\n"));
  EXPECT_FALSE(verification.ok());
}

}  // namespace
}  // namespace carina::report
