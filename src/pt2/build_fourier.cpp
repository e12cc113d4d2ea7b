// SPDX-License-Identifier: Apache-2.0
#include "pt2/build_fourier.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "aten/ops.hpp"
#include "pt2/complex_node.hpp"
#include "pt2/fourier.hpp"
#include "pt2/refusals.hpp"

namespace carina::pt2 {
namespace {

using Tag = Argument::Tag;

struct TransformRow {
  Spectrum::Kind kind;
  bool inverse;
  int dims;  // 0: any number
};

const TransformRow* transformRow(std::string_view base) {
  using Kind = Spectrum::Kind;
  static const std::unordered_map<std::string_view, TransformRow> kRows = {
      {"fft_fft", {Kind::Complex, false, 1}},  {"fft_ifft", {Kind::Complex, true, 1}},
      {"fft_fft2", {Kind::Complex, false, 2}}, {"fft_ifft2", {Kind::Complex, true, 2}},
      {"fft_fftn", {Kind::Complex, false, 0}}, {"fft_ifftn", {Kind::Complex, true, 0}},
      {"fft_rfft", {Kind::Half, false, 1}},    {"fft_irfft", {Kind::Real, true, 1}},
      {"fft_rfft2", {Kind::Half, false, 2}},   {"fft_irfft2", {Kind::Real, true, 2}},
      {"fft_rfftn", {Kind::Half, false, 0}},   {"fft_irfftn", {Kind::Real, true, 0}},
      {"fft_ihfft", {Kind::Half, true, 1}},    {"fft_hfft", {Kind::Real, false, 1}}};
  const auto it = kRows.find(base);
  return it == kRows.end() ? nullptr : &it->second;
}

// Lengths in files beyond this are refused: their matrices would take more than a terabyte.
constexpr int64_t kMostSamples = int64_t{1} << 24;

bool isLength(int64_t n) {
  return n >= 1 && n <= kMostSamples;
}

class FourierBuilder : public ComplexNode {
 public:
  using ComplexNode::ComplexNode;

  Status run() {
    if (node_.outputs.size() != 1 || node_.outputs[0].tag != Tag::Tensor)
      return fail(Code::InvalidGraph, "{} has another result than a tensor", operatorName(node_.target));
    if (transformRow(base_)) return transform();
    if (base_ == "stft") return shortTimeTransform();
    if (base_ == "istft") return inverseShortTimeTransform();
    return base_.ends_with("shift") ? shifted() : loweredTransform();
  }

 private:
  Result<ir::Ints> dimensions(const char* name, int64_t rank) const {
    ir::Ints dims = ints(name);
    for (int64_t& dim : dims) {
      if (dim < 0) dim += rank;
      if (dim < 0 || dim >= rank || std::count(dims.begin(), dims.end(), dim) > 1)
        return fail(Code::InvalidGraph, "{} has invalid dimensions", operatorName(node_.target));
    }
    return dims;
  }

  /// 1 / N ^ p for a transform of N elements.
  static double scaleOf(const ir::Ints& sizes, double power) {
    double count = 1;
    for (const int64_t size : sizes) count *= static_cast<double>(size);
    return std::pow(count, -power);
  }

  Status transformed(const Parts& x, Spectrum spectrum, double power) {
    if (spectrum.dims.empty() || spectrum.sizes.size() != spectrum.dims.size() ||
        !std::all_of(spectrum.sizes.begin(), spectrum.sizes.end(), isLength))
      return fail(Code::InvalidGraph, "{} has invalid sizes", operatorName(node_.target));
    if (x.real->numElements() == 0 || !isFloat(x.real->dtype()))
      return unsupported("a tensor that is empty or has no floats");
    spectrum.scale = scaleOf(spectrum.sizes, power);
    CARINA_TRY(const Parts result, scope_.fourier->spectrum(builder_, x, spectrum));
    return define(result);
  }

