// SPDX-License-Identifier: Apache-2.0
// Writes programs of a few hundred bytes to a megabyte that request as much work as their commands and calls
// can, and graphs that do so: work that a reader, the checker, the NPU model, the kernels' budget and the
// interpreter must bound. scripts/time_hostile.py measures how they are handled.
//
// usage: hostile_programs OUT_DIR
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "hostile_graphs.hpp"
#include "npu/isa/blockconfig.hpp"
#include "npu/isa/payload.hpp"
#include "npu/isa/stream.hpp"
#include "npu/weights/swd.hpp"
#include "npu/weights/weight_order.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"

namespace {

using namespace carina;
using namespace carina::npu;

constexpr size_t kMostBytes = 1'000'000;  // of a file
constexpr uint32_t kArena = 8u << 20;
constexpr size_t kManyWords = 230'000;  // of a file below a megabyte

/// The commands of one delegate.
class Stream {
 public:
  explicit Stream(const char* target) : machine_(*makeMachine(target, "", "")), writer_(*machine_.target) {}

  const Target& target() const { return *machine_.target; }

  void add(Operation operation) {
    if (auto* kernel = std::get_if<KernelOperation>(&operation)) {
      settle(*kernel);
      if (kernel->weights) addWeights(*kernel);
    }
    const Status status = writer_.add(operation);
    if (!status.ok()) refused_ = Status(status).error().str();
  }
  /// Repeats the last operation; each repetition is one word.
  void repeat(size_t times) {
    std::vector<uint32_t> words(writer_.words().begin(), writer_.words().end());
    if (!words.empty()) words.insert(words.end(), times, words.back());
    words_ = std::move(words);
  }
  const pte::ByteVector& constants() const { return constants_; }
  /// Why an operation cannot be encoded for this target; empty if all can.
  const std::string& refused() const { return refused_; }

  std::vector<uint32_t> words() {
    if (words_.empty()) words_.assign(writer_.words().begin(), writer_.words().end());
    StreamWriter end(target());
    if (end.add(Stop{}).ok()) words_.insert(words_.end(), end.words().begin(), end.words().end());
    return words_;
  }

 private:
  /// Constant weights need few bytes, scale records ten per channel.
  void addWeights(KernelOperation& kernel) {
    WeightOrder order = weightOrder(target(), kernel);
    if (!target().isU85()) order.ofmUblockDepth = microblocks(target()).front().c;
    const WeightShape shape = weightShape(kernel);
    constexpr int64_t kMaxWeights = 64 << 20;
    for (int s = 0; s < activeStreams(shape, order) && s < 4; ++s) {
      const int64_t count = std::min(streamWeightCount(shape, order, s), kMaxWeights);
      kernel.weights->weights[static_cast<size_t>(s)] =
          append(encodeSwd(std::vector<int16_t>(static_cast<size_t>(count), 3)));
    }
    const int cores = order.ethosU85 ? 1 : order.streams;
    for (int core = 0; core < cores; ++core) {
      const size_t channels = static_cast<size_t>((kernel.ofm.depth + cores - 1) / cores);
      kernel.weights->scales[static_cast<size_t>(core)] = append(std::vector<uint8_t>(channels * 10));
    }
  }

  AddressRange append(const std::vector<uint8_t>& bytes) {
    constants_.resize((constants_.size() + 15) / 16 * 16);
    const AddressRange range{constants_.size(), (bytes.size() + 15) / 16 * 16};
    for (const uint8_t byte : bytes) constants_.push_back(static_cast<std::byte>(byte));
    constants_.resize((constants_.size() + 15) / 16 * 16);
    return range;
  }

  void settle(KernelOperation& kernel) const {
    kernel.microblock = preferredMicroblock(target(), kernel);
    const BlockShape ub = target().isU85() ? kernel.microblock : microblocks(target()).front();
    kernel.block = {ub.h, ub.w, std::max(ub.c, 16)};
    if (target().isU85()) return;
    if (const auto layout = BlockRules(target(), kernel).shram(kernel.block)) {
      kernel.ifmBufferEnd = layout->ifmEnd;
      kernel.ifm2BufferStart = layout->ifm2Start;
      kernel.accumulatorStart = layout->accumulatorStart;
    }
  }

