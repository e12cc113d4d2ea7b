// SPDX-License-Identifier: Apache-2.0
// Windows of signals, as constants: hann, hamming, blackman, bartlett, kaiser.
#include <cmath>
#include <numbers>

#include "decompose/composite.hpp"

namespace carina::decompose::composite {
namespace {

constexpr int64_t kMaxSamples = int64_t{1} << 24;

/// A sum of cosines: a - b cos(turn) + c cos(2 turn).
struct Cosines {
  double a = 0, b = 0, c = 0;
};

double bartlett(double turn) {
  return 1 - std::abs(turn / std::numbers::pi - 1);
}
double kaiser(double turn, double beta) {
  const double off = turn / std::numbers::pi - 1;
  return std::cyl_bessel_i(0, beta * std::sqrt(std::max(0.0, 1 - off * off))) / std::cyl_bessel_i(0, beta);
}

/// The window as a function of the angle, from 0 to a whole turn at the last sample of a symmetric window, or
/// after the last sample of a periodic one.
template <typename Function>
Result<Results> window(Composite& c, Function function) {
  const int64_t length = c.arguments().integer("window_length");
  const ir::Type type = c.node().result()->type;
  if (length < 0 || length > kMaxSamples || type.shape != Shape{length} || !isFloat(type.dtype))
    return none();
  const auto steps = static_cast<double>(c.arguments().boolean("periodic", true) ? length : length - 1);
  std::vector<double> samples(static_cast<size_t>(length), 1);
  for (int64_t i = 0; length > 1 && i < length; ++i)
    samples[static_cast<size_t>(i)] = function(2 * std::numbers::pi * static_cast<double>(i) / steps);
  return Results{c.b().constant(convert(Tensor::from({length}, samples), type.dtype))};
}

Result<Results> cosines(Composite& c, const Cosines& sum) {
  return window(c, [&](double turn) { return sum.a - sum.b * std::cos(turn) + sum.c * std::cos(2 * turn); });
}

Result<Results> hannWindow(Composite& c) {
  return cosines(c, {0.5, 0.5, 0});
}
Result<Results> hammingWindow(Composite& c) {
  return cosines(c, {c.arguments().real("alpha", 0.54), c.arguments().real("beta", 0.46), 0});
}
Result<Results> blackmanWindow(Composite& c) {
  return cosines(c, {0.42, 0.5, 0.08});
}
Result<Results> bartlettWindow(Composite& c) {
  return window(c, bartlett);
}
Result<Results> kaiserWindow(Composite& c) {
  const double beta = c.arguments().real("beta", 12);
  return window(c, [&](double turn) { return kaiser(turn, beta); });
}

}  // namespace

const std::map<std::string_view, Composition>& signalWindows() {
  static const std::map<std::string_view, Composition> table = {
      {"aten.bartlett_window.default", bartlettWindow},
      {"aten.bartlett_window.periodic", bartlettWindow},
      {"aten.blackman_window.default", blackmanWindow},
      {"aten.blackman_window.periodic", blackmanWindow},
      {"aten.hamming_window.default", hammingWindow},
      {"aten.hamming_window.periodic", hammingWindow},
      {"aten.hamming_window.periodic_alpha", hammingWindow},
      {"aten.hamming_window.periodic_alpha_beta", hammingWindow},
      {"aten.hann_window.default", hannWindow},
      {"aten.hann_window.periodic", hannWindow},
      {"aten.kaiser_window.beta", kaiserWindow},
      {"aten.kaiser_window.default", kaiserWindow},
      {"aten.kaiser_window.periodic", kaiserWindow},
  };
  return table;
}

}  // namespace carina::decompose::composite
