// SPDX-License-Identifier: Apache-2.0
#include "report/check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/at_load.hpp"
#include "report/document.hpp"
#include "report/program_io.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using pipeline::CheckedDelegate;
using pipeline::CheckedKernel;
using pipeline::CheckedMethod;
using pipeline::CheckedTensor;

std::string tensorsText(std::string_view what, const std::vector<CheckedTensor>& tensors) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const CheckedTensor& tensor = tensors[i];
    text += fmt::format("  {:<10} {}", fmt::format("{} {}", what, i), tensor.type);
    if (tensor.type.find('[') != std::string::npos)  // numbers need no memory
      text += fmt::format(", {} bytes, {}", countText(tensor.bytes),
                          tensor.planned ? "in a pool" : "in memory of the caller");
    if (!tensor.codes.empty()) text += ", " + pipeline::codesText(tensor.codes);
    text += '\n';
  }
  return text;
}

std::string delegateText(size_t index, const CheckedDelegate& delegate) {
  std::string text = fmt::format("  delegate {} {}", index, delegate.id);
  if (!delegate.target.empty()) text += " for " + delegate.target;
  if (!delegate.systemConfig.empty()) text += ", " + delegate.systemConfig;
  if (!delegate.memoryMode.empty()) text += ", " + delegate.memoryMode;
  text +=
      fmt::format("\n             commands {}, constants {}, scratch {}", bytesText(delegate.commandBytes),
                  bytesText(delegate.constantBytes), bytesText(delegate.scratchBytes));
  if (delegate.fastScratchBytes > 0)
    text += fmt::format(", fast scratch {}", bytesText(delegate.fastScratchBytes));
  return text + fmt::format("; {} inputs, {} outputs\n", delegate.inputs, delegate.outputs);
}

std::string methodText(const CheckedMethod& method) {
  std::string text = fmt::format("method {}\n", method.name);
  for (size_t i = 0; i < method.pools.size(); ++i) {
    text += fmt::format("  {:<10} {} bytes, aligned to 16\n", fmt::format("pool {}", i + 1),
                        countText(method.pools[i]));
  }
  text += fmt::format("  {:<10} {} bytes, aligned to 16\n", "temporary", countText(method.temporaryBytes));
  text += fmt::format("  {:<10} {} bytes, aligned to 8\n", "runtime", countText(method.methodBytes));
  text += tensorsText("input", method.inputs) + tensorsText("output", method.outputs);
  for (const CheckedKernel& kernel : method.kernels) {
    text +=
        fmt::format("  {:<10} {} x{}\n", kernel.present ? "kernel" : "NO KERNEL", kernel.name, kernel.calls);
  }
  for (size_t i = 0; i < method.delegates.size(); ++i) text += delegateText(i, method.delegates[i]);
  return text;
}

using Json = nlohmann::ordered_json;

/// The common beginning of documents about programs and about TensorFlow Lite models.
Json checkDocument(const auto& check, size_t commandStreams) {
  Json json = document("check");
  json["ok"] = check.ok();
  json["file_bytes"] = check.fileBytes;
  json["problems"] = check.problems;
  json["command_streams"] = commandStreams;
  return json;
}

}  // namespace

std::string checkText(const pipeline::Check& check) {
  std::string text = fmt::format("program of {} bytes, to be placed at an address aligned to 16\n",
                                 countText(check.fileBytes));
  if (check.atLoad) text += fmt::format("  {}\n", atLoadText(*check.atLoad));
  for (const CheckedMethod& method : check.methods) {
    if (!method.describesCodes) text += methodText(method);  // others are shown with the tensors
  }
  if (check.commandStreams > 0)
    text += fmt::format("{} command stream{} read by the NPU checker\n", check.commandStreams,
                        check.commandStreams == 1 ? "" : "s");
  for (const std::string& problem : check.problems) text += "FAILS: " + problem + "\n";
  if (check.ok()) text += "OK: with this memory and these kernels the program loads and runs\n";
  return text;
}