  /// torch.fft.*: lengths, dimensions and norm are optional.
  Status transform() {
    const TransformRow& row = *transformRow(base_);
    CARINA_TRY(const Parts x, parts("self"));
    const int64_t rank = x.real->rank();
    const ir::Ints lengths = ints(row.dims == 1 ? "n" : "s");
    Spectrum spectrum{row.kind, row.inverse, {}, {}, 1};
    CARINA_TRY(spectrum.dims, dimensions("dim", rank));
    if (spectrum.dims.empty()) {
      int64_t count = row.dims > 0 ? row.dims : rank;
      if (row.dims == 0 && !lengths.empty()) count = static_cast<int64_t>(lengths.size());
      for (int64_t dim = std::max<int64_t>(rank - count, 0); dim < rank; ++dim) spectrum.dims.push_back(dim);
    }
    if (!lengths.empty() && lengths.size() != spectrum.dims.size())
      return fail(Code::InvalidGraph, "{} has invalid sizes", operatorName(node_.target));
    for (size_t i = 0; i < spectrum.dims.size(); ++i) {
      const bool mirrored = row.kind == Spectrum::Kind::Real && i + 1 == spectrum.dims.size();
      const int64_t size = x.real->dim(spectrum.dims[i]);
      const bool given = !lengths.empty() && lengths[i] != -1;
      spectrum.sizes.push_back(given ? lengths[i] : (mirrored ? 2 * (size - 1) : size));
    }
    const std::string norm = text("norm", "backward");
    const double power = norm == "ortho" ? 0.5 : (norm == "forward") != row.inverse ? 1 : 0;
    return transformed(x, std::move(spectrum), power);
  }

  /// What run_decompositions() leaves: every dimension is given, and a number for the norm.
  Status loweredTransform() {
    CARINA_TRY(const Parts x, parts("self"));
    const bool real = base_ == "_fft_r2c", toReal = base_ == "_fft_c2r";
    const bool half = real && integer("onesided", 1) != 0;
    Spectrum spectrum;
    spectrum.kind = toReal ? Spectrum::Kind::Real : half ? Spectrum::Kind::Half : Spectrum::Kind::Complex;
    spectrum.inverse = toReal || (base_ == "_fft_c2c" && integer("forward", 1) == 0);
    CARINA_TRY(spectrum.dims, dimensions("dim", x.real->rank()));
    for (const int64_t dim : spectrum.dims) spectrum.sizes.push_back(x.real->dim(dim));
    if (toReal && !spectrum.sizes.empty()) spectrum.sizes.back() = integer("last_dim_size", 0);
    const int64_t norm = integer("normalization", 0);  // none, by the root of N, by N
    return transformed(x, std::move(spectrum), static_cast<double>(norm) / 2);
  }

  Status shifted() {
    CARINA_TRY(const Parts x, parts("self"));
    CARINA_TRY(ir::Ints dims, dimensions("dim", x.real->rank()));
    if (dims.empty()) {
      dims.resize(static_cast<size_t>(x.real->rank()));
      std::iota(dims.begin(), dims.end(), int64_t{0});
    }
    ir::Ints shifts;
    for (const int64_t dim : dims)
      shifts.push_back((x.real->dim(dim) + (base_ == "fft_ifftshift" ? 1 : 0)) / 2);
    const auto rolled = [&](ir::Value* v) {
      return v ? aten::Roll::create(builder_, v, shifts, dims).output() : nullptr;
    };
    return define(rolled(x.real), rolled(x.imag));
  }

  // Short-time Fourier transforms
  // ---------------------------------------------------------------------------------------------------

  /// Frame length, hop and window; the bins and the scale are left to the caller.
  Result<Frames> frameArguments(DType dtype) {
    Frames frames;
    frames.length = integer("n_fft", 0);
    frames.hop = integer("hop_length", frames.length / 4);
    const int64_t length = integer("win_length", frames.length);
    if (!isLength(frames.length) || !isLength(frames.hop) || length < 1 || length > frames.length)
      return fail(Code::InvalidGraph, "{} has invalid lengths", operatorName(node_.target));
    if (find("window")) {
      CARINA_TRY(const Parts window, parts("window"));
      if (window.imag || window.real->type != ir::Type{dtype, {length}})
        return unsupported("a window of another type or length");
      frames.window = window.real;
    } else if (length < frames.length) {
      frames.window = builder_.constant(
          convert(Tensor::from({length}, std::vector<float>(static_cast<size_t>(length), 1)), dtype));
    }
    if (const int64_t missing = frames.length - length; missing > 0)
      frames.window =
          aten::ConstantPadNd::create(builder_, frames.window, ir::Ints{missing / 2, missing - missing / 2});
    return frames;
  }

