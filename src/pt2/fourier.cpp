// SPDX-License-Identifier: Apache-2.0
#include "pt2/fourier.hpp"

#include <cmath>
#include <numbers>
#include <numeric>

#include "aten/ops.hpp"

namespace carina::pt2 {
namespace {

/// Bytes of matrices that any file may ask for: a transform of 4,096 real numbers has two of 2,049 rows.
constexpr uint64_t kFreeBytes = uint64_t{128} << 20;

/// cos(2 pi turns / n), exact in all quarters of a turn.
double cosine(int64_t turns, int64_t n) {
  if (4 * turns == n || 4 * turns == 3 * n) return 0;
  return std::cos(2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(n));
}
double sine(int64_t turns, int64_t n) {
  if (turns == 0 || 2 * turns == n) return 0;
  return std::sin(2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(n));
}

ir::Value* reshaped(const ir::Builder& b, ir::Value* x, Shape shape) {
  return aten::Reshape::create(b, x, std::move(shape));
}

/// Rows of `length` weights as the weights of a convolution along the signal, of which `step` adjacent
/// samples are the channels: [rows, length] -> [rows, step, length / step].
ir::Value* kernels(const ir::Builder& b, ir::Value* rows, int64_t step) {
  const int64_t length = rows->dim(1);
  ir::Value* split = reshaped(b, rows, {rows->dim(0), length / step, step});
  return aten::Permute::create(b, split, ir::Ints{0, 2, 1});
}

ir::Value* windowed(const ir::Builder& b, ir::Value* rows, const Frames& frames) {
  return frames.window ? aten::MulTensor::create(b, rows, frames.window) : rows;
}

/// Adds up overlapping frames: x [N, channels, frames] by weights [channels, length] -> [N, samples].
ir::Value* addedUp(const ir::Builder& b, ir::Value* x, ir::Value* rows, const Frames& frames) {
  const int64_t step = std::gcd(frames.length, frames.hop);
  ir::Value* sum =
      aten::ConvTranspose1d::create(b, x, kernels(b, rows, step), nullptr, ir::Ints{frames.hop / step});
  return reshaped(b, aten::TransposeInt::create(b, sum, int64_t{1}, int64_t{2}),
                  {x->dim(0), sum->dim(2) * step});
}

}  // namespace

Fourier::Fourier(uint64_t fileBytes, const ir::Graph* main)
    : budget_(Budget::ofFile(fileBytes, kFreeBytes, 16)), main_(main) {}

Result<Tensor> Fourier::tensor(const Matrix& m) {
  const int64_t blocks = m.waves[1] == Wave::None ? 1 : 2;
  const auto count = checkedMul(m.rows * blocks, m.columns);
  if (!count || !budget_.take(static_cast<uint64_t>(*count) * sizeof(float))) {
    return fail(Code::Excessive,
                "a Fourier transform of {} elements would be a product with a matrix of {} x {}, which takes "
                "too much memory",
                m.n, m.rows, m.columns * blocks)
        .withRemedy(
            "Transform shorter pieces of the signal (torch.stft), or compute the transform outside "
            "of the model.");
  }
  Tensor matrix = Tensor::uninitialized(DType::Float32, {m.rows, m.columns * blocks});
  float* to = matrix.mutableAs<float>().data();
  for (int64_t r = 0; r < m.rows; ++r) {
    for (int64_t block = 0; block < blocks; ++block) {
      const Wave wave = m.waves[static_cast<size_t>(block)];
      for (int64_t c = 0, turns = 0; c < m.columns; ++c, turns = (turns + r) % m.n) {
        const double value = wave == Wave::Cos ? cosine(turns, m.n) : sine(turns, m.n);
        const bool alone = !m.half || c == 0 || 2 * c == m.n;
        const double factor = (wave == Wave::MinusSin ? -m.scale : m.scale) * (alone ? 1 : 2);
        *to++ = value == 0 ? 0.0F : static_cast<float>(value * factor);  // not -0: the sign decides an angle
      }
    }
  }
  return matrix;
}

Result<ir::Value*> Fourier::constant(const ir::Builder& b, const Matrix& matrix, DType dtype) {
  const bool shared = &b.graph() == main_;
  const std::pair key{matrix, dtype};
  if (const auto it = constants_.find(key); shared && it != constants_.end()) return it->second;
  CARINA_TRY(Tensor values, tensor(matrix));
  ir::Value* value = b.constant(dtype == DType::Float32 ? std::move(values) : convert(values, dtype));
  if (shared) constants_.emplace(key, value);
  return value;
}

ir::Value* Fourier::resized(const ir::Builder& b, ir::Value* x, int64_t dim, int64_t n) {
  const int64_t size = x->dim(dim);
  if (size > n) return aten::SliceTensor::create(b, x, dim, int64_t{0}, n);
  if (size == n) return x;
  ir::Ints pads(static_cast<size_t>(2 * (x->rank() - dim)), 0);
  pads.back() = n - size;
  return aten::ConstantPadNd::create(b, x, pads);
}

/// The matrix has as many columns as x has elements along the dimension, for each part.
Result<ir::Value*> Fourier::product(const ir::Builder& b, const Parts& x, int64_t dim, const Matrix& matrix) {
  const int64_t last = x.real->rank() - 1;
  ir::Value* both = x.real;
  const auto toLast = [&](ir::Value* v) {
    return dim == last ? v : aten::TransposeInt::create(b, v, dim, last);
  };
  both = toLast(x.real);
  if (x.imag) both = aten::Cat::create(b, {both, toLast(x.imag)}, last);
  CARINA_TRY(ir::Value* const weights, constant(b, matrix, x.real->dtype()));
  return toLast(aten::Linear::create(b, both, weights, nullptr));
}

/// (re + i im) (cos + i sin) summed over the elements. A shorter signal than n leaves out columns.
Result<Parts> Fourier::along(const ir::Builder& b, const Parts& x, int64_t dim, int64_t n, int64_t bins,
                             bool inverse, double scale) {
  const Parts cut{x.real->dim(dim) > n ? resized(b, x.real, dim, n) : x.real,
                  x.imag && x.imag->dim(dim) > n ? resized(b, x.imag, dim, n) : x.imag};
  const Wave plus = inverse ? Wave::Sin : Wave::MinusSin, minus = inverse ? Wave::MinusSin : Wave::Sin;
  Matrix real{bins, cut.real->dim(dim), n, {Wave::Cos, x.imag ? minus : Wave::None}, false, scale};
  Matrix imag{bins, cut.real->dim(dim), n, {plus, x.imag ? Wave::Cos : Wave::None}, false, scale};
  Parts result;
  CARINA_TRY(result.real, product(b, cut, dim, real));
  CARINA_TRY(result.imag, product(b, cut, dim, imag));
  return result;
}

Result<Parts> Fourier::spectrum(const ir::Builder& b, Parts x, const Spectrum& spectrum) {
  double scale = spectrum.scale;  // of the first transform
  const auto transform = [&](size_t i, bool half) -> Status {
    const int64_t n = spectrum.sizes[i];
    CARINA_TRY(x, along(b, x, spectrum.dims[i], n, half ? n / 2 + 1 : n, spectrum.inverse, scale));
    scale = 1;
    return {};
  };
  const size_t last = spectrum.dims.size() - 1;
  if (spectrum.kind == Spectrum::Kind::Half) CARINA_RETURN_IF_ERROR(transform(last, true));
  if (spectrum.kind == Spectrum::Kind::Complex) CARINA_RETURN_IF_ERROR(transform(last, false));
  for (size_t i = last; i-- > 0;) CARINA_RETURN_IF_ERROR(transform(i, false));
  if (spectrum.kind != Spectrum::Kind::Real) return x;
  const int64_t dim = spectrum.dims[last], n = spectrum.sizes[last], bins = n / 2 + 1;
  const Parts half{resized(b, x.real, dim, bins), x.imag ? resized(b, x.imag, dim, bins) : nullptr};
  const Wave sin = spectrum.inverse ? Wave::MinusSin : Wave::Sin;
  CARINA_TRY(ir::Value* const real,
             product(b, half, dim, {n, bins, n, {Wave::Cos, x.imag ? sin : Wave::None}, true, scale}));
  return Parts{real, nullptr};
}

Result<Parts> Fourier::frames(const ir::Builder& b, ir::Value* signal, const Frames& frames) {
  const int64_t count = 1 + (signal->dim(1) - frames.length) / frames.hop;
  const int64_t step = std::gcd(frames.length, frames.hop);
  const int64_t samples = (count - 1) * frames.hop + frames.length;
  ir::Value* x = reshaped(b, resized(b, signal, 1, samples), {signal->dim(0), samples / step, step});
  x = aten::TransposeInt::create(b, x, int64_t{1}, int64_t{2});
  const auto part = [&](Wave wave) -> Result<ir::Value*> {
    const Matrix matrix{frames.bins, frames.length, frames.length, {wave, Wave::None}, false, frames.scale};
    CARINA_TRY(ir::Value* const rows, constant(b, matrix, signal->dtype()));
    return aten::Conv1d::create(b, x, kernels(b, windowed(b, rows, frames), step), nullptr,
                                ir::Ints{frames.hop / step});
  };
  Parts result;
  CARINA_TRY(result.real, part(Wave::Cos));
  CARINA_TRY(result.imag, part(Wave::MinusSin));
  return result;
}

Result<ir::Value*> Fourier::overlapped(const ir::Builder& b, const Parts& x, const Frames& frames,
                                       int64_t begin, int64_t end) {
  const bool half = frames.bins != frames.length;
  const Matrix matrix{frames.length, frames.bins,
                      frames.length, {Wave::Cos, x.imag ? Wave::MinusSin : Wave::None},
                      half,          frames.scale};
  CARINA_TRY(ir::Value* const columns, constant(b, matrix, x.real->dtype()));
  ir::Value* rows = windowed(b, aten::TransposeInt::create(b, columns, int64_t{0}, int64_t{1}), frames);
  ir::Value* bins = x.imag ? aten::Cat::create(b, {x.real, x.imag}, int64_t{1}) : x.real;
  const auto used = [&](ir::Value* v) { return aten::SliceTensor::create(b, v, int64_t{1}, begin, end); };
  ir::Value* sum = used(addedUp(b, bins, rows, frames));

  const DType dtype = x.real->dtype();
  if (!budget_.take(static_cast<uint64_t>(frames.length + x.real->dim(2)) * sizeof(double))) {
    return fail(Code::Excessive, "{} frames take too much memory", x.real->dim(2))
        .withRemedy("Invert a shorter spectrum, or compute the signal outside of the model.");
  }
  const auto ones = [&](const Shape& shape) {
    const std::vector<float> values(static_cast<size_t>(numElements(shape)), 1);
    return b.constant(convert(Tensor::from(shape, values), dtype));
  };
  ir::Value* squares = ones({1, frames.length});
  squares = windowed(b, windowed(b, squares, frames), frames);
  return aten::DivTensor::create(b, sum, used(addedUp(b, ones({1, 1, x.real->dim(2)}), squares, frames)));
}

}  // namespace carina::pt2
