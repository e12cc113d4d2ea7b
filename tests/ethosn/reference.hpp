// SPDX-License-Identifier: Apache-2.0
// Reference for compiled networks: computes Ethos-N operations element by element, with the known arithmetic
// of MCE and PLE (docs/ethos-n.md).
#pragma once

#include <random>

#include "ethosn/compiler/network.hpp"

namespace carina::ethosn::test {

/// All tensors are NHWC. `inputs` and the returned outputs are in the order of the network's.
std::vector<std::vector<uint8_t>> computeReference(const Network& network,
                                                   const std::vector<std::vector<uint8_t>>& inputs);

/// Builds networks with random weights.
class NetworkBuilder {
 public:
  NetworkBuilder(DataType type, uint32_t seed) : type_(type), random_(seed) {}

  int32_t input(uint32_t height, uint32_t width, uint32_t channels, float scale = 0.05F,
                int32_t zeroPoint = 7);
  int32_t convolution(int32_t in, uint32_t height, uint32_t width, uint32_t outputs, uint32_t stride = 1,
                      Padding padding = {});
  int32_t transposeConvolution(int32_t in, uint32_t height, uint32_t width, uint32_t outputs,
                               Padding padding = {});
  int32_t resize(int32_t in, ResizeAlgorithm algorithm, uint32_t height, uint32_t width);
  std::vector<int32_t> split(int32_t in, uint32_t axis, std::vector<uint32_t> sizes);
  int32_t depthwise(int32_t in, uint32_t size, uint32_t stride = 1, Padding padding = {});
  int32_t fullyConnected(int32_t in, uint32_t outputs);
  int32_t pooling(int32_t in, PoolingType type, uint32_t size, uint32_t stride, Padding padding = {});
  int32_t unary(Operator op, int32_t in);
  int32_t relu(int32_t in, int32_t lower, int32_t upper);
  int32_t requantize(int32_t in, float scale, int32_t zeroPoint);
  int32_t binary(Operator op, int32_t a, int32_t b, float scale, int32_t zeroPoint);
  int32_t reshape(int32_t in, Shape shape);
  int32_t concatenation(const std::vector<int32_t>& in, uint32_t axis, float scale = 0.05F,
                        int32_t zeroPoint = 7);
  int32_t add(Operation operation, const std::vector<int32_t>& in, std::vector<uint8_t> weights = {},
              std::vector<int32_t> biases = {});
  void output(int32_t tensor) { network_.outputs.push_back(tensor); }

  const Network& network() const { return network_; }
  Network& network() { return network_; }
  std::vector<std::vector<uint8_t>> randomInputs();
  std::mt19937& random() { return random_; }
  int32_t unsignedZeroPoint(int32_t zeroPoint) const {
    return type_ == DataType::U8 ? zeroPoint : zeroPoint + 128;
  }
  int32_t zeroPoint(int32_t ofUnsigned) const {
    return type_ == DataType::U8 ? ofUnsigned : ofUnsigned - 128;
  }

 private:
  int32_t weighted(Operation operation, int32_t in);

  DataType type_;
  std::mt19937 random_;
  Network network_;
};

}  // namespace carina::ethosn::test
