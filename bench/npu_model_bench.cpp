// SPDX-License-Identifier: Apache-2.0
// Speed of the NPU model: simulated multiply-accumulates per second for single layers and for the layers of
// MobileNetV2 1.0 224, compared with the machine's copy and multiply throughput.
#include <benchmark/benchmark.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "npu/isa/blockconfig.hpp"
#include "npu/isa/stream.hpp"
#include "npu/model/kernels.hpp"
#include "npu/model/model.hpp"
#include "npu/weights/scale_records.hpp"
#include "npu/weights/weight_codec.hpp"

namespace {

/// CARINA_BENCH_WITHOUT: Highway vector instruction sets (HWY_TARGETS, a number) that this run does not use.
[[maybe_unused]] const bool kLeftOut = [] {
  const char* const without = std::getenv("CARINA_BENCH_WITHOUT");
  if (without != nullptr) hwy::DisableTargets(std::strtoll(without, nullptr, 0));
  return without != nullptr;
}();

using namespace carina;
using namespace carina::npu;

/// Builds a command stream of random layers in one arena, with its constants.
class Network {
 public:
  explicit Network(const char* targetName)
      : machine_(*makeMachine(targetName, "", "")), writer_(*machine_.target) {}

  /// Appends a convolution whose input is the previous output; returns its MACs.
  void conv(int height, int width, int ifmDepth, int ofmDepth, int kernel, int stride, bool depthwise) {
    const Target& target = *machine_.target;
    KernelOperation op;
    op.kind = depthwise ? OperationKind::Depthwise : OperationKind::Conv;
    op.kernel = {kernel, kernel, stride, stride, 1, 1};
    const int oh = (height + stride - 1) / stride, ow = (width + stride - 1) / stride;
    op.padding = {kernel / 2, kernel / 2, 0, 0};
    op.padding.bottom = (oh - 1) * stride + kernel - height - op.padding.top;
    op.padding.right = (ow - 1) * stride + kernel - width - op.padding.left;
    place(op.ifm, height, width, ifmDepth, in_);
    place(op.ofm, oh, ow, ofmDepth, in_ == 0 ? kArena / 2 : 0);
    in_ = in_ == 0 ? kArena / 2 : 0;
    op.ifm.zeroPoint = -3;
    op.ofm.zeroPoint = 5;
    op.activation.min = -128;
    op.activation.max = 127;
    block(op);

    const WeightShape shape{ofmDepth, kernel, kernel, depthwise ? 1 : ifmDepth};
    WeightOrder order;
    order.ethosU85 = target.isU85();
    order.macs = target.macs;
    order.streams = target.weightStreams;
    order.ofmUblockDepth = target.isU85() ? op.microblock.c : microblocks(target).front().c;
    order.ofmBlockDepth = op.block.c;
    order.traversal = depthwise ? WeightTraversal::Depthwise : WeightTraversal::DepthFirst;
    order.strideX = order.strideY = stride;
    std::vector<int8_t> weights(static_cast<size_t>(shape.elements()));
    std::normal_distribution<double> normal(0, 20);
    for (int8_t& w : weights) w = static_cast<int8_t>(std::clamp(normal(random_), -127.0, 127.0));
    const auto view = depthwise ? WeightView::hwc(weights.data(), DType::Int8, shape)
                                : WeightView::ohwi(weights.data(), DType::Int8, shape);
    const auto encoded = *encodeWeights(view, order, {0, ofmDepth});
    op.weights.emplace();
    for (size_t s = 0; s < encoded.streams.size(); ++s) op.weights->weights[s] = append(encoded.streams[s]);
    std::vector<ScaleRecord> records(static_cast<size_t>(ofmDepth), ScaleRecord{1234, 0x60000000, 40});
    const auto scales = *encodeScales(records, target, scaleFormat(target, op.accumulator), op.microblock.c);
    for (size_t s = 0; s < scales.size(); ++s) op.weights->scales[s] = append(scales[s]);
    if (!writer_.add(Operation(op)).ok()) std::abort();
    macs_ += shape.elements() * oh * ow;
  }

