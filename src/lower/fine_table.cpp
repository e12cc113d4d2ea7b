// SPDX-License-Identifier: Apache-2.0
#include "lower/fine_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace carina::lower {
namespace {

constexpr int64_t kLowest = -32768, kHighest = 32767, kCodes = 65536;
// Codes of a magnified piece: an entry at either end stays 0.
constexpr int64_t kSpan = kCodes - 2 * kTableStep;

/// A table of values; differences of adjacent entries are limited to 16 bits.
template <typename F>
Tensor tableOf(F value) {
  Tensor table = Tensor::uninitialized(DType::Int16, {kTableEntries});
  int64_t before = 0;
  for (int64_t i = 0; i < kTableEntries; ++i) {
    int64_t entry = std::clamp(value(i), kLowest, kHighest);
    if (i > 0) entry = std::clamp<int64_t>(entry, before - kHighest, before + kHighest);
    table.setIntegerAt(i, before = entry);
  }
  return table;
}

/// If a smooth curve bends in the same direction on both sides of an entry, the entry is shifted by half of
/// the interpolation error there: chords of such a curve are all on one side of it.
Tensor centred(const Tensor& table, const std::vector<int64_t>& wanted) {
  std::vector<double> middle(kTableEntries - 1);
  for (int64_t i = 0; i + 1 < kTableEntries; ++i) {
    int64_t least = 0, most = 0;
    for (int64_t at = i * kTableStep; at < (i + 1) * kTableStep; ++at) {
      const int64_t error = wanted[static_cast<size_t>(at)] - readTable(table, kLowest + at);
      least = std::min(least, error);
      most = std::max(most, error);
    }
    middle[static_cast<size_t>(i)] = static_cast<double>(least + most) / 2;
  }
  return tableOf([&](int64_t i) {
    const double before = middle[static_cast<size_t>(std::max<int64_t>(i - 1, 0))];
    const double after = middle[static_cast<size_t>(std::min(i, kTableEntries - 2))];
    const double shift = before * after > 0 ? std::min(std::abs(before), std::abs(after)) : 0;
    return table.integerAt(i) + static_cast<int64_t>(std::nearbyint(std::copysign(shift, before)));
  });
}

int64_t readPiece(const TablePiece& piece, int64_t code) {
  const int64_t magnified = (code - piece.centre) * (int64_t{1} << piece.shift);
  return readTable(piece.table, std::clamp(magnified, kLowest, kHighest));
}

/// Adjacent steps of the first table, as code offsets from kLowest.
struct Stretch {
  int64_t first = 0, last = 0;  // [first, last)
  int64_t energy = 0;           // squared errors
};

/// The stretch with the largest error among those with results that are off by more than the tolerance.
Stretch worstStretch(const std::vector<int64_t>& missing, int64_t tolerance) {
  Stretch worst, current;
  for (int64_t from = 0; from < kCodes; from += kTableStep) {
    int64_t largest = 0, energy = 0;
    for (int64_t i = from; i < from + kTableStep; ++i) {
      const int64_t error = missing[static_cast<size_t>(i)];
      largest = std::max(largest, std::abs(error));
      energy += error * error;
    }
    if (largest <= tolerance) {
      current = {};
      continue;
    }
    if (current.energy == 0) current.first = from;
    current.last = from + kTableStep;
    current.energy += energy;
    if (current.energy > worst.energy) worst = current;
  }
  return worst;
}

/// Reduces a stretch to the part that a table resolves at least twice as finely as the first table does.
void shorten(Stretch& stretch, const std::vector<int64_t>& missing) {
  if ((stretch.last - stretch.first) * 2 <= kSpan) return;
  int64_t at = stretch.first;
  for (int64_t i = stretch.first; i < stretch.last; ++i) {
    if (std::abs(missing[static_cast<size_t>(i)]) > std::abs(missing[static_cast<size_t>(at)])) at = i;
  }
  constexpr int64_t kHalf = kSpan / 4 / kTableStep * kTableStep;
  stretch.first = std::max(stretch.first, at / kTableStep * kTableStep - kHalf);
  stretch.last = std::min(stretch.last, stretch.first + 2 * kHalf);
}

TablePiece pieceFor(const Stretch& stretch, const std::vector<int64_t>& missing) {
  TablePiece piece;
  piece.centre = kLowest + (stretch.first + stretch.last) / 2;
  while (((stretch.last - stretch.first) << (piece.shift + 1)) <= kSpan) ++piece.shift;
  const int64_t unit = int64_t{1} << piece.shift;
  piece.table = tableOf([&](int64_t entry) {
    // The code of this entry, rounded down if entries are closer together than codes.
    const int64_t magnified = kLowest + entry * kTableStep;
    const int64_t offset =
        piece.centre - kLowest + (magnified >= 0 ? magnified / unit : -((-magnified + unit - 1) / unit));
    const bool inside = offset >= stretch.first && offset < stretch.last;
    return inside ? missing[static_cast<size_t>(offset)] : int64_t{0};
  });
  return piece;
}

}  // namespace

