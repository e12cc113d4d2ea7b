// SPDX-License-Identifier: Apache-2.0
#include "ci/run_project.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "report/diff.hpp"
#include "report/document.hpp"
#include "report/evaluation.hpp"
#include "report/gates.hpp"
#include "report/markdown.hpp"
#include "report/summary.hpp"
#include "report/text.hpp"

namespace carina::ci {
namespace {

namespace fs = std::filesystem;

void takeErrors(const Error& error, JobResult& result) {
  for (Diagnostic diagnostic : error.diagnostics()) {
    diagnostic.message = result.name + ": " + diagnostic.message;
    result.errors.push_back(std::move(diagnostic));
  }
}

/// Runs one job: its output files, and its result.
Status runJob(const Job& job, const RunOptions& options, OutputFiles& files, JobResult& result) {
  pipeline::Options building = job.build;
  building.keepSources = false;
  building.estimateAccuracy = true;
  building.measureSqnr = true;
  auto build = pipeline::build(building);
  if (!build) {
    takeErrors(build.error(), result);
    return {};
  }
  result.warnings = build->warnings;
  CARINA_TRY(const std::string program, pte::writeProgram(build->program));
  const auto bytes = static_cast<int64_t>(program.size());
  result.measured = pipeline::measuredOf(*build, bytes);
  result.measured.subject = job.name;
  std::optional<evaluate::Evaluation> evaluation;
  if (!job.evaluate.data.empty()) {
    evaluate::Options judging = job.evaluate;
    judging.build = job.build;
    auto judged = evaluate::evaluate(judging);
    if (!judged) {
      takeErrors(judged.error(), result);
      return {};
    }
    if (judged->summary.npuDiffersFromTosa() > 0)
      takeErrors(fail(Code::ResultsDiffer, "NPU and TOSA differ on {} samples",
                      judged->summary.npuDiffersFromTosa()),
                 result);
    result.measured.top1 = judged->measured.top1;
    if (judged->measured.sqnr) result.measured.sqnr = judged->measured.sqnr;
    evaluation = std::move(*judged);
  }
  auto gates = pipeline::checkGates(job.gates, result.measured);
  if (!gates) {
    takeErrors(gates.error(), result);
    return {};
  }
  result.gates = std::move(*gates);
  if (!options.baseline.empty()) {
    const fs::path before = options.baseline / job.folder / "report.json";
    std::error_code ignored;
    if (fs::exists(before, ignored)) {
      CARINA_TRY(pipeline::Ledger a, pipeline::readLedger(before));
      const std::string now = report::reportJson(*build, bytes);
      CARINA_TRY(pipeline::Ledger b, pipeline::parseLedger(now));
      a.file = "before";
      b.file = "now";
      result.change = pipeline::diffLedgers(std::move(a), std::move(b));
    }
  }
  if (options.output.empty()) return {};
  const fs::path folder = options.output / job.folder;
  const fs::path output = folder / job.build.model.filename().replace_extension(".pte");
  CARINA_RETURN_IF_ERROR(report::addReport(*build, output.filename(), bytes, folder, files));
  if (evaluation)
    CARINA_RETURN_IF_ERROR(files.add(folder / "evaluate.json", report::evaluationJson(*evaluation)));
  return result.passed() ? files.add(output, program) : Status();
}

template <typename T, typename Text>
std::string cell(const std::optional<T>& value, Text text) {
  return value ? text(*value) : "-";
}

const std::vector<std::string> kColumns{"job", "", "NPU cycles", "ms", "SRAM", "program", "SQNR", "top-1"};

std::string verdictOf(const JobResult& result) {
  return !result.errors.empty() ? "FAILED" : result.passed() ? "ok" : "missed";
}

std::vector<std::string> rowOf(const JobResult& result) {
  const pipeline::Measured& m = result.measured;
  const auto ms = [](double value) { return fmt::format("{:.3f}", value); };
  const auto percent = [](double value) { return fmt::format("{:.2f} %", value); };
  return {result.name,
          verdictOf(result),
          cell(m.cycles, report::countText),
          cell(m.inferenceMs, ms),
          cell(m.sram, report::bytesText),
          cell(m.flash, report::bytesText),
          cell(m.sqnr, report::decibelText),
          cell(m.top1, percent)};
}

template <typename T>
nlohmann::ordered_json numberOrNull(const std::optional<T>& value) {
  if (!value) return {};
  if constexpr (std::is_same_v<T, double>) {
    return report::finiteNumber(*value);
  } else {
    return *value;
  }
}

}  // namespace

std::string JobResult::problem() const {
  return errors.empty() ? "" : Error(errors).str();
}

bool JobResult::passed() const {
  return errors.empty() &&
         std::all_of(gates.begin(), gates.end(), [](const auto& gate) { return gate.passed; });
}

Result<std::vector<JobResult>> runProject(const Project& project, const RunOptions& options) {
  std::vector<JobResult> results;
  OutputFiles files;
  if (options.progress) options.progress(0, project.jobs.size());
  for (const Job& job : project.jobs) {
    JobResult result;
    result.name = job.name;
    result.folder = job.folder;
    CARINA_RETURN_IF_ERROR(runJob(job, options, files, result));
    results.push_back(std::move(result));
    if (options.progress) options.progress(results.size(), project.jobs.size());
  }
  if (options.output.empty()) return results;
  CARINA_RETURN_IF_ERROR(files.add(options.output / "ci.json", resultsJson(results), true));
  CARINA_RETURN_IF_ERROR(files.add(options.output / "summary.md", resultsMarkdown(results)));
  CARINA_RETURN_IF_ERROR(files.add(options.output / "junit.xml", resultsJunit(results)));
  CARINA_RETURN_IF_ERROR(files.commit());
  return results;
}

std::string resultsText(const std::vector<JobResult>& results) {
  report::TextTable table(kColumns, 2);
  for (const JobResult& result : results) table.add(rowOf(result));
  return table.str();
}

std::string resultsCsv(const std::vector<JobResult>& results) {
  report::CsvTable table(
      {"job", "result", "cycles", "inference_ms", "sram_bytes", "flash_bytes", "sqnr_db", "top1_percent"});
  const auto number = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string(); };
  for (const JobResult& result : results) {
    const pipeline::Measured& m = result.measured;
    table.add({result.name, verdictOf(result), number(m.cycles), number(m.inferenceMs), number(m.sram),
               number(m.flash), number(m.sqnr), number(m.top1)});
  }
  return table.str();
}

