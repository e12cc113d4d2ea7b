// SPDX-License-Identifier: Apache-2.0
#include "reference_network.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace carina::ethosn::test {
namespace {

int clampTo(int64_t v, bool isSigned) {
  return static_cast<int>(isSigned ? std::clamp<int64_t>(v, -128, 127) : std::clamp<int64_t>(v, 0, 255));
}

int byteValue(uint8_t byte, bool isSigned) {
  return isSigned ? static_cast<int8_t>(byte) : byte;
}

struct Multiplier {
  int64_t scale = 0;
  int shift = 0;
};

/// A factor as a 16-bit multiplier, as in weight streams.
Multiplier convMultiplier(double factor) {
  if (factor == 0) return {};
  const int shift = std::min(47, 16 - std::ilogb(factor) - 1);
  Multiplier m{std::lround(std::ldexp(factor, shift)), shift};
  if (m.scale == 65536) m = shift == 0 ? Multiplier{65535, 0} : Multiplier{m.scale / 2, shift - 1};
  return m;
}

int64_t roundedShift(int64_t value, int shift) {
  return shift == 0 ? value : (value + (int64_t{1} << (shift - 1))) >> shift;
}

/// A factor as in the parameters of PLE kernels.
Multiplier pleMultiplier(double factor, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(factor, &exponent);
  if (exponent < -16) return {};
  const int precision = std::max(0, 32 - std::max(32 - bits, exponent));
  return {static_cast<int64_t>(std::ldexp(fraction, precision)), std::max(precision, exponent) - exponent};
}

int16_t wrap16(int64_t v) {
  return static_cast<int16_t>(static_cast<uint16_t>(v));
}

int pleRescale(int value, int zeroPoint, Multiplier m) {
  const int64_t shifted = m.shift == 0 ? 0 : ((value - zeroPoint) * m.scale) >> (m.shift - 1);
  return wrap16(std::clamp<int64_t>(shifted, -32768, 32767) + 1) >> 1;
}

int at(const ReferenceTensor& t, int y, int x, int c) {
  return t.values[static_cast<size_t>((y * t.w + x) * t.c + c)];
}

template <typename Function>
void forEach(ReferenceTensor& out, Function&& value) {
  out.values.resize(static_cast<size_t>(out.h * out.w * out.c));
  size_t i = 0;
  for (int y = 0; y < out.h; ++y) {
    for (int x = 0; x < out.w; ++x) {
      for (int c = 0; c < out.c; ++c) out.values[i++] = value(y, x, c);
    }
  }
}

void requantize(ReferenceTensor& out, const ReferenceTensor& in) {
  const Multiplier m = convMultiplier(in.scale * 0.5f / out.scale);
  forEach(out, [&](int y, int x, int c) {
    return clampTo(roundedShift(2 * (at(in, y, x, c) - in.zeroPoint) * m.scale, m.shift) + out.zeroPoint,
                   out.isSigned);
  });
}

bool sameScale(const ReferenceTensor& a, const ReferenceTensor& b) {
  return a.zeroPoint == b.zeroPoint && a.scale == b.scale && a.isSigned == b.isSigned;
}

std::vector<uint8_t> fromHex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// floor(value / 2^bits)
int64_t floorShift(int64_t value, int bits) {
  return value >> bits;
}

int meanOf(int sum, int count, int bits, bool isSigned) {
  const int64_t rounded = isSigned ? wrap16(sum + count / 2) : static_cast<uint16_t>(sum + count / 2);
  const int64_t mean = floorShift(rounded * ((1 << bits) / count + 1), bits);
  return byteValue(static_cast<uint8_t>(mean), isSigned);
}

}  // namespace

