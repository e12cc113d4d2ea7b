// SPDX-License-Identifier: Apache-2.0
// Ordering and entropy coding combined.
#include "npu/weights/weight_codec.hpp"

#include <algorithm>

#include "npu/weights/fwd.hpp"
#include "npu/weights/swd.hpp"

namespace carina::npu {
namespace {

/// Number of weights of one decoder that stay contiguous when a fast stream interleaves the decoders.
int64_t fastBlock(const WeightOrder& order) {
  const bool partKernel = order.traversal == WeightTraversal::PartKernelFirst;
  const int64_t tapRound = !partKernel ? 1 : order.ifmBits == 16 || order.sparse ? 10 : 5;
  const int64_t iub = partKernel && order.ifmBits == 16 && !order.sparse ? 8 : ifmBlockDepth(order);
  return order.ofmUblockDepth * iub * tapRound / order.streams;
}

Status checkFast(const WeightOrder& order) {
  if (!order.ethosU85) return fail(Code::InvalidWeights, "the fast weight format exists on Ethos-U85 only");
  if (order.traversal == WeightTraversal::Depthwise)
    return fail(Code::InvalidWeights, "the fast weight format does not support depthwise operations");
  return {};
}

Result<std::vector<int16_t>> interleaved(const WeightView& view, const WeightOrder& order, DepthSlice slice) {
  std::vector<std::vector<int16_t>> streams;
  for (int s = 0; s < order.streams; ++s) {
    CARINA_TRY(std::vector<int16_t> stream, orderWeights(view, order, slice, s));
    streams.push_back(std::move(stream));
  }
  if (streams.size() == 1) return std::move(streams[0]);
  const auto block = static_cast<size_t>(fastBlock(order));
  std::vector<int16_t> all;
  all.reserve(streams[0].size() * streams.size());
  for (size_t at = 0; at < streams[0].size(); at += block) {
    for (const std::vector<int16_t>& stream : streams) {
      const size_t end = std::min(stream.size(), at + block);
      all.insert(all.end(), stream.begin() + static_cast<std::ptrdiff_t>(at),
                 stream.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  return all;
}

std::vector<std::vector<int16_t>> separated(const std::vector<int16_t>& all, const WeightOrder& order) {
  const auto streams = static_cast<size_t>(order.streams), block = static_cast<size_t>(fastBlock(order));
  std::vector<std::vector<int16_t>> out(streams);
  for (size_t at = 0, s = 0; at < all.size(); at += block, s = (s + 1) % streams) {
    const size_t end = std::min(all.size(), at + block);
    out[s].insert(out[s].end(), all.begin() + static_cast<std::ptrdiff_t>(at),
                  all.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return out;
}

}  // namespace

int64_t EncodedWeights::bytes() const {
  int64_t sum = 0;
  for (const std::vector<uint8_t>& stream : streams) sum += static_cast<int64_t>(stream.size());
  return sum;
}

Result<EncodedWeights> encodeWeights(const WeightView& view, const WeightOrder& order, DepthSlice slice,
                                     WeightEncoding encoding, CodingEffort effort) {
  EncodedWeights encoded;
  encoded.streams.resize(static_cast<size_t>(std::max(order.streams, 1)));
  if (encoding == WeightEncoding::Fast) {
    CARINA_RETURN_IF_ERROR(checkFast(order));
    CARINA_TRY(const std::vector<int16_t> weights, interleaved(view, order, slice));
    encoded.weights = static_cast<int64_t>(weights.size());
    CARINA_TRY(encoded.streams[0], encodeFwd(weights, order.sparse));
    return encoded;
  }
  for (int s = 0; s < order.streams; ++s) {
    CARINA_TRY(std::vector<int16_t> weights, orderWeights(view, order, slice, s));
    if (weights.empty()) continue;  // a core without channels
    encoded.weights += static_cast<int64_t>(weights.size());
    encoded.streams[static_cast<size_t>(s)] = encodeSwdInPlace(weights, effort);
  }
  return encoded;
}

Result<std::vector<int16_t>> decodeWeights(std::span<const ByteSpan> streams, const WeightShape& shape,
                                           const WeightOrder& order, WeightEncoding encoding) {
  CARINA_RETURN_IF_ERROR(checkWeightOrder(shape, order));
  const int active = activeStreams(shape, order);
  std::vector<std::vector<int16_t>> decoded;
  if (encoding == WeightEncoding::Fast) {
    CARINA_RETURN_IF_ERROR(checkFast(order));
    if (streams.empty()) return fail(Code::InvalidWeights, "the operation has no weight stream");
    const int64_t count = streamWeightCount(shape, order, 0) * order.streams;
    CARINA_TRY(const std::vector<int16_t> all, decodeFwd(streams[0], static_cast<size_t>(count)));
    decoded = separated(all, order);
    return restoreWeights(decoded, shape, order);
  }
  if (streams.size() < static_cast<size_t>(active)) {
    return fail(Code::InvalidWeights, "{} weight streams given, the operation has {}", streams.size(),
                active);
  }
  for (int s = 0; s < active; ++s) {
    const auto expected = static_cast<size_t>(streamWeightCount(shape, order, s));
    auto weights = decodeSwd(streams[static_cast<size_t>(s)], expected);
    if (!weights.ok()) return std::move(weights).error().at(fmt::format("weight stream {}", s));
    if (weights->size() != expected) {
      return fail(Code::InvalidWeights, "weight stream {} holds {} weights, the operation consumes {}", s,
                  weights->size(), expected);
    }
    decoded.push_back(std::move(*weights));
  }
  return restoreWeights(decoded, shape, order);
}

WeightTraversal preferredTraversal(const WeightShape& shape, const Target& target, int ifmBits, bool sparse) {
  const auto used = [](int32_t size, int32_t multiple) {
    const int32_t whole = (size + multiple - 1) / multiple * multiple;
    return static_cast<double>(size) / whole;
  };
  const int32_t taps = shape.height * shape.width;
  if (target.isU85()) {
    const int32_t s = sparse ? 10 : 5, least = sparse ? 4 : 2;
    const int32_t rounded = taps / s * s + (taps % s == 0 ? 0 : std::max(taps % s, least));
    const double partKernel = used(shape.ifmDepth, 16) * taps / rounded;
    return partKernel >= used(shape.ifmDepth, sparse ? 128 : 64) ? WeightTraversal::PartKernelFirst
                                                                 : WeightTraversal::DepthFirst;
  }
  if (shape.ifmDepth <= 8) return WeightTraversal::PartKernelFirst;
  const double partKernel = used(shape.ifmDepth, 8) * used(taps, ifmBits == 16 ? 2 : 4);
  return partKernel >= used(shape.ifmDepth, ifmBits == 16 ? 16 : 32) ? WeightTraversal::PartKernelFirst
                                                                     : WeightTraversal::DepthFirst;
}

}  // namespace carina::npu