  void finish() {
    if (!writer_.add(Operation(Stop{})).ok()) std::abort();
    stream_.assign(writer_.words().begin(), writer_.words().end());
    arena_.resize(kArena + 4096);
    for (std::byte& b : arena_) b = static_cast<std::byte>(random_());
    bus_.map(0x1000000, std::as_bytes(std::span<const uint32_t>(stream_)));
    bus_.map(0x10000000, std::span<const std::byte>(constants_));
    bus_.map(0x40000000, std::span<std::byte>(arena_));
  }

  std::unique_ptr<Npu> device(bool parallel, bool timing) {
    ModelOptions options;
    options.parallel = parallel;
    options.timing = timing;
    return std::make_unique<Npu>(machine_, bus_, options);
  }
  void run(Npu& npu) {
    npu.write32(0x0010, 0x1000000);  // QBASE
    npu.write32(0x0020, static_cast<uint32_t>(stream_.size() * 4));
    npu.write32(0x0080, 0x10000000);  // BASEP0, BASEP1
    npu.write32(0x0088, 0x40000000);
    npu.write32(0x0008, 1);
    npu.run();
    if (npu.fault()) std::abort();
    npu.write32(0x0008, 2);
  }
  int64_t macs() const { return macs_; }

 private:
  static constexpr uint64_t kArena = 8 << 20;

  void place(FeatureMap& map, int h, int w, int c, uint64_t base) {
    map.height = h;
    map.width = w;
    map.depth = c;
    map.layout = c >= 16 ? Layout::NHCWB16 : Layout::NHWC;
    map.region = 1;
    map.base[0] = base;
    map.height0 = map.height1 = h;
    map.width0 = w;
    map.strideX = c >= 16 ? 16 : c;
    map.strideC = int64_t{16} * w;
    map.strideY = c >= 16 ? map.strideC * ((c + 15) / 16) : int64_t{c} * w;
  }
  void block(KernelOperation& op) {
    const Target& target = *machine_.target;
    op.microblock = preferredMicroblock(target, op);
    const BlockShape ub = target.isU85() ? op.microblock : microblocks(target).front();
    op.block = {ub.h * 2, ub.w * 4, std::max(ub.c, 16)};
  }
  AddressRange append(const std::vector<uint8_t>& bytes) {
    constants_.resize((constants_.size() + 15) / 16 * 16);
    const AddressRange range{constants_.size(), bytes.size()};
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    constants_.insert(constants_.end(), first, first + bytes.size());
    return range;
  }