std::string checkJson(const pipeline::Check& check) {
  Json json = checkDocument(check, check.commandStreams);
  if (check.atLoad) json["at_load"] = atLoadJson(*check.atLoad);
  json["methods"] = Json::array();
  const auto tensors = [](const std::vector<CheckedTensor>& all) {
    Json list = Json::array();
    for (const CheckedTensor& tensor : all) {
      Json entry = {{"type", tensor.type}, {"bytes", tensor.bytes}, {"planned", tensor.planned}};
      addCodes(tensor.codes, entry);
      list.push_back(std::move(entry));
    }
    return list;
  };
  for (const CheckedMethod& method : check.methods) {
    Json entry = Json::object();
    entry["name"] = method.name;
    entry["pool_bytes"] = method.pools;
    entry["temporary_bytes"] = method.temporaryBytes;
    entry["runtime_bytes"] = method.methodBytes;
    entry["inputs"] = tensors(method.inputs);
    entry["outputs"] = tensors(method.outputs);
    entry["kernels"] = Json::array();
    for (const CheckedKernel& kernel : method.kernels) {
      entry["kernels"].push_back(
          {{"name", kernel.name}, {"calls", kernel.calls}, {"present", kernel.present}});
    }
    entry["delegates"] = Json::array();
    for (const CheckedDelegate& delegate : method.delegates) {
      entry["delegates"].push_back({{"id", delegate.id},
                                    {"target", delegate.target},
                                    {"system_config", delegate.systemConfig},
                                    {"memory_mode", delegate.memoryMode},
                                    {"command_bytes", delegate.commandBytes},
                                    {"constant_bytes", delegate.constantBytes},
                                    {"scratch_bytes", delegate.scratchBytes},
                                    {"fast_scratch_bytes", delegate.fastScratchBytes}});
    }
    json["methods"].push_back(std::move(entry));
  }
  return documentText(json);
}

std::string checkText(const pipeline::TfliteCheck& check) {
  std::string text =
      fmt::format("TensorFlow Lite model of {} bytes, to be placed at an address aligned to 16\n",
                  countText(check.fileBytes));
  std::string calls;
  size_t registered = 0;
  for (const pipeline::CheckedTfliteOperator& op : check.operators) {
    text += fmt::format("  {:<10} {} x{}\n", op.method ? "operator" : "NO KERNEL", op.name, op.count);
    if (!op.method) continue;
    calls += fmt::format(" resolver.{};", *op.method);
    ++registered;
  }
  if (check.calls > 0) {
    text += fmt::format("  {:<10} {}, {} call{} per inference{}\n", "NPU", check.target, check.calls,
                        check.calls == 1 ? "" : "s",
                        check.containsControlFlow ? " if each subgraph runs once" : "");
  }
  text += fmt::format("  {:<10} {} bytes are enough on a Cortex-M with the reference kernels\n", "arena",
                      countText(check.arena.bytes()));
  text += fmt::format("  {:<10} {} of them for tensors{}\n", "", countText(check.arena.tensors),
                      check.plannedBytes > 0 ? ", by the memory plan" : "");
  if (check.plannedBytes > 0 && check.unplanned > 0) {
    text += fmt::format("  {:<10} {} tensor{} not in it, and the interpreter places {}\n", "",
                        check.unplanned == 1 ? "1" : countText(static_cast<int64_t>(check.unplanned)),
                        check.unplanned == 1 ? " is" : "s are", check.unplanned == 1 ? "it" : "them");
  }
  text += fmt::format("  {:<10} {} that the interpreter keeps for {} tensors and {} operators\n", "",
                      countText(check.arena.interpreter), check.tensors, check.nodes);
  if (check.fastScratchBytes > 0) {
    text += fmt::format("  {:<10} {} bytes, which the driver puts into on-chip memory\n", "scratch",
                        countText(check.fastScratchBytes));
  }
  if (registered > 0) text += fmt::format("MicroMutableOpResolver<{}> resolver;{}\n", registered, calls);
  for (const std::string& problem : check.problems) text += "FAILS: " + problem + "\n";
  return text;
}

std::string checkJson(const pipeline::TfliteCheck& check) {
  Json json = checkDocument(check, check.calls);
  json["methods"] = Json::array();
  Json& tflite = json["tflite"] = {{"target", check.target}, {"npu_calls", check.calls}};
  tflite["arena_bytes"] = {{"needed", check.arena.bytes()},          {"tensors", check.arena.tensors},
                           {"interpreter", check.arena.interpreter}, {"planned", check.plannedBytes},
                           {"unplanned", check.unplannedBytes},      {"variables", check.variableBytes},
                           {"fast_scratch", check.fastScratchBytes}};
  tflite["operators"] = Json::array();
  for (const pipeline::CheckedTfliteOperator& op : check.operators) {
    tflite["operators"].push_back(
        {{"name", op.name}, {"count", op.count}, {"method", op.method ? Json(*op.method) : Json(nullptr)}});
  }
  return documentText(json);
}

std::string checkJson(const pipeline::CheckedFile& checked) {
  Json json = document("inspect");
  json["ok"] = checked.findings.empty();
  json["command_streams"] = checked.streams;
  json["words"] = checked.words;
  json["findings"] = checked.findings;
  return documentText(json);
}

}  // namespace carina::report
