// SPDX-License-Identifier: Apache-2.0
// Functions of 16-bit codes as TABLEs. A TABLE holds every 128th code and interpolates in between, which is
// inaccurate at steps (floor) and poles (1 / x). There, further TABLEs, each over a magnified piece of the
// codes, add the difference. Functions that are 0 at 0 are often x times a much smoother function (silu:
// sigmoid), which takes one TABLE and a product.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/tensor.hpp"

namespace carina::lower {

/// Entries of a TABLE of 16-bit codes, and codes between two of them.
inline constexpr int64_t kTableEntries = 513, kTableStep = 128;

/// Interpolation errors beyond this (in codes, of 65536) call for more than one table.
inline constexpr int64_t kTableTolerance = 16;

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

/// `function` maps codes to codes, both in [-32768, 32767]. Pieces are added, starting with the largest
/// errors, until no result is more than `tolerance` codes off or there are kMaxPieces.
inline constexpr size_t kMaxPieces = 8;
FineTable fineTable(const std::function<int64_t(int64_t)>& function, int64_t tolerance);

/// A function as code * table(code) * factor.
struct ProductTable {
  Tensor table;  // int16 [513], read at the code itself
  double factor = 1;
};

/// `function` maps codes to unrounded codes. Returns nothing if it is not 0 at 0, or if a result would be
/// more than `tolerance` codes off.
std::optional<ProductTable> productTable(const std::function<double(int64_t)>& function, int64_t tolerance);

/// The result of a product table for a code.
int64_t readProductTable(const ProductTable& table, int64_t code);

/// The result of TABLE followed by RESCALE by 2^-7 for an input code.
int64_t readTable(const Tensor& table, int64_t code);

/// The result of a fine table for a code: the sum of all tables, saturated.
int64_t readFineTable(const FineTable& table, int64_t code);

}  // namespace carina::lower
