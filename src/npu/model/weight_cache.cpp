// SPDX-License-Identifier: Apache-2.0
// Weight decoding and its cache (weight_cache.hpp).
#include "npu/model/weight_cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "npu/isa/blockconfig.hpp"

namespace carina::npu::model {
namespace {

constexpr size_t kCacheBytes = size_t{384} << 20;

uint64_t hashBytes(std::span<const std::byte> bytes, uint64_t seed) {
  constexpr uint64_t kPrime = 0x9e3779b97f4a7c15u;
  uint64_t h[4] = {seed ^ kPrime, seed + kPrime, ~seed, seed ^ bytes.size()};
  size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32) {
    for (size_t k = 0; k < 4; ++k) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + i + 8 * k, sizeof word);
      h[k] = (h[k] ^ word) * kPrime;
      h[k] ^= h[k] >> 29;
    }
  }
  for (; i < bytes.size(); ++i) h[0] = (h[0] ^ static_cast<uint64_t>(bytes[i])) * kPrime;
  return h[0] ^ (h[1] << 1) ^ (h[2] << 2) ^ (h[3] << 3);
}

/// Rows of [channel][run][2 * pairs] from OHWI weights, for runs with an odd number of elements.
std::vector<int16_t> padRuns(const std::vector<int16_t>& ohwi, int64_t channels, int64_t runs,
                             int64_t elements, int64_t pairs) {
  std::vector<int16_t> padded(static_cast<size_t>(channels * runs * pairs * 2), int16_t{0});
  for (int64_t i = 0; i < channels * runs; ++i) {
    std::copy_n(ohwi.begin() + i * elements, elements, padded.begin() + i * pairs * 2);
  }
  return padded;
}

}  // namespace

WindowShape windowShape(const Kernel& kernel, int64_t ifmDepth) {
  if (kernel.dilationX == 1) return {kernel.height, kernel.width * ifmDepth};
  return {int64_t{kernel.height} * kernel.width, ifmDepth};
}

Outcome WeightCache::get(const Target& target, const KernelOperation& op, int64_t channels,
                         AddressMap& memory, std::shared_ptr<const DecodedWeights>& result) {
  if (!op.weights) return makeFault(FaultKind::Parse, "convolution without weight streams");
  const WeightStreams& source = *op.weights;
  const bool depthwise = op.kind == OperationKind::Depthwise;
  WeightShape shape = weightShape(op);
  shape.ofmDepth = static_cast<int32_t>(channels);
  WeightOrder order = weightOrder(target, op);
  if (!target.architecture().choosesMicroblocks) order.ofmUblockDepth = microblocks(target).front().c;
  // With an idle second core, the NPU runs as if it had only one.
  if (target.cores == 2 && order.streams == 2 && channels > 1 && source.weights[1].length == 0)
    order.streams = 1;
  const WeightEncoding encoding = source.fastFormat ? WeightEncoding::Fast : WeightEncoding::Standard;
  if (const Status status = checkWeightOrder(shape, order); !status.ok()) {
    return makeFault(FaultKind::Parse, "{}", Status(status).error().message());
  }

  const int count = source.fastFormat ? 1 : activeStreams(shape, order);
  std::vector<ByteSpan> spans;
  uint64_t hash = static_cast<uint64_t>(encoding) + 1;
  for (int i = 0; i < count; ++i) {
    const AddressRange& range = source.weights[static_cast<size_t>(i)];
    if (range.length == 0) {
      OperationFault failed =
          makeFault(FaultKind::Parse, "weight stream {} is empty, but the operation has channels for it", i);
      failed.channel = static_cast<uint8_t>(Channel::Weights);
      return failed;
    }
    const std::byte* bytes = memory.resolve(source.weightRegion, range.address, range.length, Access::Read);
    if (bytes == nullptr) {
      OperationFault failed =
          makeFault(FaultKind::Bus, "weight stream {}: {} bytes at offset 0x{:x} are outside region {}", i,
                    range.length, range.address, source.weightRegion);
      failed.channel = static_cast<uint8_t>(Channel::Weights);
      return failed;
    }
    spans.emplace_back(bytes, range.length);
    hash = hashBytes(spans.back(), hash);
  }
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->hash != hash || entry->encoding != encoding || !(entry->shape == shape) ||
        !(entry->order == order))
      continue;
    const bool same = std::equal(spans.begin(), spans.end(), entry->streams.begin(), entry->streams.end(),
                                 [](ByteSpan a, const std::vector<std::byte>& b) {
                                   return a.size() == b.size() &&
                                          (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
                                 });
    if (!same) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    result = entry->weights;
    return std::nullopt;
  }

  Result<std::vector<int16_t>> decoded = decodeWeights(spans, shape, order, encoding);
  if (!decoded.ok()) {
    OperationFault failed = makeFault(FaultKind::WeightStream, "{}", decoded.error().message());
    failed.channel = static_cast<uint8_t>(Channel::Weights);
    return failed;
  }
  auto weights = std::make_shared<DecodedWeights>();
  weights->values = std::move(decoded).value();
  weights->absoluteSum.assign(static_cast<size_t>(channels), 0);
  int64_t zeros = 0;
  const int64_t perChannel = int64_t{shape.height} * shape.width * shape.ifmDepth;
  for (int64_t i = 0; i < static_cast<int64_t>(weights->values.size()); ++i) {
    const int32_t magnitude = std::abs(int32_t{weights->values[static_cast<size_t>(i)]});
    weights->absoluteSum[static_cast<size_t>(depthwise ? i % channels : i / perChannel)] += magnitude;
    weights->maxAbsolute = std::max(weights->maxAbsolute, magnitude);
    zeros += magnitude == 0 ? 1 : 0;
  }
  weights->maxAbsoluteSum = *std::max_element(weights->absoluteSum.begin(), weights->absoluteSum.end());
  weights->zeroShare =
      weights->values.empty() ? 0 : static_cast<double>(zeros) / static_cast<double>(weights->values.size());
  size_t bytes = weights->values.size() * sizeof(int16_t);
  if (!depthwise) {
    const WindowShape window = windowShape(op.kernel, op.ifm.depth);
    weights->runs = window.runs;
    weights->pairs = (window.elements + 1) / 2;
    weights->packed =
        window.elements % 2 == 0
            ? packDotWeights(weights->values.data(), channels, window.runs, weights->pairs)
            : packDotWeights(
                  padRuns(weights->values, channels, window.runs, window.elements, weights->pairs).data(),
                  channels, window.runs, weights->pairs);
    bytes += weights->packed.data.size();
  }
  result = weights;

  Entry entry;
  entry.hash = hash;
  entry.shape = shape;
  entry.order = order;
  entry.encoding = encoding;
  for (const ByteSpan span : spans) {
    entry.streams.emplace_back(span.begin(), span.end());
    bytes += span.size();
  }
  entry.weights = std::move(weights);
  entry.bytes = bytes;
  bytes_ += bytes;
  entries_.push_front(std::move(entry));
  while (bytes_ > kCacheBytes && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
  return std::nullopt;
}

}  // namespace carina::npu::model