  Machine machine_;
  StreamWriter writer_;
  std::vector<uint32_t> words_;
  std::string refused_;
  pte::ByteVector constants_ = pte::ByteVector(4096);
};

/// A feature map of this size. Unless `dense`, all strides are 0, so that it covers only a few bytes of the
/// arena.
FeatureMap mapOf(int h, int w, int c, ElementType type, uint64_t base, bool dense = false) {
  FeatureMap map;
  map.height = map.height0 = map.height1 = h;
  map.width = map.width0 = w;
  map.depth = c;
  map.type = type;
  map.region = 1;
  map.base[0] = base;
  if (!dense) return map;
  map.strideC = elementBytes(type);
  map.strideX = int64_t{c} * elementBytes(type);
  map.strideY = map.strideX * w;
  return map;
}

KernelOperation pool(int h, int w, int c, ElementType type, bool dense = false) {
  KernelOperation op;
  op.kind = OperationKind::Pool;
  op.pool = PoolMode::Max;
  op.globalScale = true;
  op.ofmScale = {1, 0, 0, Rounding::Natural};
  op.ifm = mapOf(h, w, c, type, 0, dense);
  op.ofm = mapOf(h, w, c, type, 4u << 20, dense);
  op.activation.min = static_cast<int32_t>(elementMin(type));
  op.activation.max = static_cast<int32_t>(elementMax(type));
  return op;
}

KernelOperation elementwise(ElementwiseMode mode, int h, int w, int c, ElementType type) {
  KernelOperation op = pool(h, w, c, type);
  op.kind = OperationKind::Elementwise;
  op.elementwise.mode = mode;
  if (!isUnary(mode)) op.ifm2 = mapOf(h, w, c, type, 1u << 20);
  return op;
}

KernelOperation convolution(OperationKind kind, int h, int w, int c, int depth, int kernel,
                            ElementType type) {
  KernelOperation op = pool(h, w, c, type);
  op.kind = kind;
  op.kernel.height = op.kernel.width = kernel;
  op.ifm = mapOf(h + kernel - 1, w + kernel - 1, c, type, 0);
  op.ofm = mapOf(h, w, depth, type, 4u << 20);
  WeightStreams streams;
  streams.weightRegion = streams.scaleRegion = 0;
  op.weights = streams;
  return op;
}

pte::Tensor tensorOf(std::vector<int32_t> sizes, uint64_t offset,
                     pte::ScalarType type = pte::ScalarType::Float32) {
  pte::Tensor tensor;
  tensor.type = type;
  for (size_t i = 0; i < sizes.size(); ++i) tensor.dimOrder.push_back(static_cast<uint8_t>(i));
  tensor.sizes = std::move(sizes);
  tensor.allocation = pte::Allocation{1, offset};
  return tensor;
}

class Files {
 public:
  explicit Files(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void save(const std::string& name, const pte::Program& program) {
    const auto bytes = pte::writeProgram(program);
    if (!bytes.ok()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), Error(bytes.error()).str().c_str());
      failed = true;
      return;
    }
    if (bytes->size() > kMostBytes) std::fprintf(stderr, "%s: %zu bytes\n", name.c_str(), bytes->size());
    std::ofstream(folder_ / (name + ".pte"), std::ios::binary) << *bytes;
  }

  /// One delegate, called `calls` times; with `loop`, in an endless loop.
  void save(const std::string& name, Stream& stream, size_t calls = 1, bool loop = false) {
    if (!stream.refused().empty()) return;  // this target has no such operation
    const std::vector<uint32_t> words = stream.words();
    const auto payload = buildPayload(stream.target(), words);
    if (!payload.ok()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), Error(payload.error()).str().c_str());
      failed = true;
      return;
    }
    pte::DelegateBlob blob;
    for (const uint8_t byte : *payload) blob.payload.push_back(static_cast<std::byte>(byte));
    blob.constants = stream.constants();
    blob.scratchBytes = kArena;
    blob.inputs = {pte::BlobIo::of({1, 16}, 4, 0)};
    blob.outputs = {pte::BlobIo::of({1, 16}, 4, 4 << 20)};
    pte::Delegate delegate;
    delegate.id = "EthosUBackend";
    delegate.blob = pte::buildDelegateBlob(blob);
    delegate.specs = pte::ethosUCompileSpecs({std::string(stream.target().name), "", "", false, ""});
    pte::Method method;
    method.values = {tensorOf({1, 16}, 0, pte::ScalarType::Int32),
                     tensorOf({1, 16}, 64, pte::ScalarType::Int32), false};
    method.inputs = {0};
    method.outputs = {1};
    method.pools = {0, 128};
    method.delegates = {delegate};
    pte::Chain chain;
    for (size_t i = 0; i < calls; ++i) chain.instructions.push_back(pte::DelegateCall{0, {0, 1}});
    if (loop) chain.instructions.push_back(pte::JumpFalseCall{2, 0});
    method.chains = {chain};
    pte::Program program;
    program.methods = {method};
    save(name, program);
  }

  /// A CPU kernel, called as above.
  void kernel(const std::string& name, const char* op, const char* overload, std::vector<pte::Value> values,
              std::vector<int32_t> arguments, int64_t pool, size_t calls = 1, bool loop = false) {
    pte::Method method;
    method.values = std::move(values);
    const auto condition = static_cast<int32_t>(method.values.size());
    method.values.emplace_back(false);
    method.inputs = {0};
    method.outputs = {arguments.back()};
    method.pools = {0, pool};
    method.operators = {{op, overload}};
    pte::Chain chain;
    for (size_t i = 0; i < calls; ++i) chain.instructions.push_back(pte::KernelCall{0, arguments});
    if (loop) chain.instructions.push_back(pte::JumpFalseCall{condition, 0});
    method.chains = {chain};
    pte::Program program;
    program.methods = {method};
    save(name, program);
  }

  bool failed = false;

 private:
  std::filesystem::path folder_;
};

