// SPDX-License-Identifier: Apache-2.0
// The function that computes pointer authentication codes: the block cipher QARMA-64.
//
// R. Avanzi, "The QARMA Block Cipher Family", IACR Transactions on Symmetric Cryptology 2017(1), with five
// rounds and the S-box sigma-2: the variant that Arm's A-profile calls QARMA5.
#pragma once

#include <array>
#include <cstdint>

namespace carina::cpu_m {

/// Encrypts one block with the whitening key `outer` and the core key `inner`.
uint64_t qarma64(uint64_t plain, uint64_t tweak, uint64_t outer, uint64_t inner);

/// A 128-bit key as held in PAC_KEY_P_0 to PAC_KEY_P_3 (or _U_), least significant word first.
using PacKey = std::array<uint32_t, 4>;
/// The authentication code of `value` with `modifier`. The architecture leaves open how it is derived from a
/// block; here the value is the plaintext, the modifier the tweak, and the code the upper half of the
/// ciphertext.
uint32_t authenticationCode(uint32_t value, uint32_t modifier, const PacKey& key);

}  // namespace carina::cpu_m
