// SPDX-License-Identifier: Apache-2.0
#include "measured_costs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/file.hpp"
#include "images.hpp"
#include "platform/elf.hpp"
#include "platform/image_note.hpp"
#include "platform/platform.hpp"
#include "support/temp_dir.hpp"

namespace carina::firmware {
namespace {

cpu_m::Pipeline pipelineOf(cpu::Core core) {
  switch (core) {
    case cpu::Core::M33:
      return cpu_m::Pipeline::M33;
    case cpu::Core::M55:
    case cpu::Core::M55Helium:
      return cpu_m::Pipeline::M55;
    default:
      return cpu_m::Pipeline::M85;
  }
}

bool hasHelium(cpu::Core core) {
  return core == cpu::Core::M55Helium || core == cpu::Core::M85Helium;
}

/// The number that begins at `at`.
int64_t numberAt(const std::string& text, size_t at) {
  return at < text.size() ? std::atoll(text.c_str() + at) : 0;
}

/// The report of firmware/src/session.cpp.
MeasuredRun readReport(const std::string& text) {
  constexpr std::string_view kLine = "I [carina] ", kCycles = " : cycle_cnt : ", kAll = "Inference runtime: ",
                             kNpu = "ethosu_pmu_cycle_cntr : ";
  MeasuredRun run;
  for (size_t at = text.find(kLine); at != std::string::npos; at = text.find(kLine, at + 1)) {
    const std::string line = text.substr(at + kLine.size(), text.find('\n', at) - at - kLine.size());
    if (const size_t cycles = line.find(kCycles); cycles != std::string::npos)
      run.kernels[line.substr(0, cycles)] += numberAt(line, cycles + kCycles.size());
    if (line.starts_with(kAll)) run.runtime = numberAt(line, kAll.size());
    if (line.starts_with(kNpu)) run.npu = numberAt(line, kNpu.size());
  }
  run.kernels.erase("ethos-u");
  return run;
}

float inDomain(float value, const std::string& domain) {
  if (domain == "positive") return std::fabs(value) + 0.05f;
  if (domain == "above-one") return std::fabs(value) + 1.05f;
  if (domain == "unit") return 0.9f * std::tanh(value);
  return value;
}

/// Bytes of an image for the board that has the program's NPU.
Result<std::string> imageFor(const std::filesystem::path& program, const NamedTensors& inputs, bool helium) {
  ImageOptions options = imageOptions(program, "corstone-300");
  options.source.core = helium ? "cortex-m55" : "cortex-m33";
  options.source.printed = 0;
  options.plan.inputs = inputs;
  auto image = buildImage(options);
  if (!image && image.error().diagnostics().front().code == Code::OtherNpu) {
    options.plan.platform = "corstone-320";
    image = buildImage(options);
  }
  if (!image) return std::move(image).error();
  return std::move(image->elf);
}

/// The image with its inputs replaced: linking takes far longer than running.
std::string withInputs(std::string elf, const NamedTensors& inputs) {
  const auto image = platform::readElf(asBytes(elf));
  CARINA_CHECK(image.ok(), "images that were built can be read");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto at = image->fileOffsetOf(fmt::format("appInput{}", i));
    CARINA_CHECK(at.has_value(), "an image holds its inputs");
    const std::string_view bytes = asText(inputs[i].second.bytes());
    std::copy(bytes.begin(), bytes.end(), elf.begin() + *at);
  }
  return elf;
}

Result<MeasuredRun> runImage(const std::filesystem::path& file, const std::string& elf, cpu::Core core) {
  const auto note = platform::readImageNote(asBytes(elf));
  CARINA_CHECK(note.has_value(), "images have a note");
  CARINA_TRY(const platform::Board* found, platform::findBoard(note->platform));
  platform::Board board = *found;
  board.pipeline = pipelineOf(core);
  platform::Options options;
  options.board = &board;
  // A program for the CPU alone leaves the board's NPU idle.
  const std::string idle = note->platform == "corstone-320" ? "ethos-u85-256" : "ethos-u55-128";
  CARINA_TRY(options.machine, npu::makeMachine(note->target == "cpu" ? idle : note->target,
                                               note->systemConfig, note->memoryMode));
  options.secondsLimit = 300;
  std::string text;
  options.output = [&text](uint32_t, char byte) {
    if (byte != '\r') text += byte;
  };
  CARINA_TRY(const platform::Outcome outcome, platform::runElf(file, options));
  if (outcome.reason != platform::EndReason::Exit || outcome.exitCode != 0)
    return fail(Code::GuestFault, "the image ended with {}: {}\n{}", outcome.exitCode, outcome.explanation,
                text);
  return readReport(text);
}

}  // namespace