std::string resultsMarkdown(const std::vector<JobResult>& results) {
  std::string text = report::markdownRow(kColumns) + report::markdownRule(kColumns.size(), 2);
  for (const JobResult& result : results) text += report::markdownRow(rowOf(result));
  std::string missed;
  for (const JobResult& result : results) {
    if (!result.errors.empty()) missed += "- " + report::inMarkdown(result.problem()) + "\n";
    for (const pipeline::GateResult& gate : result.gates) {
      if (!gate.passed) missed += "- " + report::inMarkdown(report::gateText(gate)) + "\n";
    }
  }
  if (!missed.empty()) text += "\n" + missed;
  for (const JobResult& result : results) {
    if (!result.change) continue;
    const bool any = std::any_of(result.change->layers.begin(), result.change->layers.end(),
                                 [](const auto& pair) { return pair.changed(); });
    if (!any) continue;
    text += "\n### " + report::inMarkdown(result.name) + "\n\n" + report::diffMarkdown(*result.change, false);
  }
  return text;
}

std::string resultsJson(const std::vector<JobResult>& results) {
  using Json = nlohmann::ordered_json;
  Json json = report::document("ci");
  json["passed"] = std::all_of(results.begin(), results.end(), [](const auto& one) { return one.passed(); });
  json["jobs"] = Json::array();
  for (const JobResult& result : results) {
    const pipeline::Measured& m = result.measured;
    Json gates = Json::array();
    for (const pipeline::GateResult& gate : result.gates) {
      gates.push_back(
          {{"gate", gate.gate}, {"limit", gate.limit}, {"found", gate.found}, {"passed", gate.passed}});
    }
    json["jobs"].push_back({{"name", result.name},
                            {"folder", result.folder},
                            {"passed", result.passed()},
                            {"problem", result.problem()},
                            {"npu_cycles", numberOrNull(m.cycles)},
                            {"inference_ms", numberOrNull(m.inferenceMs)},
                            {"sram_bytes", numberOrNull(m.sram)},
                            {"program_bytes", numberOrNull(m.flash)},
                            {"sqnr_db", numberOrNull(m.sqnr)},
                            {"top1_percent", numberOrNull(m.top1)},
                            {"wholly_on_npu", numberOrNull(m.wholly)},
                            {"gates", std::move(gates)}});
  }
  return report::documentText(json);
}

std::string resultsJunit(const std::vector<JobResult>& results) {
  std::vector<pipeline::GateResult> cases;
  for (const JobResult& result : results) {
    cases.push_back({result.name, "compiles", "without an error",
                     result.errors.empty() ? "none" : result.problem(), result.errors.empty()});
    cases.insert(cases.end(), result.gates.begin(), result.gates.end());
  }
  return report::junitText("carina ci", cases);
}

}  // namespace carina::ci
