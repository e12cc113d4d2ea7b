// SPDX-License-Identifier: Apache-2.0
// Weight and scale streams (weight_streams.hpp). Layout in memory: ethosu-weights 6; records:
// ethosu-weights 5.
#include "compiler/schedule/weight_streams.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "compiler/dialect/npu_ir.hpp"
#include "npu/weights/scale_records.hpp"

namespace carina::compiler {
namespace {

void alignTo16(std::vector<std::byte>& out) {
  out.resize(static_cast<size_t>(roundUp(static_cast<int64_t>(out.size()), 16)));
}

/// Scales in hardware form: a unit scale as other compilers write it, even multipliers halved if they exceed
/// the field (never across the shift at which double rounding begins).
std::pair<int64_t, int64_t> hardwareScale(int64_t multiplier, int64_t shift, npu::ScaleFormat format) {
  const int bits = format == npu::ScaleFormat::U55 ? 32 : format == npu::ScaleFormat::U85 ? 31 : 15;
  if (shift == 0 && multiplier == 1) {
    const int64_t unit = std::min(bits - 1, 30);
    return {int64_t{1} << unit, unit};
  }
  while (multiplier >= int64_t{1} << bits && multiplier % 2 == 0 && shift > 0 && shift != 32) {
    multiplier /= 2;
    --shift;
  }
  return {multiplier, shift};
}

/// The records of some output channels, one stream per core.
Result<std::vector<std::vector<uint8_t>>> scaleStreams(const ir::Node* node, const Tensor& bias,
                                                       const npu::KernelOperation& op,
                                                       npu::DepthSlice channels, const npu::Target& target) {
  const npu_ir::OutputStage stage = npu_ir::outputStage(node);
  const npu::ScaleFormat format = npu::scaleFormat(target, op.accumulator);
  std::vector<npu::ScaleRecord> records;
  for (int32_t c = 0; c < channels.depth; ++c) {
    const auto channel = static_cast<size_t>(channels.offset + c);
    const size_t s = stage.perChannel() ? channel : 0;
    const auto [multiplier, shift] = hardwareScale(stage.multipliers[s], stage.shifts[s], format);
    records.push_back({bias.integerAt(static_cast<int64_t>(channel)), static_cast<uint32_t>(multiplier),
                       static_cast<uint8_t>(shift)});
  }
  return npu::encodeScales(records, target, format, op.microblock.c);
}

/// Appends a stream to the slice; returns where it is.
npu::AddressRange append(EncodedSlice& slice, const std::vector<uint8_t>& stream) {
  const npu::AddressRange range{slice.bytes.size(), stream.size()};
  const ByteSpan bytes = std::as_bytes(std::span(stream));
  slice.bytes.insert(slice.bytes.end(), bytes.begin(), bytes.end());
  alignTo16(slice.bytes);
  return range;
}

}  // namespace

bool canBeSparse(const ir::Node* node) {
  const Tensor& weight = node->operand(1)->constant();
  const auto& zeroPoints = node->attributeAs<ir::Ints>(node->def().attributes.size() - 1);
  const int64_t depth = weight.dim(3), rows = weight.numElements() / depth;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t channel = row / (rows / weight.dim(0));
    const int64_t zero = zeroPoints[zeroPoints.size() > 1 ? static_cast<size_t>(channel) : 0];
    for (int64_t c = 0, used = 0; c < depth; ++c) {
      if (c % 4 == 0) used = 0;
      const int64_t value = weight.integerAt(row * depth + c) - zero;
      used += value != 0;
      if (used > 2 || std::abs(value) > 127) return false;
    }
  }
  return true;
}

Result<EncodedSlice> encodeSlice(const ir::Node* node, const npu::KernelOperation& op,
                                 npu::DepthSlice channels, const npu::Target& target,
                                 npu::CodingEffort effort) {
  const bool depthwise = op.kind == npu::OperationKind::Depthwise;
  const Tensor& weight = node->operand(1)->constant();
  const Tensor& bias = node->operand(2)->constant();
  std::vector<int32_t> zeroPoints;
  for (const int64_t z : node->attributeAs<ir::Ints>(node->def().attributes.size() - 1)) {
    zeroPoints.push_back(static_cast<int32_t>(z));
  }
  const auto dim = [&](int64_t i) { return static_cast<int32_t>(weight.dim(i)); };
  const npu::WeightShape shape = depthwise ? npu::WeightShape{dim(2), dim(0), dim(1), 1}
                                           : npu::WeightShape{dim(0), dim(1), dim(2), dim(3)};
  const npu::WeightView view =
      depthwise ? npu::WeightView::hwc(weight.bytes().data(), weight.dtype(), shape, zeroPoints)
                : npu::WeightView::ohwi(weight.bytes().data(), weight.dtype(), shape, zeroPoints);
  const npu::WeightOrder order = npu::weightOrder(target, op);
  CARINA_TRY(const npu::EncodedWeights encoded,
             npu::encodeWeights(view, order, channels, npu::WeightEncoding::Standard, effort));

  CARINA_TRY(const auto scales, scaleStreams(node, bias, op, channels, target));

  EncodedSlice slice;
  slice.channels = channels;
  slice.streams = *op.weights;
  size_t total = 0;
  for (const auto* streams : {&scales, &encoded.streams}) {
    for (const std::vector<uint8_t>& stream : *streams) total += stream.size() + 15;
  }
  slice.bytes.reserve(total);
  // Each core's records precede its weights; the decoders of U85 share one set of records.
  for (size_t s = 0; s < std::max(scales.size(), encoded.streams.size()); ++s) {
    if (s < scales.size()) slice.streams.scales[s] = append(slice, scales[s]);
    if (s < encoded.streams.size()) slice.streams.weights[s] = append(slice, encoded.streams[s]);
  }
  return slice;
}

