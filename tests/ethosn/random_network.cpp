// SPDX-License-Identifier: Apache-2.0
#include "ethosn/random_network.hpp"

#include "ethosn/support/support.hpp"

namespace carina::ethosn::test {
namespace {

/// Operations that end a network or need a particular input shape.
int32_t singleOperation(NetworkBuilder& b, int& tolerance) {
  std::mt19937& random = b.random();
  const auto below = [&random](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  const auto any = [&] { return b.input(1 + below(40), 1 + below(40), 1 + below(70), 0.05F, 100); };
  switch (below(10)) {
    case 0: {
      const uint32_t size = 7 + below(2);
      return b.unary(Operator::MeanXy, b.input(size, size, 1 + below(300)));
    }
    case 1: {
      const uint32_t size = 7 + below(2);
      return b.pooling(b.input(size, size, 1 + below(300)), PoolingType::Average, size, 1);
    }
    case 2:
      return b.fullyConnected(b.input(1, 1, 1 + below(3000)), 1 + below(200));
    case 3:
    case 4:
      tolerance = 1;
      return b.unary(below(2) == 0 ? Operator::Sigmoid : Operator::Tanh, any());
    case 5:
      return b.unary(Operator::LeakyRelu, any());
    case 6: {
      const uint32_t h = 1 + below(40), w = 1 + below(40), c = 1 + below(70);
      const int32_t x = b.input(h, w, c), y = b.input(h, w, c, 0.07F, 30);
      return below(2) == 0 ? b.binary(Operator::Addition, x, y, 0.09F, 9)
                           : b.binary(Operator::Multiplication, x, y, 0.9F, 9);
    }
    case 7: {
      Operation op;
      op.op = Operator::Transpose;
      op.permutation = std::array<std::array<uint32_t, 4>, 6>{
          {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}}}[below(6)];
      return b.add(op, {any()});
    }
    case 8: {
      const uint32_t h = 1 + below(30), w = 1 + below(30), c = 1 + below(50), axis = 1 + below(3);
      std::vector<int32_t> parts;
      for (uint32_t i = 0; i < 2 + below(2); ++i) {
        const uint32_t extent = 1 + below(30);
        parts.push_back(b.input(axis == 1 ? extent : h, axis == 2 ? extent : w, axis == 3 ? extent : c,
                                0.03F + 0.01F * static_cast<float>(below(4)), 40));
      }
      return b.concatenation(parts, axis);
    }
    default: {
      const uint32_t size = 1 + 2 * below(4), outputs = 1 + below(100);
      const uint32_t pad = below(2) * (size / 2);
      // Some of those with many input channels are wider than an MCE block.
      const uint32_t more = below(3) == 0 ? 60 : 25;
      return b.convolution(b.input(size + below(25), size + below(more), 1 + below(600)), size, size, outputs,
                           1 + below(2), {pad, pad, pad, pad});
    }
  }
}

/// Requantizes first if the chain has made the scale so large that sums exceed 16 bits, which is refused.
int32_t randomLeakyRelu(NetworkBuilder& b, int32_t in) {
  const bool large = b.network().tensors[static_cast<size_t>(in)].quantization.scales[0] > 7;
  return b.unary(Operator::LeakyRelu, large ? b.requantize(in, 1, 100) : in);
}

int32_t randomStep(NetworkBuilder& b, int32_t in, bool single) {
  const Shape shape = b.network().tensors[static_cast<size_t>(in)].shape;
  std::mt19937& random = b.random();
  const auto below = [&random](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  const bool small = shape[1] < 6 || shape[2] < 6;
  // Operations that double a feature map come first, for small ones only.
  const bool large = shape[1] > 40 || shape[2] > 40;
  if (!large && below(5) == 0) {
    const auto algorithm = below(2) == 0 ? ResizeAlgorithm::NearestNeighbour : ResizeAlgorithm::Bilinear;
    switch (below(4)) {
      case 0:
        return b.transposeConvolution(in, 2, 2, 1 + below(40));
      case 1:
        return b.transposeConvolution(in, 3, 3, 1 + below(40), {below(2), 1, below(2), 1});
      case 2: {
        const uint32_t less = below(2);
        return b.resize(in, algorithm, 2 * shape[1] - less, 2 * shape[2] - less);
      }
      default:
        return shape[3] % 4 == 0 ? b.unary(Operator::DepthToSpace, in) : randomLeakyRelu(b, in);
    }
  }
  if (shape[3] > 2 && below(8) == 0) {
    const uint32_t first = 1 + below(shape[3] - 2);
    const auto parts = b.split(in, 3, {first, shape[3] - first});
    const Quantization& same = b.network().tensors[static_cast<size_t>(in)].quantization;
    return b.concatenation({parts[1], parts[0], parts[1]}, 3, same.scales[0],
                           b.unsignedZeroPoint(same.zeroPoint));
  }
  switch (below(small ? 6 : 14)) {
    case 0:
      return b.convolution(in, 1, 1, 1 + below(70));
    case 1:
      return b.relu(in, static_cast<int32_t>(below(100)), 150 + static_cast<int32_t>(below(100)));
    case 2:
      return b.requantize(in, b.network().tensors[static_cast<size_t>(in)].quantization.scales[0] * 1.1F,
                          100);
    case 3:
      return b.unary(Operator::StandalonePadding, in);
    case 4:
      return b.depthwise(in, 3, 1, kOne);
    case 5: {
      if (single) return b.convolution(in, 3, 3, 8 + below(40), 1, kOne);
      const int32_t other = b.convolution(in, 1, 1, shape[3]);
      const TensorInfo& info = b.network().tensors[static_cast<size_t>(other)];
      return b.binary(Operator::Addition, in, other, info.quantization.scales[0] * 1.3F, 100);
    }
    case 6:
      return b.convolution(in, 3, 3, 1 + below(70), 1, kOne);
    case 7:
      return b.convolution(in, 3, 3, 1 + below(70), 2, {below(2), 1, below(2), 1});
    case 8:
      return b.depthwise(in, 3, 2, kOne);
    case 9:
      return b.pooling(in, PoolingType::Max, 2, 2,
                       shape[1] % 2 == 0 && shape[2] % 2 == 0 ? Padding{} : Padding{0, 1, 0, 1});
    case 10:
      return b.pooling(in, PoolingType::Average, 3, 1, kOne);
    case 11:
      return b.pooling(in, PoolingType::Max, 2 + below(3), 1);
    case 12:
      return b.convolution(in, 1 + 2 * below(3), 1 + 2 * below(3), 1 + below(40));
    default: {
      const uint32_t rows = shape[1] % 2 == 0 ? shape[1] / 2 : shape[1];
      return b.reshape(in, {1, rows, shape[1] / rows * shape[2], shape[3]});
    }
  }
}

bool isSupported(const Network& network, const Target& target) {
  for (const NetworkOperation& operation : network.operations) {
    SupportQuery query;
    query.operation = operation.operation;
    for (int32_t input : operation.inputs)
      query.inputs.push_back(network.tensors[static_cast<size_t>(input)]);
    if (!querySupport(target, query)) return false;
  }
  return true;
}

}  // namespace

std::optional<RandomNetwork> randomNetwork(const Variant& variant, uint32_t seed, uint32_t steps) {
  RandomNetwork out{NetworkBuilder(seed % 2 == 0 ? DataType::U8 : DataType::S8, seed), {}};
  NetworkBuilder& builder = out.builder;
  std::mt19937& random = builder.random();
  if (steps == 1 && random() % 3 == 0) {
    builder.output(singleOperation(builder, out.tolerance));
  } else {
    const auto extent = [&random](uint32_t least, uint32_t range) {
      return least + static_cast<uint32_t>(random() % range);
    };
    const uint32_t height = extent(6, 40), width = extent(6, 40);
    int32_t tensor = builder.input(height, width, extent(1, 50));
    for (uint32_t step = 0; step < steps; ++step) tensor = randomStep(builder, tensor, steps == 1);
    builder.output(tensor);
  }
  out.target = *makeTarget(variant, random() % 2 == 0 ? 0 : 32 * 1024 * variant.igs());
  if (!isSupported(builder.network(), out.target)) return std::nullopt;
  return out;
}

}  // namespace carina::ethosn::test
