// SPDX-License-Identifier: Apache-2.0
// The npu interpreter (npu_interpreter.hpp).
#include "compiler/dialect/npu_interpreter.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "compiler/dialect/coded_weights.hpp"
#include "compiler/dialect/npu_ir.hpp"
#include "compiler/dialect/wide_function.hpp"

namespace carina::npu_ir {
namespace {

__extension__ typedef __int128 Wide;

/// ethosu-numerics 2. `early`: bits by which the first of two roundings moves down (dbl).
int64_t scaled(Wide value, int64_t multiplier, int64_t shift, Rounding rounding, int64_t early = 0) {
  Wide round = shift > 0 ? Wide{1} << (shift - 1) : 0;
  const Wide extra = shift > 31 - early ? Wide{1} << (30 - early) : 0;
  switch (rounding) {
    case Rounding::DOUBLE_SYMMETRIC:
      round += value >= 0 ? extra : -extra;
      break;
    case Rounding::NATURAL:
      break;
    case Rounding::DOUBLE_ASYMMETRIC:
      round += extra;
      break;
    case Rounding::SYMMETRIC:
      if (value < 0 && shift > 0) round -= 1;
      break;
    case Rounding::TRUNCATE_TO_ZERO:
      round = value >= 0 ? Wide{0} : (Wide{1} << shift) - 1;
      break;
    case Rounding::TRUNCATE_TO_LOWER:
      round = 0;
      break;
  }
  const Wide result = (value * multiplier + round) >> shift;
  // No later stage of the pipeline distinguishes values beyond 64 bits: they all saturate.
  if (result > std::numeric_limits<int64_t>::max()) return std::numeric_limits<int64_t>::max();
  if (result < std::numeric_limits<int64_t>::min()) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(result);
}

int64_t saturate(int64_t value, DType type) {
  if (type == DType::Bool) type = DType::Int8;
  return std::min(std::max(value, integerMin(type)), integerMax(type));
}

int64_t tableEntry(const OutputStage& stage, int64_t value, DType outputType) {
  const Tensor& table = stage.table->constant();
  if (stage.tableKind == TableKind::LUT16 || stage.tableKind == TableKind::LUT16_TO_32) {
    const int64_t word = table.integerAt((value + 32768) >> 7);
    const int64_t base = static_cast<int16_t>(word & 0xffff),
                  slope = static_cast<int16_t>((word >> 16) & 0xffff);
    const int64_t fraction = value & 127;
    return stage.tableKind == TableKind::LUT16 ? base + ((slope * fraction + 64) >> 7)
                                               : base * 128 + slope * fraction;
  }
  return table.integerAt(isUnsigned(outputType) ? value : value + 128);
}

/// Steps 3 to 7 of the pipeline.
int64_t output(const OutputStage& stage, int64_t channel, Wide accumulator, DType type) {
  const size_t c = stage.perChannel() ? static_cast<size_t>(channel) : 0;
  int64_t value = scaled(accumulator, stage.multipliers[c], stage.shifts[c], stage.rounding);
  value = saturate(value, DType::Int48) + stage.zeroPoint;
  if (stage.clamp) value = std::min(std::max(value, stage.clamp->first), stage.clamp->second);
  if (stage.tableKind == TableKind::NONE) return saturate(value, type);
  if (stage.wideFunction()) {
    const bool tanh = stage.tableKind == TableKind::TANH;
    value = saturate(value, DType::Int32);
    value = stage.table ? wideTableEntry(stage.table->constant(), tanh, value) : wideFunction(tanh, value);
    return saturate(value, type);
  }
  const bool wide = stage.tableKind == TableKind::LUT16 || stage.tableKind == TableKind::LUT16_TO_32;
  const DType index = wide ? DType::Int16 : isUnsigned(type) ? DType::UInt8 : DType::Int8;
  return saturate(tableEntry(stage, saturate(value, index), type), type);
}

struct Map {
  const Tensor& tensor;
  int64_t at(int64_t y, int64_t x, int64_t c) const {
    return tensor.integerAt((y * tensor.dim(1) + x) * tensor.dim(2) + c);
  }
};

template <typename Body>
Tensor forEachElement(const ir::Value* result, const Body& body) {
  Tensor tensor = Tensor::zeros(result->dtype(), result->shape());
  int64_t i = 0;
  for (int64_t y = 0; y < result->dim(0); ++y) {
    for (int64_t x = 0; x < result->dim(1); ++x) {
      for (int64_t c = 0; c < result->dim(2); ++c) tensor.setIntegerAt(i++, body(y, x, c));
    }
  }
  return tensor;
}

class Interpreter {
 public:
  Result<std::vector<Tensor>> run(const ir::Graph& graph, std::span<const Tensor> inputs,
                                  const ValueObserver& observer) {
    if (inputs.size() != graph.inputs().size()) {
      return fail(Code::InputMismatch, "{} inputs given, the graph has {}", inputs.size(),
                  graph.inputs().size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::Value* value = graph.inputs()[i];
      if (inputs[i].dtype() != value->dtype() || inputs[i].shape() != value->shape()) {
        return fail(Code::InputMismatch, "input {} is {}, the graph takes {}", i,
                    ir::typeText({inputs[i].dtype(), inputs[i].shape()}), ir::typeText(value->type));
      }
      values_[value] = inputs[i];
    }
    for (const ir::Node* node : graph.nodes()) {
      if (!isOperator(node)) return fail(Code::InvalidGraph, "{} is not an npu operation", node->opName());
      Tensor result = execute(node);
      if (observer) observer(*node->result(), result);
      values_[node->result()] = std::move(result);
    }
    std::vector<Tensor> outputs;
    for (const ir::Value* value : graph.outputs()) outputs.push_back(tensor(value));
    return outputs;
  }

 private:
  const Tensor& tensor(const ir::Value* value) const {
    return value->isConstant() ? value->constant() : values_.at(value);
  }

  Tensor execute(const ir::Node* node) {
    switch (opId(node)) {
      case OpId::View:
        return view(node);
      case OpId::Join:
        return join(node);
      case OpId::Conv:
        return convolution(node, false);
      case OpId::Depthwise:
        return convolution(node, true);
      case OpId::MatMul:
        return matmul(node);
      case OpId::CodedConv:
        return codedConvolution(node);
      case OpId::Pool:
        return pool(node);
      case OpId::Elementwise:
        return elementwise(node);
      case OpId::Resize:
        return resize(node);
      case OpId::Gather:
        return gather(node);
      case OpId::Scatter:
        return scatter(node);
    }
    CARINA_UNREACHABLE("unknown npu operation");
  }

  /// Copies elements between a dense tensor of `shape` and a strided location. scatter: dense to strided.
  static void moveStrided(std::byte* dense, std::byte* strided, int64_t offset, const ir::Ints& strides,
                          const Shape& shape, size_t size, bool scatter) {
    const int64_t count = numElements(shape);
    Shape index(shape.size(), 0);
    for (int64_t i = 0; i < count; ++i) {
      int64_t place = offset;
      for (size_t d = 0; d < shape.size(); ++d) place += index[d] * strides[d];
      std::byte* a = dense + static_cast<size_t>(i) * size;
      std::byte* b = strided + static_cast<size_t>(place) * size;
      std::memcpy(scatter ? b : a, scatter ? a : b, size);
      for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d]) break;
        index[d] = 0;
      }
    }
  }