ReferenceNetwork::ReferenceNetwork(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "output") {
      words >> word;
      outputs_.push_back(std::stoi(word.substr(1)));
    } else if (word.starts_with("weights")) {
      words >> word;
      nodes_.back().weights = fromHex(word);
    } else if (word == "bias_le32") {
      words >> word;
      const auto bytes = fromHex(word);
      for (size_t i = 0; i + 3 < bytes.size(); i += 4) {
        nodes_.back().bias.push_back(static_cast<int32_t>(bytes[i] | bytes[i + 1] << 8 | bytes[i + 2] << 16 |
                                                          static_cast<uint32_t>(bytes[i + 3]) << 24));
      }
    } else if (word.starts_with("%")) {
      Node node;
      words >> word >> node.operation;
      while (words >> word) {
        if (word == "->") break;
        if (word.starts_with("%"))
          node.operands.push_back(std::stoi(word.substr(1)));
        else if (word == "kernel")
          words >> node.kh >> node.kw;
        else if (word == "stride")
          words >> node.stride;
        else if (word == "pad_tblr")
          words >> node.top >> node.bottom >> node.left >> node.right;
        else if (word == "wzp")
          words >> node.weightZeroPoint;
        else if (word == "bounds")
          words >> node.low >> node.high;
        else if (word == "part")
          words >> node.part;
        else if (word == "alpha")
          words >> node.alpha;
        else if (word == "wscales")
          continue;
        else
          node.weightScales.push_back(std::stof(word));
      }
      int batch = 0;
      std::string type;
      words >> batch >> node.result.h >> node.result.w >> node.result.c >> word >> node.result.zeroPoint >>
          word >> node.result.scale >> word >> type;
      node.result.isSigned = type == "s8";
      nodes_.push_back(std::move(node));
    } else if (!word.empty()) {
      throw std::runtime_error("unknown line: " + line.substr(0, 80));
    }
  }
}

namespace {

/// All kinds of convolutions: of in(y, x, c), which is 0 outside, with weights w(ky, kx, i, o).
template <typename In, typename Weight>
void convolve(ReferenceTensor& out, int inputs, int kh, int kw, const std::vector<Multiplier>& scales,
              const std::vector<int32_t>& bias, In&& in, Weight&& weight) {
  forEach(out, [&](int y, int x, int o) {
    int64_t sum = bias[static_cast<size_t>(o)];
    for (int ky = 0; ky < kh; ++ky) {
      for (int kx = 0; kx < kw; ++kx) {
        for (int i = 0; i < inputs; ++i) sum += int64_t{in(y, x, ky, kx, i, o)} * weight(ky, kx, i, o);
      }
    }
    const Multiplier& m = scales[scales.size() == 1 ? 0 : static_cast<size_t>(o)];
    return clampTo(roundedShift(sum * m.scale, m.shift) + out.zeroPoint, out.isSigned);
  });
}

}  // namespace

/// Convolutions, pooling and means. Returns false for other operations.
bool ReferenceNetwork::windows(const Node& n, const std::vector<ReferenceTensor>& values,
                               ReferenceTensor& out) {
  const ReferenceTensor& in = values[static_cast<size_t>(n.operands.at(0))];
  const bool isSigned = out.isSigned;
  const std::string& op = n.operation;
  const auto inside = [&](int y, int x) { return y >= 0 && x >= 0 && y < in.h && x < in.w; };
  if (op == "conv" || op == "depthwise" || op == "transpose" || op == "fc") {
    std::vector<Multiplier> scales;
    for (const float s : n.weightScales) scales.push_back(convMultiplier(in.scale * s / out.scale));
    const bool depthwise = op == "depthwise";
    const auto weight = [&](int ky, int kx, int i, int o) {
      const int perTap = depthwise ? out.c : in.c * out.c;
      const int index = (ky * n.kw + kx) * perTap + (depthwise ? o : i * out.c + o);
      return byteValue(n.weights[static_cast<size_t>(index)], isSigned) - n.weightZeroPoint;
    };
    const auto source = [&](int y, int x, int ky, int kx, int i, int o) {
      int yy = y * n.stride - n.top + ky, xx = x * n.stride - n.left + kx;
      if (op == "transpose") {
        // out[y * stride + k - pad] += in[y] * w[k]
        yy = y + n.top - ky;
        xx = x + n.left - kx;
        if (yy % n.stride != 0 || xx % n.stride != 0 || yy < 0 || xx < 0) return 0;
        yy /= n.stride;
        xx /= n.stride;
      }
      return inside(yy, xx) ? at(in, yy, xx, depthwise ? o : i) - in.zeroPoint : 0;
    };
    convolve(out, depthwise ? 1 : in.c, n.kh, n.kw, scales, n.bias, source, weight);
  } else if (op == "relu") {
    forEach(out, [&](int y, int x, int c) { return std::clamp(at(in, y, x, c), n.low, n.high); });
  } else if (op == "requantize") {
    requantize(out, in);
  } else if (op == "maxpool" || op == "avgpool") {
    forEach(out, [&](int y, int x, int c) {
      int most = -1000, sum = 0, count = 0;
      for (int ky = 0; ky < n.kh; ++ky) {
        for (int kx = 0; kx < n.kw; ++kx) {
          const int yy = y * n.stride - n.top + ky, xx = x * n.stride - n.left + kx;
          if (!inside(yy, xx)) continue;
          most = std::max(most, at(in, yy, xx, c));
          sum += at(in, yy, xx, c);
          ++count;
        }
      }
      return op == "maxpool" ? most : meanOf(sum, count, 16, isSigned);
    });
  } else if (op == "mean") {
    forEach(out, [&](int, int, int c) {
      int sum = 0;
      for (int y = 0; y < in.h; ++y) {
        for (int x = 0; x < in.w; ++x) sum += at(in, y, x, c);
      }
      return meanOf(sum, in.h * in.w, 20, isSigned);
    });
  } else {
    return false;
  }
  return true;
}