void manyOperations(Files& files, const char* target) {
  const std::string suffix = std::string("_") + target;
  const auto repeated = [&](const char* name, const Operation& op, size_t times = kManyWords) {
    Stream stream(target);
    stream.add(op);
    stream.repeat(times);
    files.save(name + suffix, stream);
  };
  const ElementType bytes = ElementType::Int8, words = ElementType::Int32;
  repeated("pools", pool(1, 1, 1, bytes));
  repeated("additions", elementwise(ElementwiseMode::Add, 1, 1, 1, words));
  repeated("broad_additions", elementwise(ElementwiseMode::Add, 8, 8, 16, words));
  repeated("dense_pools", pool(8, 8, 16, bytes, true));
  repeated("convolutions", convolution(OperationKind::Conv, 1, 1, 1, 1, 1, bytes));
  repeated("wide_convolutions", convolution(OperationKind::Conv, 2, 2, 64, 64, 1, bytes));
  repeated("depthwise", convolution(OperationKind::Depthwise, 8, 8, 16, 16, 3, bytes));
  repeated("waits", KernelWait{0});
  repeated("pmu", PmuMask{true});
  DmaOperation copy;
  copy.source.region = 0;
  copy.destination.region = 1;
  copy.length = 16;
  repeated("copies", copy);
  copy.length = 4096;
  repeated("long_copies", copy);
  if (!Stream(target).target().isU85()) return;
  copy.dimensions = 3;
  copy.size0 = copy.size1 = 64;
  copy.length = 16;
  repeated("planes", copy);
}

void hugeOperations(Files& files, const char* target) {
  const std::string suffix = std::string("_") + target;
  const auto once = [&](const char* name, const Operation& op, size_t times = 0) {
    Stream stream(target);
    stream.add(op);
    stream.repeat(times);
    files.save(name + suffix, stream);
  };
  const ElementType types[] = {ElementType::Int8, ElementType::Int16, ElementType::Int32};
  for (const ElementType type : types) {
    const std::string bits = std::to_string(8 * elementBytes(type));
    once(("huge_addition" + bits).c_str(), elementwise(ElementwiseMode::Add, 1024, 1024, 64, type));
    for (const ElementwiseMode mode : {ElementwiseMode::Mul, ElementwiseMode::Min, ElementwiseMode::Shr})
      once(fmt::format("large_elementwise{}_{}", static_cast<int>(mode), bits).c_str(),
           elementwise(mode, 1024, 1024, 16, type), 100);
    once(("huge_pool" + bits).c_str(), pool(4096, 4096, 16, type));
    KernelOperation window = pool(64, 64, 16, type);
    window.kernel.height = window.kernel.width = 64;
    window.ifm = mapOf(127, 127, 16, type, 0);
    once(("window" + bits).c_str(), window, 1000);
    window.pool = PoolMode::ReduceSum;
    window.kernel = {};
    window.ifm = mapOf(64, 64, 65536, type, 0);
    window.ofm = mapOf(64, 64, 1, type, 4u << 20);
    once(("sum" + bits).c_str(), window, 1000);
    for (const int kernel : {1, 3, 32}) {
      once(fmt::format("conv{}x{}_{}", kernel, kernel, bits).c_str(),
           convolution(OperationKind::Conv, 64, 64, 64, 64, kernel, type), 200);
      once(fmt::format("depthwise{}x{}_{}", kernel, kernel, bits).c_str(),
           convolution(OperationKind::Depthwise, 64, 64, 64, 64, kernel, type), 200);
    }
    once(("huge_conv" + bits).c_str(), convolution(OperationKind::Conv, 256, 256, 65536, 16, 1, type));
    once(("deep_conv" + bits).c_str(), convolution(OperationKind::Conv, 1, 1, 4096, 1024, 1, type), 100);
  }
}