  Machine machine_;
  StreamWriter writer_;
  MappedMemory bus_;
  std::vector<uint32_t> stream_;
  std::vector<std::byte> constants_, arena_;
  uint64_t in_ = 0;
  int64_t macs_ = 0;
  std::mt19937 random_{1};
};

void mobileNetV2(Network& network) {
  network.conv(224, 224, 3, 32, 3, 2, false);
  int size = 112, depth = 32;
  const int rows[][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                         {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  for (const auto& [expand, out, repeat, firstStride] : rows) {
    for (int i = 0; i < repeat; ++i) {
      const int stride = i == 0 ? firstStride : 1;
      if (expand > 1) network.conv(size, size, depth, depth * expand, 1, 1, false);
      network.conv(size, size, depth * expand, depth * expand, 3, stride, true);
      const int inner = depth * expand;
      size = (size + stride - 1) / stride;
      network.conv(size, size, inner, out, 1, 1, false);
      depth = out;
    }
  }
  network.conv(size, size, depth, 1280, 1, 1, false);
}

void report(benchmark::State& state, int64_t macs) {
  state.counters["MAC/s"] =
      benchmark::Counter(static_cast<double>(macs * state.iterations()), benchmark::Counter::kIsRate);
}

/// Returns the steps of one run (model/work.hpp).
int64_t layer(benchmark::State& state, int size, int ifm, int ofm, int kernel, bool depthwise) {
  Network network("ethos-u55-128");
  network.conv(size, size, ifm, ofm, kernel, 1, depthwise);
  network.finish();
  auto npu = network.device(false, false);
  for (auto _ : state) network.run(*npu);
  report(state, network.macs());
  return npu->stats().work;
}
BENCHMARK_CAPTURE(layer, conv3x3_56_128, 56, 128, 128, 3, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(layer, conv1x1_56_256, 56, 256, 256, 1, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(layer, conv3x3_7_512, 7, 512, 512, 3, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(layer, depthwise3x3_112_96, 112, 96, 96, 3, true)->Unit(benchmark::kMillisecond);

/// Steps per nanosecond (model/work.hpp): the assumed cost of a layer divided by its time; a value of 1 or
/// more meets the guarantee of base/work_budget.hpp.
void steps(benchmark::State& state, int size, int ifm, int ofm, int kernel, bool depthwise) {
  const int64_t work = layer(state, size, ifm, ofm, kernel, depthwise);
  state.counters["step/ns"] =
      benchmark::Counter(1e-9 * static_cast<double>(work * state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(steps, conv3x3_64_128, 64, 128, 128, 3, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, conv1x1_64_256, 64, 256, 256, 1, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, conv1x1_64_16_16, 64, 16, 16, 1, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, conv3x3_256_1_to_1, 256, 1, 1, 3, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, conv9x9_256_1_to_1, 256, 1, 1, 9, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, conv9x9_128_1_to_64, 128, 1, 64, 9, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, conv3x3_128_64_to_1, 128, 64, 1, 3, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, conv3x3_128_32_to_12, 128, 32, 12, 3, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, conv1x1_16_1000_to_1, 16, 1000, 1, 1, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, depthwise3x3_64_96, 64, 96, 96, 3, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(steps, depthwise9x9_64_96, 64, 96, 96, 9, true)->Unit(benchmark::kMillisecond);

void mobileNet(benchmark::State& state, const char* target, bool cold, bool parallel) {
  Network network(target);
  mobileNetV2(network);
  network.finish();
  auto npu = network.device(parallel, true);
  for (auto _ : state) {
    if (cold) npu = network.device(parallel, true);
    network.run(*npu);
  }
  report(state, network.macs());
}
BENCHMARK_CAPTURE(mobileNet, u55_warm_one_core, "ethos-u55-128", false, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mobileNet, u55_cold_one_core, "ethos-u55-128", true, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mobileNet, u85_warm_one_core, "ethos-u85-256", false, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mobileNet, u55_warm_all_cores, "ethos-u55-128", false, true)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// Copy bandwidth of the machine: the lower bound for gathering and storing feature maps.
void copyBandwidth(benchmark::State& state) {
  std::vector<char> from(size_t{64} << 20, 1), to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(from.size()) * state.iterations());
}
BENCHMARK(copyBandwidth)->Unit(benchmark::kMillisecond);

/// The dot product kernel on data in the first-level cache: the multiply throughput of this machine.
void multiplyThroughput(benchmark::State& state) {
  constexpr int64_t kChannels = 48, kPairs = 64, kPositions = 64;
  const std::vector<int16_t> dense(kChannels * kPairs * 2, 3), x(kPairs * 2 + 64, 2);
  const model::DotWeights weights = model::packDotWeights(dense.data(), kChannels, 1, kPairs);
  const model::DotWindow window{{0}, kPairs};
  const std::vector<const int16_t*> start(kPositions, x.data());
  std::vector<int32_t> acc(static_cast<size_t>(kPositions * weights.paddedChannels));
  for (auto _ : state) {
    model::dotProducts(window, weights, start.data(), kPositions, acc.data());
    benchmark::DoNotOptimize(acc.data());
  }
  report(state, kChannels * kPairs * 2 * kPositions);
  state.SetLabel(model::instructionSet());
}
BENCHMARK(multiplyThroughput);

}  // namespace
