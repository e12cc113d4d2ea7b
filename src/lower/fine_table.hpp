// SPDX-License-Identifier: Apache-2.0
// Functions of 16-bit codes by TABLEs. One TABLE knows every 128th code and interpolates between: it misses
// steps (floor) and poles (1 / x). There further TABLEs over a piece of the codes, magnified, add what is
// missing. Functions that are 0 at 0 often are x times one that bends much less (silu: sigmoid), which takes
// one TABLE and a product.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/tensor.hpp"

namespace carina::lower {

/// A table over the codes near `centre`: it is read at saturate((code - centre) << shift). Its first and last
/// entries are 0, so that it adds nothing to codes further away.
struct TablePiece {
  int64_t centre = 0;
  int shift = 0;
  Tensor table;  // int16 [513]
};

struct FineTable {
  Tensor table;  // int16 [513], read at the code itself
  std::vector<TablePiece> pieces;
};

/// `function` from code to code, both in [-32768, 32767]. Pieces are added, the worst place first, until no
/// result is more than `tolerance` codes off or there are kMostPieces.
inline constexpr size_t kMostPieces = 8;
FineTable fineTable(const std::function<int64_t(int64_t)>& function, int64_t tolerance);

/// A function as code * table(code) * factor.
struct ProductTable {
  Tensor table;  // int16 [513], read at the code itself
  double factor = 1;
};

/// `function` from code to code, not rounded. Nothing when it is not 0 at 0, or some result would be more
/// than `tolerance` codes off.
std::optional<ProductTable> productTable(const std::function<double(int64_t)>& function, int64_t tolerance);

/// The code that a product gives.
int64_t readProductTable(const ProductTable& table, int64_t code);

/// What TABLE and the RESCALE by 2^-7 behind it give for an input code.
int64_t readTable(const Tensor& table, int64_t code);

/// The code that a fine table gives: the sum of all tables, saturated.
int64_t readFineTable(const FineTable& table, int64_t code);

}  // namespace carina::lower