/// Features that only Ethos-U85 has: branches, transposed outputs, chains, resizing, gathers.
void ofTheU85(Files& files) {
  const char* target = "ethos-u85-256";
  Stream spin(target);
  spin.add(Branch{false, 0});
  files.save("endless", spin);
  Stream busy(target);
  busy.add(pool(1, 1, 1, ElementType::Int8));
  busy.add(Branch{false, 0});
  files.save("endless_pools", busy);
  Stream slow(target);
  slow.add(elementwise(ElementwiseMode::Add, 64, 64, 64, ElementType::Int32));
  slow.add(Branch{false, 0});
  files.save("endless_additions", slow);
  for (const Transpose transpose : {Transpose::WHC, Transpose::CWH}) {
    KernelOperation op = pool(512, 512, 16, ElementType::Int8);
    op.transpose = transpose;
    Stream turned(target);
    turned.add(op);
    turned.repeat(1000);
    files.save(fmt::format("transposed{}", static_cast<int>(transpose)), turned);
  }
  KernelOperation kept = pool(1024, 1024, 16, ElementType::Int8);
  kept.accumulatorOutput = false;
  Stream accumulators(target);
  accumulators.add(kept);
  accumulators.repeat(1000);
  files.save("accumulators", accumulators);
  KernelOperation argmax = pool(64, 64, 16, ElementType::Int8);
  argmax.pool = PoolMode::ArgMaxX;
  argmax.kernel.width = 256;
  argmax.ofm.type = ElementType::Int32;
  Stream most(target);
  most.add(argmax);
  most.repeat(1000);
  files.save("argmax", most);
  KernelOperation resize = pool(1024, 1024, 16, ElementType::Int8);
  resize.kind = OperationKind::Resize;
  resize.ifm = mapOf(512, 512, 16, ElementType::Int8, 0);
  resize.resizeX = resize.resizeY = {2, 1, 0};
  Stream larger(target);
  larger.add(resize);
  larger.repeat(1000);
  files.save("resized", larger);
}

void loopedCalls(Files& files) {
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    Stream little(target);
    little.add(pool(1, 1, 1, ElementType::Int8));
    files.save(std::string("looped_calls_") + target, little, 1, true);
    Stream much(target);
    much.add(elementwise(ElementwiseMode::Add, 256, 256, 64, ElementType::Int32));
    much.repeat(50);
    files.save(std::string("looped_work_") + target, much, 1, true);
    Stream often(target);
    often.add(elementwise(ElementwiseMode::Add, 64, 64, 64, ElementType::Int32));
    files.save(std::string("many_calls_") + target, often, 8000);
  }
}

void cpuKernels(Files& files) {
  const int32_t side = 4096;
  const uint64_t bytes = uint64_t{4} * side * side;
  const auto square = [&](uint64_t slot) { return tensorOf({side, side}, slot * bytes); };
  files.kernel("matmul", "aten::mm", "out", {square(0), square(1), square(2)}, {0, 1, 2, 2},
               static_cast<int64_t>(3 * bytes));
  const auto small = [&](uint64_t slot) { return tensorOf({256, 256}, slot * 4 * 65536); };
  files.kernel("matmuls", "aten::mm", "out", {small(0), small(1), small(2)}, {0, 1, 2, 2}, 3 * 4 * 65536,
               4000);
  files.kernel("looped_matmul", "aten::mm", "out", {small(0), small(1), small(2)}, {0, 1, 2, 2},
               3 * 4 * 65536, 1, true);
  const auto line = [&](uint64_t slot) { return tensorOf({16}, slot * 64); };
  files.kernel("looped_exp", "aten::exp", "out", {line(0), line(1)}, {0, 1, 1}, 128, 1, true);
  files.kernel("exp", "aten::exp", "out", {square(0), square(1)}, {0, 1, 1}, static_cast<int64_t>(2 * bytes),
               100);
  // x[1,64,64,64] convolved with w[64,64,33,33].
  const uint64_t image = uint64_t{4} * 64 * 64 * 64, weights = uint64_t{4} * 64 * 64 * 33 * 33;
  pte::IntList ones{{8, 8}}, halves{{9, 9}}, zeros{{10, 10}};
  files.kernel(
      "convolution", "aten::convolution", "out",
      {tensorOf({1, 64, 64, 64}, 0), tensorOf({64, 64, 33, 33}, image), pte::Null{}, ones, halves, ones,
       false, tensorOf({1, 64, 64, 64}, image + weights), int64_t{1}, int64_t{16}, int64_t{0}, zeros},
      {0, 1, 2, 3, 4, 5, 6, 11, 8, 7, 7}, static_cast<int64_t>(2 * image + weights));
  files.kernel("memory", "aten::exp", "out",
               {tensorOf({100 << 20}, 0), tensorOf({100 << 20}, uint64_t{400} << 20)}, {0, 1, 1},
               int64_t{800} << 20);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: hostile_programs OUT_DIR\n");
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  Files files(argv[1]);
  for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    manyOperations(files, target);
    hugeOperations(files, target);
  }
  ofTheU85(files);
  loopedCalls(files);
  cpuKernels(files);
  return writeHostileGraphs(argv[1]) && !files.failed ? 0 : 1;
}
