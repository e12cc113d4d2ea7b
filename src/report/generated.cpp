// SPDX-License-Identifier: Apache-2.0
#include "report/generated.hpp"

#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/inference_time.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

/// Tokens per second for the given cycles per call; nullopt without a clock.
std::optional<double> tokensPerSecond(const pipeline::MethodCalls& calls, int64_t cycles) {
  if (!calls.time || calls.time->clockHz <= 0 || cycles <= 0) return std::nullopt;
  return static_cast<double>(calls.tokens) * calls.time->clockHz / static_cast<double>(cycles);
}

int64_t npuCyclesPerCall(const pipeline::MethodCalls& calls) {
  return calls.calls == 0 ? 0 : calls.npuCycles / static_cast<int64_t>(calls.calls);
}

/// "  prefill   16 tokens in 4 calls, 9,000 NPU cycles each (1777.8 tokens/s at 1000 MHz), ..."
std::string linesOf(const char* what, const pipeline::MethodCalls& calls) {
  if (calls.calls == 0) return "";
  const size_t tokens = calls.calls * static_cast<size_t>(calls.tokens);
  std::string text = fmt::format("  {:<9} {} token{}", what, tokens, tokens == 1 ? "" : "s");
  if (calls.tokens > 1) text += fmt::format(" in {} call{}", calls.calls, calls.calls == 1 ? "" : "s");
  if (calls.npuCycles > 0) {
    text += fmt::format(", {} NPU cycles each", countText(npuCyclesPerCall(calls)));
    if (const auto speed = tokensPerSecond(calls, npuCyclesPerCall(calls)))
      text += fmt::format(" ({:.1f} tokens/s at {:.0f} MHz)", *speed, calls.time->clockHz / 1e6);
  }
  text += fmt::format(", {:.1f} tokens/s here\n", static_cast<double>(tokens) / calls.seconds);
  if (!calls.time) return text;
  text += fmt::format("            {}", inferenceLine(*calls.time));
  if (const auto speed = tokensPerSecond(calls, calls.time->cycles()))
    text.insert(text.size() - 1, fmt::format(": {:.1f} tokens/s", *speed));
  return text;
}

nlohmann::ordered_json callsJson(const pipeline::MethodCalls& calls) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  json["method"] = calls.method;
  json["tokens_per_call"] = calls.tokens;
  json["calls"] = calls.calls;
  json["npu_cycles"] = calls.npuCycles;
  json["kernels"] = calls.kernels.size();
  if (const auto speed = tokensPerSecond(calls, npuCyclesPerCall(calls)))
    json["npu_tokens_per_second"] = *speed;
  if (!calls.time) return json;
  json["inference"] = inferenceJson(*calls.time);
  if (const auto speed = tokensPerSecond(calls, calls.time->cycles())) json["tokens_per_second"] = *speed;
  return json;
}

}  // namespace

std::string generatedText(const pipeline::Generated& result) {
  const size_t prompt = result.promptTokens.size(), count = result.tokens.size();
  std::string text = fmt::format("  tokens    {} of the prompt, {} generated\n", prompt, count);
  if (result.prefill) text += linesOf("prefill", *result.prefill);
  text += linesOf("prompt", result.prompting);
  text += linesOf("generated", result.writing);
  if (result.target.empty()) {
    text += "  NPU       none\n";
  } else {
    text += fmt::format("  NPU       {} ({}, {})\n", result.target, result.systemConfig, result.memoryMode);
  }
  if (result.full) text += fmt::format("  ended     the context of {} tokens is full\n", result.context);
  return text;
}

std::string generatedJson(const pipeline::Generated& result) {
  nlohmann::ordered_json json = document("generate");
  json["prompt"] = result.prompt;
  json["text"] = result.text;
  json["prompt_tokens"] = result.promptTokens;
  json["tokens"] = result.tokens;
  json["ended_by"] = result.ended ? "token" : result.full ? "context" : "count";
  json["context"] = result.context;
  json["target"] = result.target;
  json["system_config"] = result.systemConfig;
  json["memory_mode"] = result.memoryMode;
  if (result.prefill) json["prefill"] = callsJson(*result.prefill);
  if (result.prompting.calls > 0) json["prompting"] = callsJson(result.prompting);
  if (result.writing.calls > 0) json["writing"] = callsJson(result.writing);
  return documentText(json);
}

}  // namespace carina::report
