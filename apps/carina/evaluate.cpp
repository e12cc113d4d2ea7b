// SPDX-License-Identifier: Apache-2.0
// carina evaluate: the accuracy of a network or program on labelled data. carina merge: merges the shards of
// an evaluation.
#include <algorithm>
#include <charconv>
#include <memory>

#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "evaluate/together.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "report/evaluation.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

struct Output {
  ResultPath json, csv;
  GateOptions gates;

  void declare(Command& command, std::initializer_list<GateOptions::Gate> which) {
    addResultOption(command, "--json", json, "Figures and flipped samples as JSON");
    addResultOption(command, "--csv", csv, "Figures as comma-separated values");
    gates.declare(command, which);
  }

  Status checkPaths() const { return checkResults({json, csv, gates.junit}); }

  Result<int> show(const evaluate::Evaluation& evaluation, std::string_view command) {
    CARINA_RETURN_IF_ERROR(gates.check(evaluation.measured));
    ResultFiles files;
    CARINA_RETURN_IF_ERROR(files.add(json, report::evaluationJson(evaluation)));
    CARINA_RETURN_IF_ERROR(files.add(csv, report::evaluationCsv(evaluation)));
    CARINA_RETURN_IF_ERROR(gates.addJunit(command, files));
    CARINA_RETURN_IF_ERROR(files.commit());
    files.print(report::evaluationText(evaluation));
    const bool differs = evaluation.summary.npuDiffersFromTosa() > 0;
    if (differs)
      return fail(Code::ResultsDiffer, "NPU and TOSA differ on {} samples",
                  evaluation.summary.npuDiffersFromTosa());
    return gates.finish(0);
  }
};

struct EvaluateFlags {
  BuildOptions build;
  evaluate::Options options;
  std::string shard;
  Output output;
};

struct MergeFlags {
  std::vector<std::filesystem::path> files;
  Output output;
};

/// "2/8": the second of eight.
bool parseShard(const std::string& text, size_t& shard, size_t& shards) {
  const char* const end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, shard);
  if (first != std::errc{} || slash == end || *slash != '/') return false;
  const auto [rest, second] = std::from_chars(slash + 1, end, shards);
  return second == std::errc{} && rest == end && shard >= 1 && shard <= shards && shards <= 1'000'000;
}

/// --mean and --std are applied once: a program with pixel inputs normalizes them itself; for others they are
/// applied when images are read.
void takePreprocessing(evaluate::Options& options) {
  pipeline::EndOptions& ends = options.build.ends;
  const bool single = std::any_of(ends.inputTypes.begin(), ends.inputTypes.end(), [](const auto& entry) {
    return entry.second == pipeline::ProgramIo::UInt8;
  });
  if (single || options.build.inputs == pipeline::ProgramIo::UInt8) return;
  options.preprocessing.mean.assign(ends.mean.begin(), ends.mean.end());
  options.preprocessing.std.assign(ends.deviation.begin(), ends.deviation.end());
  ends.mean.clear();
  ends.deviation.clear();
}

/// At the first of the processes that evaluate together; the others have nothing to show.
Result<int> execute(EvaluateFlags& flags, const evaluate::Ranks& ranks) {
  CARINA_TRY(const auto evaluation, evaluate::evaluateTogether(flags.options, ranks));
  if (!evaluation) return 0;
  warn(evaluation->warnings);
  return flags.output.show(*evaluation, "carina evaluate");
}

/// All processes exit with the same status.
Result<int> execute(EvaluateFlags& flags) {
  CARINA_RETURN_IF_ERROR(flags.output.checkPaths());
  flags.options.build = flags.build.finish();
  takePreprocessing(flags.options);
  flags.options.progress = progressBar("evaluating");
  CARINA_TRY(const evaluate::Ranks ranks, evaluate::Ranks::join());
  const auto done = execute(flags, ranks);
  const int status = done.ok() ? *done : report(done.error(), flags.options.build.model);
  return ranks.largest(status);
}

