// SPDX-License-Identifier: Apache-2.0
// The function behind pointer authentication codes: the block cipher QARMA-64.
//
// R. Avanzi, "The QARMA Block Cipher Family", IACR Transactions on Symmetric Cryptology 2017(1), with five
// rounds and the S-box sigma-2: the variant that Arm's A-profile calls QARMA5.
#pragma once

#include <array>
#include <cstdint>

namespace carina::cpu_m {

/// One block under the whitening key `outer` and the core key `inner`.
uint64_t qarma64(uint64_t plain, uint64_t tweak, uint64_t outer, uint64_t inner);

/// A key of 128 bits as PAC_KEY_P_0 to PAC_KEY_P_3 (or _U_) hold it, the lowest word first.
using PacKey = std::array<uint32_t, 4>;
/// The code of `value` with `modifier`: which bits of a block they are, the architecture leaves open. Here
/// the value is the plain text, the modifier the tweak, and the code the upper half of the result.
uint32_t authenticationCode(uint32_t value, uint32_t modifier, const PacKey& key);

}  // namespace carina::cpu_m