int64_t MeasuredRun::calls() const {
  int64_t rest = runtime - npu;
  for (const auto& [name, cycles] : kernels) rest -= cycles;
  return rest;
}

Result<std::vector<std::vector<MeasuredRun>>> measureAll(const std::filesystem::path& program,
                                                         std::span<const NamedTensors> variants,
                                                         std::span<const cpu::Core> cores) {
  const test::TempDir folder;
  std::map<bool, std::string> images;  // key: whether built for Helium
  std::vector<std::vector<MeasuredRun>> runs(variants.size());
  for (const cpu::Core core : cores) {
    std::string& image = images[hasHelium(core)];
    if (image.empty()) {
      CARINA_TRY(image, imageFor(program, variants.front(), hasHelium(core)));
    }
    for (size_t i = 0; i < variants.size(); ++i) {
      const std::string elf = withInputs(image, variants[i]);
      CARINA_RETURN_IF_ERROR(writeFile(folder / "x.elf", elf));
      CARINA_TRY(MeasuredRun run, runImage(folder / "x.elf", elf, core));
      runs[i].push_back(std::move(run));
    }
  }
  return runs;
}

Result<std::vector<MeasuredRun>> measure(const std::filesystem::path& program, const NamedTensors& inputs,
                                         std::span<const cpu::Core> cores) {
  CARINA_TRY(auto runs, measureAll(program, std::span(&inputs, 1), cores));
  return std::move(runs.front());
}

NamedTensors inputsOf(const pte::Method& method, const std::string& kind,
                      std::span<const std::string> domains) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  NamedTensors inputs;
  for (size_t i = 0; i < method.inputs.size(); ++i) {
    const auto* planned = std::get_if<pte::Tensor>(&method.values[static_cast<size_t>(method.inputs[i])]);
    CARINA_CHECK(planned != nullptr, "inputs are tensors");
    Shape shape(planned->sizes.begin(), planned->sizes.end());
    const auto dtype = pte::toDType(planned->type);
    CARINA_CHECK(dtype.has_value(), "inputs have types that arrays have");
    Tensor tensor = Tensor::zeros(*dtype, shape);
    for (int64_t e = 0; e < tensor.numElements(); ++e) {
      const auto at = static_cast<float>(e);
      float value =
          kind == "smooth" ? 1.3f * std::sin(at * 0.043f) + 0.2f * std::sin(at * 0.71f) : normal(random);
      if (kind == "rectified") value = std::max(value, 0.0f);
      std::byte* to = tensor.mutableBytes().data() + e * tensor.numBytes() / tensor.numElements();
      const auto put = [&](auto number) { std::memcpy(to, &number, sizeof(number)); };
      switch (*dtype) {
        case DType::Float32:
          put(inDomain(value, i < domains.size() ? domains[i] : ""));
          break;
        case DType::Int8:
          put(static_cast<int8_t>(std::clamp(value * 50.0f, -128.0f, 127.0f)));
          break;
        case DType::Int16:
          put(static_cast<int16_t>(std::clamp(value * 12000.0f, -32768.0f, 32767.0f)));
          break;
        default:
          if (tensor.numBytes() == tensor.numElements()) {
            put(static_cast<uint8_t>(value > 0.0f));
          } else if (tensor.numBytes() == 8 * tensor.numElements()) {
            put(static_cast<int64_t>(value > 0.0f));
          } else {
            put(static_cast<int32_t>(value > 0.0f));
          }
      }
    }
    inputs.emplace_back(fmt::format("in{}", i), std::move(tensor));
  }
  return inputs;
}

}  // namespace carina::firmware