Result<int> executeMerge(MergeFlags& flags) {
  CARINA_RETURN_IF_ERROR(flags.output.checkPaths());
  CARINA_TRY(const evaluate::Evaluation evaluation, evaluate::merge(flags.files));
  return flags.output.show(evaluation, "carina merge");
}

void declareData(Command& command, EvaluateFlags& flags) {
  evaluate::Options& options = flags.options;
  command
      .option("--data", options.data,
              "Samples with labels: .npz, a folder of .npz shards, a folder per class, or a folder with "
              "labels.txt")
      .required();
  command.flag("--crop", options.preprocessing.crop,
               "Crop images to their centre instead of stretching them");
  using evaluate::Task;
  addChoice<std::optional<Task>, Task>(command, "--task", options.task,
                                       {{"classify", Task::Classify},
                                        {"segment", Task::Segment},
                                        {"tokens", Task::Tokens},
                                        {"boxes", Task::Boxes},
                                        {"compare", Task::Compare}},
                                       "Meaning of the first output: classify, segment, tokens, boxes, "
                                       "compare (against float only); default: what matches the labels");
  const std::vector<std::string> names{"float", "simulation", "tosa", "npu"};
  command
      .option(
          "--engines",
          [&options](const std::vector<std::string>& chosen) {
            for (const evaluate::Engine engine : evaluate::kEngines) {
              for (const std::string& name : chosen) {
                if (name == evaluate::engineName(engine)) options.engines.push_back(engine);
              }
            }
          },
          "What is evaluated: float, simulation, tosa, npu; default: all that can run")
      .delimiter(',')
      .check(oneOf(names));
  command.option("--samples", options.most, "Evaluate only this many samples, from the first on");
  command.option("--box-iou", options.boxIou, "Minimum overlap of matching boxes (default 0.5)")
      .check(range(0.0, 1.0));
  command.option("--bad-layer", options.badLayer,
                 "SQNR in dB below which a layer of a flipped sample is bad (default 20)");
  command.option("--records", options.records,
                 "File for the results of all samples; an interrupted evaluation resumes from it");
  command.option("--shard", flags.shard, "i/n: only the i-th of n parts of the data; needs --records")
      .check([&options](const std::string& text) {
        size_t shard = 0, shards = 0;
        if (!parseShard(text, shard, shards)) return fmt::format("'{}' is not i/n with 1 <= i <= n", text);
        options.shard = shard - 1;
        options.shards = shards;
        return std::string();
      });
}

}  // namespace

void addEvaluate(CommandLine& line, Run& run) {
  auto flags = std::make_shared<EvaluateFlags>();
  Command command =
      line.add("evaluate", "Measure accuracy on labelled data: float, simulation, TOSA and NPU side by side");
  flags->build.declare(command, BuildOptions::Takes::NetworksAndPrograms);
  declareData(command, *flags);
  using Gate = GateOptions::Gate;
  flags->output.declare(
      command, {Gate::Top1, Gate::Sqnr, Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Npu});
  command.callback([flags, &run] {
    flags->output.gates.checkUsage();
    if (!flags->shard.empty() && flags->options.records.empty())
      throwMissing("with --shard, --records (the file to merge later)");
    run = [flags] { return exitStatus(execute(*flags), flags->build.options.model); };
  });
}

void addMerge(CommandLine& line, Run& run) {
  auto flags = std::make_shared<MergeFlags>();
  Command command = line.add("merge", "Merge the records of shards into one evaluation");
  command.option("FILES", flags->files, "Records of all shards, in any order")
      .transform(inputFile())
      .required();
  using Gate = GateOptions::Gate;
  flags->output.declare(command, {Gate::Top1, Gate::Sqnr, Gate::Cycles});
  command.callback([flags, &run] {
    flags->output.gates.checkUsage();
    run = [flags] { return exitStatus(executeMerge(*flags)); };
  });
}

}  // namespace carina::app