/// Sums, products and functions. Returns false for other operations.
bool ReferenceNetwork::arithmetic(const Node& n, const std::vector<ReferenceTensor>& values,
                                  ReferenceTensor& out) {
  const ReferenceTensor& in = values[static_cast<size_t>(n.operands.at(0))];
  const bool isSigned = out.isSigned;
  const std::string& op = n.operation;
  if (op == "add") {
    const ReferenceTensor& other = values[static_cast<size_t>(n.operands.at(1))];
    const bool plain = sameScale(in, other) && sameScale(in, out);
    const Multiplier m0 = pleMultiplier(in.scale / out.scale, 16),
                     m1 = pleMultiplier(other.scale / out.scale, 16);
    forEach(out, [&](int y, int x, int c) {
      const int a = at(in, y, x, c), b = at(other, y, x, c);
      if (plain) return clampTo(a - out.zeroPoint + b, isSigned);
      return clampTo(
          wrap16(pleRescale(a, in.zeroPoint, m0) + pleRescale(b, other.zeroPoint, m1) + out.zeroPoint),
          isSigned);
    });
  } else if (op == "mul") {
    const ReferenceTensor& other = values[static_cast<size_t>(n.operands.at(1))];
    const float product = in.scale * other.scale;
    const Multiplier m =
        pleMultiplier(static_cast<double>(product) / static_cast<double>(out.scale), isSigned ? 15 : 16);
    forEach(out, [&](int y, int x, int c) {
      const auto p =
          static_cast<uint16_t>((at(in, y, x, c) - in.zeroPoint) * (at(other, y, x, c) - other.zeroPoint));
      const auto t = static_cast<uint32_t>((isSigned ? static_cast<int16_t>(p) : int64_t{p}) * m.scale);
      return byteValue(static_cast<uint8_t>(std::min<uint32_t>(65535, t >> m.shift) +
                                            static_cast<uint32_t>(out.zeroPoint)),
                       isSigned);
    });
  } else if (op == "leakyrelu") {
    const Multiplier m0 = pleMultiplier(in.scale / out.scale, 16),
                     m1 = pleMultiplier(n.alpha * (in.scale / out.scale), 16);
    forEach(out, [&](int y, int x, int c) {
      const int v = at(in, y, x, c);
      return clampTo(
          wrap16(std::max(pleRescale(v, in.zeroPoint, m0), pleRescale(v, in.zeroPoint, m1)) + out.zeroPoint),
          isSigned);
    });
  } else if (op == "sigmoid" || op == "tanh") {
    const double factor = in.scale * std::log2(std::exp(1.0)) * 256 * (op == "tanh" ? 2 : 1);
    forEach(out, [&](int y, int x, int c) {
      const double v = (at(in, y, x, c) - in.zeroPoint) * factor / 256;
      const double result = 256 / (1 + std::exp2(-v));
      return clampTo(std::lround(result) - (isSigned ? 128 : 0), isSigned);
    });
  } else {
    return false;
  }
  return true;
}

