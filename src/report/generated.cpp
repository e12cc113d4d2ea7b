// SPDX-License-Identifier: Apache-2.0
#include "report/generated.hpp"

#include <nlohmann/json.hpp>

#include "report/text.hpp"

namespace carina::report {
namespace {

/// Steps: runs of the network.
std::string lineOf(const pipeline::Generated& result, const char* what, size_t tokens, size_t steps,
                   int64_t cycles, double seconds) {
  std::string text = fmt::format("  {:<9} {} token{}", what, tokens, tokens == 1 ? "" : "s");
  if (steps == 0) return text + "\n";
  const auto runs = static_cast<double>(steps);
  if (cycles > 0) {
    text += fmt::format(", {} NPU cycles each", countText(cycles / static_cast<int64_t>(steps)));
    if (result.clockHz) {
      text += fmt::format(" ({:.1f} tokens/s at {:.0f} MHz)",
                          runs * *result.clockHz / static_cast<double>(cycles), *result.clockHz / 1e6);
    }
  }
  return text + fmt::format(", {:.1f} tokens/s here\n", runs / seconds);
}

size_t stepsOf(const pipeline::Generated& result) {
  // The last token is not run, unless another one could have followed.
  const size_t count = result.tokens.size();
  return result.ended || count == 0 ? count : count - 1;
}

}  // namespace

std::string generatedText(const pipeline::Generated& result) {
  const size_t prompt = result.promptTokens.size();
  std::string text = lineOf(result, "prompt", prompt, prompt, result.promptCycles, result.promptSeconds);
  text += lineOf(result, "generated", result.tokens.size(), stepsOf(result), result.cycles, result.seconds);
  if (result.target.empty()) {
    text += "  NPU       none\n";
  } else {
    text += fmt::format("  NPU       {} ({}, {})\n", result.target, result.systemConfig, result.memoryMode);
  }
  text += fmt::format("  CPU       {} kernel{} a token, whose time is not counted\n", result.kernels,
                      result.kernels == 1 ? "" : "s");
  if (result.full) text += fmt::format("  ended     the context of {} tokens is full\n", result.context);
  return text;
}

std::string generatedJson(const pipeline::Generated& result) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  json["prompt"] = result.prompt;
  json["text"] = result.text;
  json["prompt_tokens"] = result.promptTokens;
  json["tokens"] = result.tokens;
  json["ended_by"] = result.ended ? "token" : result.full ? "context" : "count";
  json["context"] = result.context;
  json["target"] = result.target;
  json["system_config"] = result.systemConfig;
  json["memory_mode"] = result.memoryMode;
  json["prompt_cycles"] = result.promptCycles;
  json["cycles"] = result.cycles;
  json["steps"] = stepsOf(result);
  if (result.clockHz && result.cycles > 0)
    json["tokens_per_second"] =
        static_cast<double>(stepsOf(result)) * *result.clockHz / static_cast<double>(result.cycles);
  json["kernels"] = result.kernels;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace carina::report
