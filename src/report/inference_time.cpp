// SPDX-License-Identifier: Apache-2.0
#include "report/inference_time.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/text.hpp"

namespace carina::report {
namespace {

/// Decimals that give a number of milliseconds at least three digits.
int decimalsOf(double milliseconds) {
  return milliseconds >= 100 ? 0 : milliseconds >= 10 ? 1 : milliseconds >= 1 ? 2 : 3;
}

std::string durationText(const pipeline::InferenceTime& time, int64_t cycles) {
  if (time.clockHz <= 0) return countText(cycles) + " cycles";
  const double milliseconds = time.milliseconds(cycles);
  return fmt::format("{:.{}f} ms", milliseconds, decimalsOf(milliseconds));
}

}  // namespace

std::string inferenceLine(const pipeline::InferenceTime& time) {
  const int decimals = decimalsOf(time.milliseconds());
  const auto part = [&](int64_t cycles) {
    return time.clockHz > 0 ? fmt::format("{:.{}f}", time.milliseconds(cycles), decimals) : countText(cycles);
  };
  std::string text = fmt::format("inference {} = ", durationText(time, time.cycles()));
  if (time.npuCycles > 0) text += fmt::format("NPU {} + ", part(time.npuCycles));
  text += fmt::format("CPU {} + calls {} (within {:.0f} %, {}", part(time.cpuCycles), part(time.callCycles),
                      std::ceil(100 * time.error), cpu::coreInfo(time.core).text);
  const auto guesses = std::count_if(time.kernels.begin(), time.kernels.end(),
                                     [](const pipeline::KernelTime& kernel) { return !kernel.measured; });
  if (guesses > 0) text += fmt::format("; {} kernel{} guessed", guesses, guesses == 1 ? "" : "s");
  if (time.branches) text += "; branches and loops count once";
  return text + ")\n";
}

std::string inferenceAdvice(const pipeline::InferenceTime& time, const std::string& indent) {
  std::string text;
  if (time.integerIoCycles)
    text += fmt::format("{}--io {} makes it {}\n", indent, time.integerIo,
                        durationText(time, *time.integerIoCycles));
  if (time.imagePreparationCycles > 0) {
    text += fmt::format(
        "{}if input {} is an image, passing its pixels (--io-inputs uint8 --mean M --std S, a camera's "
        "--io-layout nhwc) saves {} of CPU time\n",
        indent, time.pictureInput, durationText(time, time.imagePreparationCycles));
  }
  if (time.heliumCycles) {
    text += fmt::format("{}kernels for Helium (carina firmware --core cortex-m55) make it {}\n", indent,
                        durationText(time, *time.heliumCycles));
  }
  return text;
}

nlohmann::ordered_json inferenceJson(const pipeline::InferenceTime& time) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  json["cycles"] = time.cycles();
  if (time.clockHz > 0) json["milliseconds"] = time.milliseconds();
  json["npu_cycles"] = time.npuCycles;
  json["cpu_cycles"] = time.cpuCycles;
  json["call_cycles"] = time.callCycles;
  json["error"] = time.error;
  json["cpu"] = cpu::coreInfo(time.core).name;
  if (time.integerIoCycles) json["cycles_with_integer_io"] = *time.integerIoCycles;
  if (time.imagePreparationCycles > 0) {
    json["picture_input"] = time.pictureInput;
    json["picture_cycles"] = time.imagePreparationCycles;
  }
  if (time.heliumCycles) json["cycles_with_helium"] = *time.heliumCycles;
  json["kernels"] = nlohmann::ordered_json::array();
  for (const pipeline::KernelTime& kernel : time.kernels) {
    json["kernels"].push_back({{"kernel", kernel.kernel},
                               {"types", kernel.types},
                               {"calls", kernel.calls},
                               {"cycles", std::llround(kernel.cycles)},
                               {"error", kernel.error},
                               {"measured", kernel.measured}});
  }
  return json;
}

}  // namespace carina::report