int64_t readTable(const Tensor& table, int64_t code) {
  const int64_t position = code - kLowest, index = position / kTableStep, fraction = position % kTableStep;
  const int64_t base = table.integerAt(index), next = table.integerAt(index + 1);
  const int64_t fine = base * kTableStep + (next - base) * fraction;
  return (fine + kTableStep / 2) >> 7;
}

int64_t readFineTable(const FineTable& table, int64_t code) {
  int64_t sum = readTable(table.table, code);
  for (const TablePiece& piece : table.pieces) sum += readPiece(piece, code);
  return std::clamp(sum, kLowest, kHighest);
}

int64_t readProductTable(const ProductTable& table, int64_t code) {
  const auto product = static_cast<double>(code * readTable(table.table, code));
  return std::clamp(static_cast<int64_t>(std::floor(product * table.factor + 0.5)), kLowest, kHighest);
}

std::optional<ProductTable> productTable(const std::function<double(int64_t)>& function, int64_t tolerance) {
  if (!(std::abs(function(0)) < 0.5)) return std::nullopt;
  const auto slope = [&](int64_t code) { return function(code) / static_cast<double>(code); };
  std::vector<double> slopes(kTableEntries);
  double largest = 0;
  for (size_t i = 0; i < slopes.size(); ++i) {
    const int64_t code = kLowest + static_cast<int64_t>(i) * kTableStep;
    slopes[i] = code == 0 ? (slope(1) + slope(-1)) / 2 : slope(code);
    largest = std::max(largest, std::abs(slopes[i]));
  }
  if (!(largest > 0) || !std::isfinite(largest)) return std::nullopt;
  ProductTable result;
  result.factor = largest / static_cast<double>(kHighest);
  result.table = tableOf([&](int64_t i) {
    return static_cast<int64_t>(std::nearbyint(slopes[static_cast<size_t>(i)] / result.factor));
  });
  const auto limit = static_cast<double>(kHighest);
  for (int64_t code = kLowest; code <= kHighest; ++code) {
    const double wanted = std::nearbyint(std::clamp(function(code), -limit, limit));
    const double error = wanted - static_cast<double>(readProductTable(result, code));
    if (!(std::abs(error) <= static_cast<double>(tolerance))) return std::nullopt;
  }
  return result;
}

FineTable fineTable(const std::function<int64_t(int64_t)>& function, int64_t tolerance) {
  FineTable result;
  std::vector<int64_t> wanted(kCodes + 1);  // the last entry is that of code 32768
  for (int64_t i = 0; i <= kCodes; ++i) wanted[static_cast<size_t>(i)] = function(kLowest + i);
  result.table =
      centred(tableOf([&](int64_t i) { return wanted[static_cast<size_t>(kTableStep * i)]; }), wanted);
  std::vector<int64_t> missing(kCodes);
  for (int64_t i = 0; i < kCodes; ++i) {
    const auto at = static_cast<size_t>(i);
    missing[at] = wanted[at] - readTable(result.table, kLowest + i);
  }
  while (result.pieces.size() < kMaxPieces) {
    Stretch stretch = worstStretch(missing, tolerance);
    if (stretch.energy == 0) break;
    shorten(stretch, missing);
    TablePiece piece = pieceFor(stretch, missing);
    int64_t gained = 0;
    std::vector<int64_t> after = missing;
    // Interpolation towards the first entry extends one step beyond the stretch.
    for (int64_t i = std::max<int64_t>(stretch.first - kTableStep, 0); i < stretch.last; ++i) {
      const auto at = static_cast<size_t>(i);
      after[at] -= readPiece(piece, kLowest + i);
      gained += missing[at] * missing[at] - after[at] * after[at];
    }
    if (gained <= 0) break;
    missing = std::move(after);
    result.pieces.push_back(std::move(piece));
  }
  return result;
}

}  // namespace carina::lower
