// SPDX-License-Identifier: Apache-2.0
// kernel_cycles < CASES: runs small programs of CPU kernels on the virtual platform and prints their work and
// their cycles, one line of JSON per run. scripts/fit_cpu_costs.py writes the cases and reads the lines.
//
// A case is a line `OPERATOR | OPERANDS | ATTRIBUTES | DOMAIN` (see pipeline::addOperator and inputsOf) or
// `program FILE.pte`. Cases without an empty line between them become one program.
#include <array>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.hpp"
#include "cpu/emit.hpp"
#include "cpu/kernel_form.hpp"
#include "measured_costs.hpp"
#include "pipeline/operator_cases.hpp"
#include "support/temp_dir.hpp"

namespace carina::firmware {
namespace {

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> parts{""};
  for (const char c : line) {
    if (c == '|')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  parts.resize(4);
  for (std::string& part : parts) {
    const size_t first = part.find_first_not_of(' ');
    part = first == std::string::npos ? "" : part.substr(first, part.find_last_not_of(' ') - first + 1);
  }
  return parts;
}

/// A program that consists only of the kernels of a graph.
Result<pte::Program> programOf(ir::Graph graph) {
  CARINA_RETURN_IF_ERROR(cpu::toKernelForm(graph));
  pte::Program program;
  pte::MethodBuilder builder(program);
  std::map<const ir::Value*, pte::ValueId> values;
  for (const ir::Value* input : graph.inputs())
    values[input] = builder.input(pte::fromDType(input->dtype()), cpu::sizesOf(*input));
  const auto valueOf = [&](const ir::Value* value) {
    const auto [at, isNew] = values.try_emplace(value, 0);
    if (isNew) {
      const Tensor& constant = value->constant();
      at->second = builder.constant(pte::fromDType(value->dtype()), cpu::sizesOf(*value), constant.bytes());
    }
    return at->second;
  };
  for (const ir::Node* node : graph.nodes()) {
    CARINA_TRY(const auto results, cpu::emitCall(builder, *node, valueOf));
    for (size_t i = 0; i < results.size(); ++i) values[node->result(i)] = results[i];
  }
  const std::set<const ir::Value*> inputs(graph.inputs().begin(), graph.inputs().end());
  for (const ir::Value* output : graph.outputs()) {
    // Operators that compute nothing have been removed. An input that is also an output is copied, like a
    // value that a loop carries between iterations.
    const pte::ValueId value = valueOf(output);
    builder.output(inputs.count(output) > 0 ? builder.convert(value, pte::fromDType(output->dtype()))
                                            : value);
  }
  CARINA_RETURN_IF_ERROR(builder.finish());
  return program;
}

nlohmann::ordered_json workJson(const cpu::CallWork& work, int64_t cycles) {
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  for (size_t i = 0; i < cpu::kWorks; ++i) {
    if (work.counts[i] != 0) counts[std::string(cpu::kWorkNames[i])] = work.counts[i];
  }
  return {{"kernel", work.kernel}, {"types", work.types}, {"work", counts}, {"cycles", cycles}};
}

/// Work by the name that the firmware reports; names that refer to several kernels or types are left out.
std::map<std::string, cpu::CallWork> workByName(const pte::Method& method) {
  std::map<std::string, cpu::CallWork> byName;
  std::set<std::string> unclear;
  for (const pte::Chain& chain : method.chains) {
    for (const pte::Instruction& instruction : chain.instructions) {
      const auto* call = std::get_if<pte::KernelCall>(&instruction);
      if (call == nullptr) continue;
      const cpu::CallWork work = cpu::workOf(method, *call);
      const std::string& name = method.operators[static_cast<size_t>(call->op)].name;
      const auto [at, isNew] = byName.emplace(name, work);
      if (isNew) continue;
      if (at->second.kernel != work.kernel || at->second.types != work.types) unclear.insert(name);
      for (size_t i = 0; i < cpu::kWorks; ++i) at->second.counts[i] += work.counts[i];
    }
  }
  for (const std::string& name : unclear) byName.erase(name);
  return byName;
}

Status runProgram(const std::filesystem::path& file, const std::vector<std::string>& domains) {
  CARINA_TRY(const auto bytes, MappedFile::open(file));
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes->bytes()));
  const pte::Method& method = program.methods.front();
  const auto work = workByName(method);
  std::vector<cpu::Core> cores;
  cores.reserve(cpu::coreInfos().size());
  for (const cpu::CoreInfo& info : cpu::coreInfos()) cores.push_back(info.core);
  const std::array<const char*, 3> kinds{"random", "smooth", "rectified"};
  std::vector<NamedTensors> variants;
  variants.reserve(kinds.size());
  for (const char* kind : kinds) variants.push_back(inputsOf(method, kind, domains));
  CARINA_TRY(const auto runs, measureAll(file, variants, cores));
  for (size_t k = 0; k < kinds.size(); ++k) {
    for (size_t i = 0; i < cores.size(); ++i) {
      const MeasuredRun& run = runs[k][i];
      nlohmann::ordered_json line = nlohmann::ordered_json::object();
      line["core"] = cpu::coreInfo(cores[i]).name;
      line["data"] = kinds[k];
      line["calls"] = {workJson(cpu::callingWork(method), run.calls())};
      for (const auto& [name, done] : work) {
        const auto cycles = run.kernels.find(name);
        if (cycles != run.kernels.end()) line["calls"].push_back(workJson(done, cycles->second));
      }
      std::cout << line.dump() << std::endl;
    }
  }
  return {};
}

Status runCases(const std::vector<std::string>& lines) {
  const test::TempDir folder;
  ir::Graph graph;
  std::vector<ir::Value*> outputs;
  std::vector<std::string> domains;
  for (const std::string& line : lines) {
    if (line.starts_with("program ")) return runProgram(line.substr(8), {});
    const std::vector<std::string> parts = fields(line);
    auto node = pipeline::addOperator(graph, parts[0], parts[1], parts[2]);
    if (!node) return std::move(node).error().at(line);
    outputs.insert(outputs.end(), (*node)->results().begin(), (*node)->results().end());
    domains.resize(graph.inputs().size(), parts[3]);
  }
  graph.setOutputs(std::move(outputs));
  CARINA_TRY(const pte::Program program, programOf(std::move(graph)));
  CARINA_TRY(const std::string bytes, pte::writeProgram(program));
  CARINA_RETURN_IF_ERROR(writeFile(folder / "x.pte", bytes));
  return runProgram(folder / "x.pte", domains);
}

int run() {
  int failures = 0;
  std::vector<std::string> lines;
  for (std::string line;;) {
    const bool more = static_cast<bool>(std::getline(std::cin, line));
    if (more && !line.empty()) {
      lines.push_back(line);
      continue;
    }
    if (!lines.empty()) {
      if (const Status status = runCases(lines); !status.ok()) {
        fmt::print(stderr, "{}:\n{}\n", lines.front(), status.error().str());
        ++failures;
      }
    }
    lines.clear();
    if (!more) return failures == 0 ? 0 : 1;
  }
}

}  // namespace
}  // namespace carina::firmware

int main() {
  return carina::firmware::run();
}
