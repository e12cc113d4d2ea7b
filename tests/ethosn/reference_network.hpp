// SPDX-License-Identifier: Apache-2.0
// A slow, simple interpreter for the text descriptions that accompany compiled networks, one operator per
// line:
//   %1 = conv %0 kernel 3 3 stride 1 pad_tblr 1 1 1 1 wzp 3 wscales 0.25 -> 1 16 18 24 zp 10 scale 16 type u8
// Lines of weights and biases in hexadecimal follow, and "output %1". The interpreter shares no code with the
// model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carina::ethosn::test {

struct ReferenceTensor {
  int h = 0, w = 0, c = 0, zeroPoint = 0;
  float scale = 1;
  bool isSigned = false;
  std::vector<int> values;  // [h][w][c]
};

class ReferenceNetwork {
 public:
  /// Throws std::runtime_error on unknown text.
  explicit ReferenceNetwork(const std::string& text);
  /// Inputs and outputs are bytes, NHWC.
  std::vector<std::vector<uint8_t>> run(const std::vector<std::vector<uint8_t>>& inputs) const;

  /// The zero point of each input, as a byte.
  std::vector<uint8_t> inputZeroPoints() const;

 private:
  struct Node {
    std::string operation;
    std::vector<int> operands;
    ReferenceTensor result;  // without values
    int kh = 1, kw = 1, stride = 1, top = 0, bottom = 0, left = 0, right = 0, weightZeroPoint = 0, low = 0,
        high = 0, part = 0;
    float alpha = 0;
    std::vector<float> weightScales;
    std::vector<uint8_t> weights;
    std::vector<int32_t> bias;
  };
  static ReferenceTensor evaluate(const Node& node, const std::vector<ReferenceTensor>& values,
                                  int splitOffset);
  static bool windows(const Node& node, const std::vector<ReferenceTensor>& values, ReferenceTensor& out);
  static bool arithmetic(const Node& node, const std::vector<ReferenceTensor>& values, ReferenceTensor& out);
  static bool moves(const Node& node, const std::vector<ReferenceTensor>& values, int splitOffset,
                    ReferenceTensor& out);
  std::vector<Node> nodes_;
  std::vector<int> outputs_;
};

}  // namespace carina::ethosn::test