/// Operations that move or repeat elements. Returns false for other operations.
bool ReferenceNetwork::moves(const Node& n, const std::vector<ReferenceTensor>& values, int splitOffset,
                             ReferenceTensor& out) {
  const ReferenceTensor& in = values[static_cast<size_t>(n.operands.at(0))];
  const std::string& op = n.operation;
  const auto inside = [&](int y, int x) { return y >= 0 && x >= 0 && y < in.h && x < in.w; };
  if (op == "resize_nearest") {
    forEach(out, [&](int y, int x, int c) { return at(in, y / 2, x / 2, c); });
  } else if (op == "resize_bilinear") {
    forEach(out, [&](int y, int x, int c) {
      const int y1 = std::min((y + 1) / 2, in.h - 1), x1 = std::min((x + 1) / 2, in.w - 1);
      return floorShift(
          at(in, y / 2, x / 2, c) + at(in, y / 2, x1, c) + at(in, y1, x / 2, c) + at(in, y1, x1, c) + 2, 2);
    });
  } else if (op == "concat1" || op == "concat3") {
    std::vector<ReferenceTensor> parts;
    for (const int operand : n.operands) {
      ReferenceTensor part = values[static_cast<size_t>(operand)];
      if (!sameScale(part, out)) {
        ReferenceTensor to = part;
        to.zeroPoint = out.zeroPoint;
        to.scale = out.scale;
        requantize(to, part);
        part = to;
      }
      parts.push_back(std::move(part));
    }
    forEach(out, [&](int y, int x, int c) {
      for (const ReferenceTensor& part : parts) {
        int& along = op == "concat1" ? y : c;
        const int size = op == "concat1" ? part.h : part.c;
        if (along < size) return at(part, y, x, c);
        along -= size;
      }
      throw std::runtime_error("concatenation of too few elements");
    });
  } else if (op == "split3") {
    forEach(out, [&](int y, int x, int c) { return at(in, y, x, c + splitOffset); });
  } else if (op == "depth_to_space2") {
    forEach(out, [&](int y, int x, int c) { return at(in, y / 2, x / 2, (y % 2 * 2 + x % 2) * out.c + c); });
  } else if (op == "reshape") {
    out.values = in.values;
  } else if (op == "transpose0213") {
    forEach(out, [&](int y, int x, int c) { return at(in, x, y, c); });
  } else if (op == "transpose0312") {
    forEach(out, [&](int y, int x, int c) { return at(in, x, c, y); });
  } else if (op == "transpose0231") {
    forEach(out, [&](int y, int x, int c) { return at(in, c, y, x); });
  } else if (op == "transpose0132") {
    forEach(out, [&](int y, int x, int c) { return at(in, y, c, x); });
  } else if (op == "transpose0321") {
    forEach(out, [&](int y, int x, int c) { return at(in, c, x, y); });
  } else if (op == "padding") {
    forEach(out, [&](int y, int x, int c) {
      return inside(y - n.top, x - n.left) ? at(in, y - n.top, x - n.left, c) : in.zeroPoint;
    });
  } else {
    return false;
  }
  return true;
}

ReferenceTensor ReferenceNetwork::evaluate(const Node& n, const std::vector<ReferenceTensor>& values,
                                           int splitOffset) {
  ReferenceTensor out = n.result;
  if (!windows(n, values, out) && !arithmetic(n, values, out) && !moves(n, values, splitOffset, out))
    throw std::runtime_error("unknown operator " + n.operation);
  return out;
}

std::vector<uint8_t> ReferenceNetwork::inputZeroPoints() const {
  std::vector<uint8_t> zeroPoints;
  for (const Node& node : nodes_) {
    if (node.operation == "input") zeroPoints.push_back(static_cast<uint8_t>(node.result.zeroPoint));
  }
  return zeroPoints;
}

std::vector<std::vector<uint8_t>> ReferenceNetwork::run(
    const std::vector<std::vector<uint8_t>>& inputs) const {
  std::vector<ReferenceTensor> values;
  size_t next = 0;
  int splitOffset = 0;
  for (const Node& node : nodes_) {
    if (node.operation == "input") {
      ReferenceTensor tensor = node.result;
      for (const uint8_t byte : inputs.at(next)) tensor.values.push_back(byteValue(byte, tensor.isSigned));
      ++next;
      values.push_back(std::move(tensor));
      continue;
    }
    if (node.part == 0) splitOffset = 0;
    values.push_back(evaluate(node, values, splitOffset));
    splitOffset += node.result.c;
  }
  std::vector<std::vector<uint8_t>> results;
  for (const int output : outputs_) {
    std::vector<uint8_t> bytes;
    for (const int value : values[static_cast<size_t>(output)].values)
      bytes.push_back(static_cast<uint8_t>(value));
    results.push_back(std::move(bytes));
  }
  return results;
}

}  // namespace carina::ethosn::test
