// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace carina::test {

/// The Ethos-N78 targets that tests build for: the smallest, the largest, and two between them that differ in
/// their engines.
inline constexpr const char* kEthosNTargets[] = {"ethos-n78-1tops-4ple", "ethos-n78-4tops-2ple",
                                                 "ethos-n78-4tops-4ple", "ethos-n78-8tops-2ple"};

}  // namespace carina::test