  Tensor view(const ir::Node* node) {
    const View op(const_cast<ir::Node*>(node));
    Tensor input = tensor(op.input());
    Tensor result = Tensor::zeros(node->result()->dtype(), node->result()->shape());
    moveStrided(result.mutableBytes().data(), input.mutableBytes().data(), op.offset(), op.strides(),
                result.shape(), static_cast<size_t>(dtypeSize(result.dtype())), false);
    return result;
  }

  Tensor join(const ir::Node* node) {
    Tensor result = Tensor::zeros(node->result()->dtype(), node->result()->shape());
    for (const Piece& piece : pieces(node)) {
      Tensor source = tensor(piece.value);
      moveStrided(source.mutableBytes().data(), result.mutableBytes().data(), piece.offset, piece.strides,
                  source.shape(), static_cast<size_t>(dtypeSize(source.dtype())), true);
    }
    return result;
  }

  /// Value at upscaled coordinates, relative to the zero point; nothing in the padding.
  static std::optional<int64_t> sample(const Map& map, const Window& w, int64_t y, int64_t x, int64_t c) {
    const int64_t factor = w.upscale == Upscale::NONE ? 1 : 2;
    if (y < 0 || x < 0 || y >= map.tensor.dim(0) * factor || x >= map.tensor.dim(1) * factor)
      return std::nullopt;
    if (w.upscale == Upscale::ZEROS && ((y | x) & 1) != 0) return 0;
    return map.at(y / factor, x / factor, c) - w.ifmZeroPoint;
  }