Result<EncodedSlice> encodeScales(const ir::Node* node, const npu::KernelOperation& op,
                                  const npu::Target& target) {
  const Tensor bias = Tensor::zeros(DType::Int32, {op.ofm.depth});
  EncodedSlice slice;
  slice.channels = {0, op.ofm.depth};
  slice.streams = *op.weights;
  CARINA_TRY(const auto scales, scaleStreams(node, bias, op, slice.channels, target));
  for (size_t s = 0; s < scales.size(); ++s) slice.streams.scales[s] = append(slice, scales[s]);
  return slice;
}

WeightContents::WeightContents(const std::vector<const ir::Node*>& nodes) {
  struct Content {
    const ir::Node* first;
    int32_t number;
  };
  const auto bytesOf = [](const ir::Node* node, size_t operand) {
    return node->operand(operand)->constant().bytes();
  };
  const auto sameBytes = [&](const ir::Node* a, const ir::Node* b, size_t operand) {
    const ByteSpan first = bytesOf(a, operand), second = bytesOf(b, operand);
    return first.size() == second.size() &&
           (first.data() == second.data() || std::equal(first.begin(), first.end(), second.begin()));
  };
  const auto zeroPoints = [](const ir::Node* node) -> const ir::Ints& {
    return node->attributeAs<ir::Ints>(node->def().attributes.size() - 1);
  };
  std::unordered_multimap<size_t, Content> known;
  for (const ir::Node* node : nodes) {
    const npu_ir::OutputStage stage = npu_ir::outputStage(node);
    size_t hash = 0;
    const auto add = [&hash](const void* data, size_t bytes) {
      const std::string_view text(static_cast<const char*>(data), bytes);
      hash = (hash ^ std::hash<std::string_view>()(text)) * size_t{0x9e3779b97f4a7c15};
    };
    const auto addInts = [&add](const ir::Ints& values) {
      add(values.data(), values.size() * sizeof(int64_t));
    };
    for (const size_t operand : {size_t{1}, size_t{2}})
      add(bytesOf(node, operand).data(), bytesOf(node, operand).size());
    addInts(stage.multipliers);
    addInts(stage.shifts);
    addInts(zeroPoints(node));
    int32_t number = -1;
    const auto [first, last] = known.equal_range(hash);
    for (auto it = first; it != last && number < 0; ++it) {
      const ir::Node* other = it->second.first;
      const npu_ir::OutputStage otherStage = npu_ir::outputStage(other);
      if (other->operand(1)->type == node->operand(1)->type && otherStage.multipliers == stage.multipliers &&
          otherStage.shifts == stage.shifts && zeroPoints(other) == zeroPoints(node) &&
          sameBytes(node, other, 1) && sameBytes(node, other, 2)) {
        number = it->second.number;
      }
    }
    if (number < 0) {
      number = static_cast<int32_t>(known.size());
      known.emplace(hash, Content{node, number});
      bytes_.push_back(estimateEncodedBytes(node));
    }
    numbers_.emplace(node, number);
  }
}

int32_t StreamSets::indexOf(const ir::Node* node, const npu::KernelOperation& op) {
  const npu::WeightOrder order = npu::weightOrder(target_, op);
  std::vector<Member>& members = members_[contents_.of(node)];
  for (const Member& member : members) {
    if (member.order == order) return member.set;
  }
  members.push_back({order, count_});
  return count_++;
}

int64_t estimateEncodedBytes(const ir::Node* node) {
  const ir::Value* weight = node->operand(1);
  const int64_t count = weight->numElements();
  // The encoding comes close to the entropy of the weights, and is rarely worse than a byte each.
  constexpr double kOverhead = 1.08;
  // Four counters per code keep increments for equal neighbours independent.
  std::array<std::array<int64_t, 256>, 4> counts{};
  const ByteSpan codes = weight->constant().bytes();
  for (size_t i = 0; i < codes.size(); ++i) ++counts[i % 4][static_cast<size_t>(codes[i])];
  double bits = 0;
  for (size_t code = 0; code < counts[0].size(); ++code) {
    const int64_t frequency = counts[0][code] + counts[1][code] + counts[2][code] + counts[3][code];
    if (frequency > 0)
      bits -= static_cast<double>(frequency) *
              std::log2(static_cast<double>(frequency) / static_cast<double>(count));
  }
  const bool bytes = std::ssize(weight->constant().bytes()) == count;
  const int64_t weights =
      bytes ? std::min(count, static_cast<int64_t>(bits * kOverhead / 8) + count / 32) : count;
  return roundUp(weights + npu::kScaleRecordBytes * node->operand(2)->numElements() + 64, 16);
}

}  // namespace carina::compiler