  Status shortTimeTransform() {
    CARINA_TRY(const Parts self, parts("self"));
    ir::Value* signal = self.real;
    if (self.imag || !isFloat(signal->dtype())) return unsupported("a complex signal");
    if (signal->rank() != 1 && signal->rank() != 2)
      return fail(Code::InvalidGraph, "{} has a signal of rank {}", operatorName(node_.target),
                  signal->rank());
    CARINA_TRY(Frames frames, frameArguments(signal->dtype()));
    const bool batch = signal->rank() == 2;
    if (!batch) signal = firstOf(signal, true);
    if (node_.target.ends_with(".center") && integer("center", 1) != 0) {
      const int64_t pad = frames.length / 2;
      signal = aten::Pad::create(builder_, signal, ir::Ints{pad, pad}, text("pad_mode", "reflect"));
    }
    if (signal->dim(1) < frames.length)
      return fail(Code::InvalidGraph, "{} has a signal that is shorter than a frame",
                  operatorName(node_.target));
    frames.bins = integer("onesided", 1) != 0 ? frames.length / 2 + 1 : frames.length;
    frames.scale = scaleOf({frames.length}, integer("normalized", 0) != 0 ? 0.5 : 0);
    CARINA_TRY(Parts result, scope_.fourier->frames(builder_, signal, frames));
    if (!batch) result = {firstOf(result.real, false), firstOf(result.imag, false)};
    if (!isComplex(scope_.document, resultName())) return define(joinParts(builder_, result), nullptr);
    return define(result);
  }

  Status inverseShortTimeTransform() {
    CARINA_TRY(Parts self, parts("self"));
    if (self.real->rank() != 2 && self.real->rank() != 3)
      return fail(Code::InvalidGraph, "{} has a spectrum of rank {}", operatorName(node_.target),
                  self.real->rank());
    if (isComplex(scope_.document, resultName())) return unsupported("a complex result");
    const bool batch = self.real->rank() == 3;
    if (!batch) self = {firstOf(self.real, true), firstOf(self.imag, true)};
    CARINA_TRY(Frames frames, frameArguments(self.real->dtype()));
    frames.bins = self.real->dim(1);
    if (frames.bins != frames.length && frames.bins != frames.length / 2 + 1)
      return fail(Code::InvalidGraph, "{} has {} bins for frames of {} samples", operatorName(node_.target),
                  frames.bins, frames.length);
    frames.scale = scaleOf({frames.length}, integer("normalized", 0) != 0 ? 0.5 : 1);
    const int64_t all = (self.real->dim(2) - 1) * frames.hop + frames.length;
    const bool center = integer("center", 1) != 0;
    const int64_t begin = center ? frames.length / 2 : 0;
    const int64_t wanted = integer("length", center ? all - 2 * begin : all);
    const int64_t end = std::min(all, begin + std::min(wanted, all));
    if (begin >= end) return fail(Code::InvalidGraph, "{} has no samples", operatorName(node_.target));
    CARINA_TRY(ir::Value * signal, scope_.fourier->overlapped(builder_, self, frames, begin, end));
    if (const int64_t silent = wanted - (end - begin); silent > 0)
      signal = aten::ConstantPadNd::create(builder_, signal, ir::Ints{0, silent});
    return define(batch ? signal : firstOf(signal, false), nullptr);
  }

  /// Adds or removes a first dimension of one element.
  ir::Value* firstOf(ir::Value* x, bool add) {
    if (!x) return nullptr;
    if (add) return aten::Unsqueeze::create(builder_, x, int64_t{0});
    return aten::SelectInt::create(builder_, x, int64_t{0}, int64_t{0});
  }
};

}  // namespace

bool isFourier(const NodeDocument& node) {
  const std::string_view base = baseOf(node.target);
  return base.starts_with("fft_") || base.starts_with("_fft_") || base == "stft" || base == "istft";
}

bool knownFourier(const NodeDocument& node) {
  const std::string_view base = baseOf(node.target);
  return transformRow(base) || base == "stft" || base == "istft" || base == "_fft_c2c" ||
         base == "_fft_c2r" || base == "_fft_r2c" || base == "fft_fftshift" || base == "fft_ifftshift";
}

Status buildFourierNode(const NodeDocument& node, Scope& scope) {
  FourierBuilder builder(node, scope);
  CARINA_RETURN_IF_ERROR(builder.checkArguments());
  return builder.run();
}

}  // namespace carina::pt2