  Tensor convolution(const ir::Node* node, bool depthwise) {
    const Window w = window(node);
    const OutputStage stage = outputStage(node);
    const Map ifm{tensor(node->operand(0))};
    const Tensor& weight = tensor(node->operand(1));
    const Tensor& bias = tensor(node->operand(2));
    const auto& weightZeroPoints = node->attributeAs<ir::Ints>(node->def().attributes.size() - 1);
    const int64_t depth = ifm.tensor.dim(2), kh = w.kernel[0], kw = w.kernel[1];
    return forEachElement(node->result(), [&](int64_t y, int64_t x, int64_t c) {
      const int64_t zeroPoint = weightZeroPoints[weightZeroPoints.size() > 1 ? static_cast<size_t>(c) : 0];
      Wide sum = bias.integerAt(c);
      for (int64_t ky = 0; ky < kh; ++ky) {
        for (int64_t kx = 0; kx < kw; ++kx) {
          const int64_t iy = y * w.stride[0] - w.pad[0] + ky * w.dilation[0];
          const int64_t ix = x * w.stride[1] - w.pad[1] + kx * w.dilation[1];
          for (int64_t i = depthwise ? c : 0; i < (depthwise ? c + 1 : depth); ++i) {
            const auto value = sample(ifm, w, iy, ix, i);
            if (!value) continue;
            const int64_t place =
                depthwise ? (ky * kw + kx) * depth + c : ((c * kh + ky) * kw + kx) * depth + i;
            sum += Wide{*value} * (weight.integerAt(place) - zeroPoint);
          }
        }
      }
      return output(stage, c, sum, node->result()->dtype());
    });
  }

  Tensor matmul(const ir::Node* node) {
    const MatMul op(const_cast<ir::Node*>(node));
    const OutputStage stage = outputStage(node);
    const Map a{tensor(op.ifm())}, b{tensor(op.ifm2())};
    return forEachElement(node->result(), [&](int64_t y, int64_t x, int64_t c) {
      Wide sum = 0;
      for (int64_t k = 0; k < a.tensor.dim(2); ++k) {
        sum += Wide{a.at(y, x, k) - op.ifmZp()} * (b.at(0, c, k) - op.ifm2Zp());
      }
      return output(stage, c, sum, node->result()->dtype());
    });
  }

