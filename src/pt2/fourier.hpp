// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of real numbers, or of real and imaginary parts, as products with constant
// matrices of cosines and sines, and short-time transforms as convolutions.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "base/budget.hpp"
#include "pt2/complex_numbers.hpp"

namespace carina::pt2 {

/// A transform of one or more dimensions.
struct Spectrum {
  enum class Kind : uint8_t {
    Complex,  // all bins
    Half,     // of a real tensor: the bins up to n / 2 of the last dimension, which determine the others
    Real,     // of such bins: a real tensor
  };
  Kind kind = Kind::Complex;
  bool inverse = false;  // the sign of the exponent: -1 forward, +1 inverse
  ir::Ints dims;         // in [0, rank)
  ir::Ints sizes;        // length of the signal along each of dims: the tensor is cut or padded with zeros
  double scale = 1;
};

/// A transform of windows of a signal.
struct Frames {
  int64_t length = 0, hop = 0;  // samples per frame, and from frame to frame
  int64_t bins = 0;             // length, or length / 2 + 1
  ir::Value* window = nullptr;  // [length]; null: ones
  double scale = 1;
};

/// Creates transforms. A tiny file can ask for huge matrices, so they are limited in proportion to it.
class Fourier {
 public:
  /// `main` is the graph for which equal matrices are created once.
  Fourier(uint64_t fileBytes, const ir::Graph* main);

  /// The result of Kind::Real has no imaginary part. Errors: matrices that are too large.
  Result<Parts> spectrum(const ir::Builder& b, Parts x, const Spectrum& spectrum);
  /// [N, samples] -> [N, bins, frames]; samples after the last whole frame are not read.
  Result<Parts> frames(const ir::Builder& b, ir::Value* signal, const Frames& frames);
  /// [N, bins, frames] -> [N, samples] with the frames added up where they overlap, and divided by the sum of
  /// the squared windows there. Only samples [begin, end) are returned.
  Result<ir::Value*> overlapped(const ir::Builder& b, const Parts& x, const Frames& frames, int64_t begin,
                                int64_t end);

 private:
  enum class Wave : uint8_t { None, Cos, Sin, MinusSin };
  /// Row r and column c have the wave of 2 pi r c / n, for a column in each block of columns.
  struct Matrix {
    int64_t rows = 0, columns = 0, n = 0;
    std::array<Wave, 2> waves{};  // a block of columns each
    bool half = false;            // columns stand for bins and their mirror images
    double scale = 1;
    auto key() const { return std::tuple(rows, columns, n, waves, half, scale); }
    friend bool operator<(const Matrix& a, const Matrix& b) { return a.key() < b.key(); }
  };
  Result<Tensor> tensor(const Matrix& matrix);
  Result<ir::Value*> constant(const ir::Builder& b, const Matrix& matrix, DType dtype);
  /// x with n elements along a dimension.
  static ir::Value* resized(const ir::Builder& b, ir::Value* x, int64_t dim, int64_t n);
  Result<ir::Value*> product(const ir::Builder& b, const Parts& x, int64_t dim, const Matrix& matrix);
  Result<Parts> along(const ir::Builder& b, const Parts& x, int64_t dim, int64_t n, int64_t bins,
                      bool inverse, double scale);

  Budget budget_;
  const ir::Graph* main_;
  std::map<std::pair<Matrix, DType>, ir::Value*> constants_;
};

}  // namespace carina::pt2
