// SPDX-License-Identifier: Apache-2.0
#include "aten/geometry.hpp"

#include <algorithm>
#include <cmath>

#include "aten/arguments.hpp"
#include "aten/ops.hpp"

namespace carina::aten {
namespace {

Status requireAtLeast(int64_t low, const ir::Ints& values, std::string_view name) {
  for (int64_t value : values) {
    if (value < low || value > INT32_MAX)
      return fail(Code::TooLarge, "{} must be between {} and 2^31-1, not {}", name, low, value);
  }
  return {};
}

/// dilation * (kernel - 1) + 1, or nothing on overflow.
std::optional<int64_t> extent(int64_t kernel, int64_t dilation) {
  const auto span = checkedMul(dilation, kernel - 1);
  return span ? checkedAdd(*span, 1) : std::nullopt;
}

bool isTransposed(const ir::Node& node) {
  if (auto convolution = ir::dynCast<Convolution>(&node)) return convolution.transposed();
  return ir::isa<ConvTranspose1d>(&node) || ir::isa<ConvTranspose2dInput>(&node) ||
         ir::isa<ConvTranspose3dInput>(&node);
}

/// Explicit padding, or the padding that "same" / "valid" stands for: if the total is odd, the extra element
/// is at the end.
Status convPadding(const Arguments& arguments, ConvGeometry& geometry) {
  const size_t n = geometry.spatial;
  const std::string text = arguments.text("padding");
  if (text == "valid") {
    geometry.padBefore = geometry.padAfter = ir::Ints(n, 0);
  } else if (text == "same") {
    for (size_t i = 0; i < n; ++i) {
      if (geometry.stride[i] != 1) return fail(Code::InvalidOperator, "padding='same' needs stride 1");
      const int64_t total = geometry.dilation[i] * (geometry.kernel[i] - 1);
      geometry.padBefore.push_back(total / 2);
      geometry.padAfter.push_back(total - total / 2);
    }
  } else if (!text.empty()) {
    return fail(Code::UnsupportedForm, "padding '{}' is not known", text);
  } else {
    CARINA_TRY(geometry.padBefore, arguments.ints("padding", n));
    CARINA_RETURN_IF_ERROR(requireAtLeast(0, geometry.padBefore, "padding"));
    geometry.padAfter = geometry.padBefore;
  }
  return {};
}

}  // namespace

Result<ConvGeometry> convGeometry(const ir::Node& node) {
  const Shape& input = node.operand(0)->shape();
  const Shape& weight = node.operand(1)->shape();
  const Arguments arguments(node);
  ConvGeometry g;
  if (weight.size() < 3 || weight.size() > 5)
    return fail(Code::InvalidOperator, "the weight has rank {}, expected 3 to 5", weight.size());
  g.spatial = weight.size() - 2;
  const size_t n = g.spatial;
  if (input.size() != n + 2 && input.size() != n + 1) {
    return fail(Code::InvalidOperator, "input {} does not match weight {}", shapeText(input),
                shapeText(weight));
  }
  g.batched = input.size() == n + 2;
  g.transposed = isTransposed(node);
  g.groups = arguments.integer("groups", 1);
  g.kernel.assign(weight.begin() + 2, weight.end());
  CARINA_TRY(g.stride, arguments.ints("stride", n));
  CARINA_TRY(g.dilation, arguments.ints("dilation", n));
  CARINA_RETURN_IF_ERROR(requireAtLeast(1, g.stride, "stride"));
  CARINA_RETURN_IF_ERROR(requireAtLeast(1, g.dilation, "dilation"));
  CARINA_RETURN_IF_ERROR(requireAtLeast(1, g.kernel, "kernel size"));
  CARINA_RETURN_IF_ERROR(convPadding(arguments, g));
  g.outputPadding = ir::Ints(n, 0);
  if (g.transposed) {
    CARINA_TRY(g.outputPadding, arguments.ints("output_padding", n));
    CARINA_RETURN_IF_ERROR(requireAtLeast(0, g.outputPadding, "output_padding"));
    for (size_t d = 0; d < n; ++d) {
      if (g.outputPadding[d] >= std::max(g.stride[d], g.dilation[d]))
        return fail(Code::InvalidOperator, "output_padding {} must be smaller than stride {} or dilation {}",
                    g.outputPadding[d], g.stride[d], g.dilation[d]);
    }
  }
  g.inChannels = input[g.batched ? 1 : 0];
  const int64_t weightIn = g.transposed ? weight[0] : weight[1];
  if (g.groups <= 0 || g.inChannels % g.groups != 0) {
    return fail(Code::InvalidOperator, "{} input channels cannot be divided into {} groups", g.inChannels,
                g.groups);
  }
  if (weightIn != (g.transposed ? g.inChannels : g.inChannels / g.groups)) {
    return fail(Code::InvalidOperator, "weight {} does not match {} input channels in {} groups",
                shapeText(weight), g.inChannels, g.groups);
  }
  g.outChannels = g.transposed ? weight[1] * g.groups : weight[0];
  if (g.outChannels % g.groups != 0) {
    return fail(Code::InvalidOperator, "{} output channels cannot be divided into {} groups", g.outChannels,
                g.groups);
  }
  if (const ir::Value* bias = node.operand(2); bias && bias->shape() != Shape{g.outChannels}) {
    return fail(Code::InvalidOperator,
                "the bias has shape {}, expected one value for each of {} output channels",
                shapeText(bias->shape()), g.outChannels);
  }
  if (g.batched) g.output.push_back(input[0]);
  g.output.push_back(g.outChannels);
  for (size_t i = 0; i < n; ++i) {
    const int64_t size = input[input.size() - n + i];
    const auto window = extent(g.kernel[i], g.dilation[i]);
    if (!window) return fail(Code::TooLarge, "dilation {} overflows", g.dilation[i]);
    if (g.transposed) {
      g.output.push_back((size - 1) * g.stride[i] - g.padBefore[i] - g.padAfter[i] + *window +
                         g.outputPadding[i]);
    } else {
      const int64_t span = size + g.padBefore[i] + g.padAfter[i] - *window;
      if (span < 0)
        return fail(Code::InvalidOperator, "the kernel covers {} elements, but the padded input has {}",
                    *window, span + *window);
      g.output.push_back(span / g.stride[i] + 1);
    }
    if (g.output.back() <= 0) return fail(Code::InvalidOperator, "the output has no elements");
  }
  return g;
}

Result<PoolGeometry> poolGeometry(const ir::Node& node) {
  const Shape& input = node.operand(0)->shape();
  const Arguments arguments(node);
  PoolGeometry g;
  const std::string_view name = node.opName();
  g.spatial = name.find("1d") != std::string_view::npos   ? 1
              : name.find("3d") != std::string_view::npos ? 3
                                                          : 2;
  const size_t n = g.spatial;
  if (input.size() != n + 1 && input.size() != n + 2)
    return fail(Code::InvalidOperator, "the operator does not support an input of shape {}",
                shapeText(input));
  CARINA_TRY(g.kernel, arguments.ints("kernel_size", n));
  g.stride = g.kernel;
  if (!arguments.ints("stride").empty()) {
    CARINA_TRY(g.stride, arguments.ints("stride", n));
  }
  CARINA_TRY(g.padding, arguments.ints("padding", n));
  g.dilation = ir::Ints(n, 1);
  if (arguments.has("dilation")) {
    CARINA_TRY(g.dilation, arguments.ints("dilation", n));
  }
  CARINA_RETURN_IF_ERROR(requireAtLeast(1, g.kernel, "kernel size"));
  CARINA_RETURN_IF_ERROR(requireAtLeast(1, g.stride, "stride"));
  CARINA_RETURN_IF_ERROR(requireAtLeast(1, g.dilation, "dilation"));
  g.ceilMode = arguments.boolean("ceil_mode");
  g.countIncludePad = arguments.boolean("count_include_pad", true);
  if (arguments.given("divisor_override")) g.divisor = arguments.integer("divisor_override");
  if (g.divisor == 0) return fail(Code::InvalidOperator, "divisor_override is 0");
  g.output.assign(input.begin(), input.end() - static_cast<std::ptrdiff_t>(n));
  for (size_t i = 0; i < n; ++i) {
    const int64_t size = input[input.size() - n + i], pad = g.padding[i], stride = g.stride[i];
    if (pad < 0 || pad > g.kernel[i] / 2)
      return fail(Code::InvalidOperator, "padding {} is not between 0 and half of kernel {}", pad,
                  g.kernel[i]);
    const auto window = extent(g.kernel[i], g.dilation[i]);
    if (!window) return fail(Code::TooLarge, "dilation {} overflows", g.dilation[i]);
    const int64_t span = size + 2 * pad - *window + (g.ceilMode ? stride - 1 : 0);
    if (span < 0)
      return fail(Code::InvalidOperator, "the window covers {} elements, but the padded input has {}",
                  *window, size + 2 * pad);
    int64_t output = span / stride + 1;
    if (g.ceilMode && (output - 1) * stride >= size + pad) --output;
    g.output.push_back(output);
  }
  return g;
}

bool PoolGeometry::hasOneDivisor(const Shape& input) const {
  if (divisor) return true;
  for (size_t i = 0; i < spatial; ++i) {
    // The part of the last window beyond the padding is not counted.
    const int64_t size = input[input.size() - spatial + i], positions = output[output.size() - spatial + i];
    const int64_t end = (positions - 1) * stride[i] + kernel[i] - padding[i] - size;
    if (end > padding[i] || (padding[i] > 0 && !countIncludePad)) return false;
  }
  return true;
}

Result<ResizeGeometry> resizeGeometry(const ir::Node& node) {
  const Shape& input = node.operand(0)->shape();
  const Arguments arguments(node);
  ResizeGeometry g;
  const std::string_view name = node.opName();
  g.spatial = name.find("1d") != std::string_view::npos   ? 1
              : name.find("3d") != std::string_view::npos ? 3
                                                          : 2;
  // 2-D upsample_nearest (but not nearest_exact) copies or doubles rows regardless of the factor that led to
  // these sizes.
  const bool wholeRows = g.spatial == 2 && name.find("upsample_nearest") != std::string_view::npos &&
                         name.find("exact") == std::string_view::npos;
  const size_t n = g.spatial;
  if (input.size() != n + 2)
    return fail(Code::InvalidOperator, "the operator does not support an input of shape {}",
                shapeText(input));
  g.alignCorners = arguments.boolean("align_corners");
  const ir::Ints sizes = arguments.ints("output_size");
  const ir::Reals factors = arguments.reals("scale_factors");
  if (arguments.given("output_size") == arguments.given("scale_factors") || sizes.empty() == factors.empty())
    return fail(Code::InvalidOperator, "exactly one of output_size and scale_factors must be given");
  if ((sizes.empty() ? factors.size() : sizes.size()) != n)
    return fail(Code::InvalidOperator, "expected {} sizes", n);
  g.output.assign(input.begin(), input.begin() + 2);
  for (size_t i = 0; i < n; ++i) {
    const int64_t in = input[2 + i];
    const double exact =
        sizes.empty() ? std::floor(static_cast<double>(in) * factors[i]) : static_cast<double>(sizes[i]);
    if (!(exact >= 1) || exact > 1e9)
      return fail(Code::InvalidOperator, "the output would have size {}", exact);
    const auto out = static_cast<int64_t>(exact);
    g.output.push_back(out);
    if (g.alignCorners) {
      g.scale.push_back(out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0.0f);
    } else if (!factors.empty() && !(wholeRows && (out == in || out == 2 * in))) {
      g.scale.push_back(static_cast<float>(1.0 / factors[i]));
    } else {
      g.scale.push_back(static_cast<float>(in) / static_cast<float>(out));
    }
  }
  return g;
}

Result<WindowGeometry> windowGeometry(const ir::Node& node) {
  const Arguments arguments(node);
  WindowGeometry g;
  CARINA_TRY(g.kernel, arguments.ints("kernel_size", 2));
  CARINA_TRY(g.dilation, arguments.ints("dilation", 2));
  CARINA_TRY(g.padding, arguments.ints("padding", 2));
  CARINA_TRY(g.stride, arguments.ints("stride", 2));
  CARINA_RETURN_IF_ERROR(requireAtLeast(1, g.kernel, "kernel size"));
  CARINA_RETURN_IF_ERROR(requireAtLeast(1, g.dilation, "dilation"));
  CARINA_RETURN_IF_ERROR(requireAtLeast(0, g.padding, "padding"));
  CARINA_RETURN_IF_ERROR(requireAtLeast(1, g.stride, "stride"));
  Shape input = node.operand(0)->shape();
  const size_t rank = arguments.has("output_size") ? 3 : 4;
  g.batched = input.size() == rank;
  if (input.size() + 1 == rank) input.insert(input.begin(), 1);
  const auto taps = checkedMul(g.kernel[0], g.kernel[1]);
  if (!taps) return fail(Code::TooLarge, "kernel {} is too large", shapeText(g.kernel));
  if (arguments.has("output_size")) {
    CARINA_TRY(const ir::Ints size, arguments.ints("output_size", 2));
    CARINA_RETURN_IF_ERROR(requireAtLeast(1, size, "output size"));
    if (input.size() != 3 || input[1] % *taps != 0)
      return fail(Code::InvalidOperator, "columns {} do not match the kernel", shapeText(input));
    g.image = {input[0], input[1] / *taps, size[0], size[1]};
  } else {
    if (input.size() != 4)
      return fail(Code::InvalidOperator, "im2col: the image has shape {}, expected 3 or 4 dimensions",
                  shapeText(input));
    g.image = input;
  }
  for (size_t i = 0; i < 2; ++i) {
    const auto window = extent(g.kernel[i], g.dilation[i]);
    const int64_t span = window ? g.image[2 + i] + 2 * g.padding[i] - *window : -1;
    if (span < 0) return fail(Code::InvalidOperator, "the windows do not fit the image");
    g.positions.push_back(span / g.stride[i] + 1);
  }
  g.columns = {g.image[0], g.image[1] * *taps, g.positions[0] * g.positions[1]};
  return g;
}

}  // namespace carina::aten