  /// The weights [channels][depth] of a CODED_CONV, in the order in which the hardware reads them.
  static std::vector<int64_t> codedWeights(const CodedOrder& order, const Tensor& codes, int64_t channels,
                                           int64_t depth) {
    std::vector<int64_t> weights(static_cast<size_t>(channels * depth), 0);
    int64_t start = 0;
    for (int64_t s = 0; s < order.streams; ++s) {
      const int64_t rows = order.channels(channels, s), block = order.blockChannels(s);
      int64_t bit = start * 8 + kFirstGroupBit;
      const auto next = [&] {
        int64_t code = 0;
        for (int64_t i = 0; i < kCodeBits; ++i, ++bit)
          code |= (codes.integerAt(bit / 8) >> (bit % 8) & 1) << i;
        if (bit == start * 8 + kFirstGroupBit + kGroupWeights * kCodeBits)
          bit = (start + kSecondGroupByte) * 8;
        return code % 2 != 0 ? -(code / 2) : code / 2;
      };
      for (int64_t ob = 0; ob < rows; ob += block) {
        for (int64_t ib = 0; ib < depth; ib += order.ifmBlock) {
          for (int64_t ou = ob; ou < std::min(rows, ob + block); ou += order.ublockDepth) {
            for (int64_t iu = ib; iu < ib + order.ifmBlock; iu += kGroupWeights) {
              for (int64_t row = ou; row < ou + order.ublockDepth; ++row) {
                for (int64_t k = iu; k < iu + kGroupWeights; ++k) {
                  const int64_t weight = next();
                  if (row < rows && k < depth)
                    weights[static_cast<size_t>((row * order.streams + s) * depth + k)] = weight;
                }
              }
            }
          }
        }
      }
      start += order.streamBytes(channels, depth, s);
    }
    return weights;
  }

  Tensor codedConvolution(const ir::Node* node) {
    const CodedConv op(const_cast<ir::Node*>(node));
    const OutputStage stage = outputStage(node);
    const Map ifm{tensor(op.ifm())};
    const int64_t depth = ifm.tensor.dim(2);
    const auto weights = codedWeights(codedOrder(node), tensor(op.codes()), node->result()->dim(2), depth);
    return forEachElement(node->result(), [&](int64_t y, int64_t x, int64_t c) {
      Wide sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += Wide{ifm.at(y, x, k) - op.ifmZp()} * weights[static_cast<size_t>(c * depth + k)];
      return output(stage, c, sum, node->result()->dtype());
    });
  }

