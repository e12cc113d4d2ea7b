// SPDX-License-Identifier: Apache-2.0
// Weight streams that operations write (coded_weights.hpp).
#include "compiler/dialect/coded_weights.hpp"

#include "base/shape.hpp"

namespace carina::npu_ir {

int64_t CodedOrder::channels(int64_t depth, int64_t stream) const {
  return std::max<int64_t>(ceilDiv(depth - stream, streams), 0);
}

int64_t CodedOrder::blockChannels(int64_t stream) const {
  return (blockDepth + streams - 1 - stream) / streams;
}

int64_t CodedOrder::groups(int64_t ofmDepth, int64_t ifmDepth, int64_t stream) const {
  int64_t padded = 0;
  for (int64_t left = channels(ofmDepth, stream), block = blockChannels(stream); left > 0; left -= block)
    padded += roundUp(std::min(left, block), ublockDepth);
  return padded * roundUp(ifmDepth, ifmBlock) / kGroupWeights;
}

int64_t CodedOrder::streamBytes(int64_t ofmDepth, int64_t ifmDepth, int64_t stream) const {
  const int64_t count = groups(ofmDepth, ifmDepth, stream);
  return count == 0 ? 0 : roundUp(kSecondGroupByte + (count - 1) * kCodeBits + 1, 16);
}

int64_t CodedOrder::bytes(int64_t ofmDepth, int64_t ifmDepth) const {
  int64_t sum = 0;
  for (int64_t s = 0; s < streams; ++s) sum += streamBytes(ofmDepth, ifmDepth, s);
  return sum;
}

CodedOrder codedOrder(const ir::Node* codedConv) {
  const CodedConv op(const_cast<ir::Node*>(codedConv));
  return {op.streams(), op.blockDepth(), op.ublockDepth(), op.ifmBlock()};
}

std::array<uint8_t, kSecondGroupByte> codedHeaders(int64_t groups) {
  std::array<uint8_t, kSecondGroupByte> bytes{};
  const auto header = [&](int64_t bit, int64_t weights) {
    const auto put = [&](int64_t value, int64_t width) {
      for (int64_t i = 0; i < width; ++i, ++bit) {
        if ((value >> i & 1) != 0) bytes[static_cast<size_t>(bit / 8)] |= static_cast<uint8_t>(1 << bit % 8);
      }
    };
    put(6, 3);             // no zero runs
    put(weights - 1, 15);  // how many
    put(7, 3);             // raw
    put(0, 1);             // no truncated quotients
    put(1, 1);             // a palette is defined:
    put(0, 5);             // direct offset 0,
    put(0, 5);             // no entries,
    put(kCodeBits - 2, 3);
  };
  header(0, kGroupWeights);
  header(kFirstGroupBit + kGroupWeights * kCodeBits, (groups - 1) * kGroupWeights);
  return bytes;
}

}  // namespace carina::npu_ir