  Tensor pool(const ir::Node* node) {
    const Pool op(const_cast<ir::Node*>(node));
    const Window w = window(node);
    const OutputStage stage = outputStage(node);
    const Map ifm{tensor(op.ifm())};
    const PoolMode mode = op.mode();
    const ir::Ints& order = op.transpose();
    return forEachElement(node->result(), [&](int64_t i, int64_t j, int64_t k) {
      std::array<int64_t, 3> place{};
      place[static_cast<size_t>(order[0])] = i;
      place[static_cast<size_t>(order[1])] = j;
      place[static_cast<size_t>(order[2])] = k;
      const auto [y, x, c] = place;
      Wide sum = 0;
      std::optional<int64_t> extreme;
      int64_t count = 0, position = 0;
      for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
        for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
          const int64_t iy = y * w.stride[0] - w.pad[0] + ky * w.dilation[0];
          const int64_t ix = x * w.stride[1] - w.pad[1] + kx * w.dilation[1];
          if (mode == PoolMode::REDUCE_SUM) {
            for (int64_t d = 0; d < ifm.tensor.dim(2); ++d) sum += *sample(ifm, w, iy, ix, d);
            continue;
          }
          const auto value = sample(ifm, w, iy, ix, c);
          if (!value) continue;
          ++count;
          sum += *value;
          const bool better = !extreme || (mode == PoolMode::MIN ? *value < *extreme : *value > *extreme);
          if (better) {
            extreme = value;
            position = mode == PoolMode::ARGMAX_X ? kx : ky;
          }
        }
      }
      switch (mode) {
        case PoolMode::MAX:
        case PoolMode::MIN:
          sum = extreme.value_or(0);
          break;
        case PoolMode::ARGMAX_X:
        case PoolMode::ARGMAX_Y:
          sum = position;
          break;
        case PoolMode::AVERAGE: {
          // Division by the number of valid elements, half away from zero.
          const Wide half = count / 2;
          sum = count == 0 ? 0 : (sum >= 0 ? (sum + half) / count : -((-sum + half) / count));
          break;
        }
        default:
          break;
      }
      return output(stage, c, sum, node->result()->dtype());
    });
  }

  static int64_t shiftRight(int64_t a, int64_t b, Rounding rounding) {
    if (rounding == Rounding::TRUNCATE_TO_LOWER || b <= 0) return a >> b;
    return ((a >> (b - 1)) + 1) >> 1;
  }

  Tensor elementwise(const ir::Node* node) {
    const Elementwise op(const_cast<ir::Node*>(node));
    const OutputStage stage = outputStage(node);
    const Tensor& a = tensor(op.ifm());
    const Tensor* b = op.ifm2() ? &tensor(op.ifm2()) : nullptr;
    const auto read = [](const Tensor& t, int64_t y, int64_t x, int64_t c) {
      return Map{t}.at(t.dim(0) == 1 ? 0 : y, t.dim(1) == 1 ? 0 : x, t.dim(2) == 1 ? 0 : c);
    };
    const int64_t early = npu_ir::operandPreShift(op.ifm()->dtype());
    const auto operand = [&](int64_t value, const ir::Ints& scale) {
      return scaled(value, scale[0], scale[1], op.operandRounding(), early);
    };
    return forEachElement(node->result(), [&](int64_t y, int64_t x, int64_t c) {
      const int64_t rawA = read(a, y, x, c) - op.ifmZp();
      const int64_t rawB = b ? read(*b, y, x, c) - op.ifm2Zp() : 0;
      if (op.mode() == ElementwiseMode::LRELU) {
        return output(stage, c, operand(rawA, rawA >= 0 ? op.ifmScale() : op.ifm2Scale()),
                      node->result()->dtype());
      }
      const int64_t va = operand(rawA, op.ifmScale());
      const int64_t vb = b ? operand(rawB, op.ifm2Scale()) : 0;
      // Multiplication, addition and subtraction of 32-bit inputs scale the exact result.
      return output(stage, c, combine(op.mode(), va, vb, stage.rounding), node->result()->dtype());
    });
  }

  static Wide combine(ElementwiseMode mode, int64_t a, int64_t b, Rounding rounding) {
    const auto bits = [](int64_t v) { return static_cast<uint32_t>(v); };
    const auto mask = [](bool value) { return value ? Wide{-1} : Wide{0}; };
    switch (mode) {
      case ElementwiseMode::MUL:
        return Wide{a} * b;
      case ElementwiseMode::ADD:
        return Wide{a} + b;
      case ElementwiseMode::SUB:
        return Wide{a} - b;
      case ElementwiseMode::MIN:
        return std::min(a, b);
      case ElementwiseMode::MAX:
        return std::max(a, b);
      case ElementwiseMode::LRELU:
        return a;
      case ElementwiseMode::ABS:
        return a < 0 ? -Wide{a} : Wide{a};
      case ElementwiseMode::CLZ:
        return std::countl_zero(bits(a));
      case ElementwiseMode::SHR:
        return shiftRight(a, b, rounding);
      case ElementwiseMode::SHL:
        return static_cast<int32_t>(bits(a) << (b & 31));
      case ElementwiseMode::LSR:
        return static_cast<int32_t>(bits(a) >> (b & 31));
      case ElementwiseMode::DIV:
        return b == 0 ? Wide{0} : Wide{a} / b;
      case ElementwiseMode::CMP_EQ:
        return mask(a == b);
      case ElementwiseMode::CMP_NE:
        return mask(a != b);
      case ElementwiseMode::CMP_GE:
        return mask(a >= b);
      case ElementwiseMode::CMP_GT:
        return mask(a > b);
      case ElementwiseMode::AND:
        return a & b;
      case ElementwiseMode::OR:
        return a | b;
      case ElementwiseMode::XOR:
        return a ^ b;
      case ElementwiseMode::NOT:
        return ~a;
      case ElementwiseMode::AND_NOT:
        return a & ~b;
    }
    CARINA_UNREACHABLE("unknown elementwise mode");
  }

  Tensor resize(const ir::Node* node) {
    const Resize op(const_cast<ir::Node*>(node));
    const OutputStage stage = outputStage(node);
    const Map ifm{tensor(op.ifm())};
    // scale: y numerator, y denominator, x numerator, x denominator.
    const auto place = [](int64_t position, int64_t n, int64_t d, int64_t offset, int64_t size) {
      const int64_t t = position * d + offset;
      const int64_t index = t >= 0 ? t / n : -((-t + n - 1) / n);
      const auto clip = [size](int64_t v) { return std::min(std::max<int64_t>(v, 0), size - 1); };
      return std::array<int64_t, 3>{clip(index), clip(index + 1), t - index * n};
    };
    return forEachElement(node->result(), [&](int64_t y, int64_t x, int64_t c) {
      const int64_t ny = op.scale()[0], nx = op.scale()[2];
      const auto [y0, y1, fy] = place(y, ny, op.scale()[1], op.offset()[0], ifm.tensor.dim(0));
      const auto [x0, x1, fx] = place(x, nx, op.scale()[3], op.offset()[1], ifm.tensor.dim(1));
      Wide value = 0;
      if (op.mode() == ResizeMode::NEAREST) {
        value = ifm.at(2 * fy >= ny ? y1 : y0, 2 * fx >= nx ? x1 : x0, c);
      } else {
        value = Wide{ifm.at(y0, x0, c)} * (ny - fy) * (nx - fx) + Wide{ifm.at(y0, x1, c)} * (ny - fy) * fx +
                Wide{ifm.at(y1, x0, c)} * fy * (nx - fx) + Wide{ifm.at(y1, x1, c)} * fy * fx;
      }
      return output(stage, c, value, node->result()->dtype());
    });
  }

  Tensor gather(const ir::Node* node) {
    const Tensor& table = tensor(node->operand(0));
    const Tensor& indices = tensor(node->operand(1));
    const auto row = static_cast<size_t>(table.dim(1) * dtypeSize(table.dtype()));
    Tensor result = Tensor::zeros(node->result()->dtype(), node->result()->shape());
    for (int64_t i = 0; i < indices.numElements(); ++i) {
      const int64_t index = indices.integerAt(i);
      if (index < 0 || index >= table.dim(0)) continue;
      std::memcpy(result.mutableBytes().data() + static_cast<size_t>(i) * row,
                  table.bytes().data() + static_cast<size_t>(index) * row, row);
    }
    return result;
  }

  /// Operand 2 in a copy of operand 0.
  Tensor scatter(const ir::Node* node) {
    Tensor result = tensor(node->operand(0));
    const Tensor& indices = tensor(node->operand(1));
    const Tensor& updates = tensor(node->operand(2));
    const int64_t rows = result.dim(1), count = indices.dim(1);
    const auto row = static_cast<size_t>(result.dim(2) * dtypeSize(result.dtype()));
    for (int64_t i = 0; i < indices.numElements(); ++i) {
      const int64_t index = indices.integerAt(i);
      if (index < 0 || index >= rows) continue;
      std::memcpy(result.mutableBytes().data() + static_cast<size_t>(i / count * rows + index) * row,
                  updates.bytes().data() + static_cast<size_t>(i) * row, row);
    }
    return result;
  }

  std::unordered_map<const ir::Value*, Tensor> values_;
};

}  // namespace

Result<std::vector<Tensor>> interpret(const ir::Graph& graph, std::span<const Tensor> inputs,
                                      const ValueObserver& observer) {
  return Interpreter().run(graph, inputs, observer);
}

}  // namespace carina::npu_ir
