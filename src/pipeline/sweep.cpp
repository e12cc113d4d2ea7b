// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/parallel.hpp"
#include "pipeline/chosen_machine.hpp"
#include "pipeline/ethosn_partition.hpp"
#include "pipeline/ethosn_profile.hpp"
#include "pipeline/loop_choice.hpp"
#include "pipeline/part_turns.hpp"
#include "pipeline/stopwatch.hpp"

namespace carina::pipeline {
namespace {

/// The configurations to try; combinations that no machine has are left out.
Result<std::vector<npu::Machine>> machinesOf(const SweepOptions& options) {
  std::vector<std::string> targets = options.targets;
  if (targets.empty()) {
    for (const npu::Target& target : npu::allTargets()) targets.emplace_back(target.name);
  }
  std::vector<std::string> systems = options.systemConfigs;
  if (systems.empty()) systems.emplace_back();
  std::vector<npu::Machine> machines;
  std::optional<Error> refusal;  // the first one
  for (const std::string& name : targets) {
    if (ethosn::isEthosNName(name)) continue;
    CARINA_TRY(const npu::Target* target, npu::findTarget(name));
    std::vector<std::string> modes = options.memoryModes;
    if (modes.empty()) modes.emplace_back();
    if (modes == std::vector<std::string>{"all"}) {
      modes.clear();
      for (const npu::MemoryMode& mode : npu::stockMemoryModes()) {
        if (npu::supportsMemoryMode(*target, mode)) modes.push_back(mode.name);
      }
    }
    for (const std::string& system : systems) {
      for (const std::string& mode : modes) {
        Options wanted;
        wanted.target = name;
        wanted.systemConfig = system;
        wanted.memoryMode = mode;
        wanted.configFile = options.base.configFile;
        auto machine = chosenMachine(wanted);
        if (machine) {
          machines.push_back(std::move(*machine));
          continue;
        }
        // A mode or system of another family is left out if several targets are compared.
        if (!refusal) refusal = std::move(machine).error();
      }
    }
  }
  // For a single target, an unsupported configuration is an error; for several targets it is left out.
  if (refusal && (machines.empty() || targets.size() == 1)) return std::move(*refusal);
  return machines;
}

/// The Ethos-N among the targets: each has one configuration.
Result<std::vector<ethosn::Target>> ethosNTargetsOf(const SweepOptions& options) {
  std::vector<ethosn::Target> found;
  for (const std::string& name : options.targets) {
    if (!ethosn::isEthosNName(name)) continue;
    Options wanted;
    wanted.target = name;
    CARINA_TRY(const ethosn::Target target, chosenEthosN(wanted));
    found.push_back(target);
  }
  return found;
}

SweepRow rowOf(const Options& base, const std::string& core, const Front& front,
               const npu::Machine& machine) {
  SweepRow row;
  row.target = std::string(machine.target->name);
  row.systemConfig = machine.system.name;
  row.memoryMode = machine.memory.name;
  row.clockHz = machine.system.clockHz;
  Options options = base;
  options.target = row.target;
  options.systemConfig = row.systemConfig;
  options.memoryMode = row.memoryMode;
  options.progress = nullptr;
  options.dump = nullptr;
  auto build = buildFrom(cloneOf(front), options, {});
  if (!build) {
    row.problem = build.error().message();
    return row;
  }
  row.wholly = build->partitioned.wholly;
  const auto program = pte::writeProgram(build->program);
  if (!program) {
    row.problem = program.error().message();
    return row;
  }
  row.measured = measuredOf(*build, static_cast<int64_t>(program->size()));
  row.inference = inferenceOf(*build, core);
  if (row.inference) row.measured.inferenceMs = row.inference->milliseconds();
  row.cycles = npuCycles(*build);
  row.macs = npuMacs(*build);
  for (const compiler::CompiledProgram& part : build->compiled) {
    row.arenaBytes = std::max(row.arenaBytes, part.arenaBytes);
    row.cacheBytes = std::max(row.cacheBytes, part.cacheBytes);
    row.constantBytes += static_cast<int64_t>(part.constants.size());
    row.commandBytes += static_cast<int64_t>(part.commands.size() * 4);
    row.arenaBound = std::max(row.arenaBound, part.arenaBound);
  }
  const auto add = [&](npu::Area area, int64_t bytes) {
    if (bytes > 0) row.bytes[machine.timing(area).kind] += bytes;
  };
  add(npu::Area::Arena, row.arenaBytes);
  add(npu::Area::Cache, row.cacheBytes);
  add(npu::Area::Constants, row.constantBytes + row.commandBytes);
  if (build->compiled.empty()) row.problem = "nothing runs on the NPU";
  if (row.cycles > 0)
    row.macUse = static_cast<double>(row.macs) / (static_cast<double>(row.cycles) * machine.target->macs);
  return row;
}

SweepRow rowOf(const Options& base, const Front& front, const ethosn::Target& target) {
  SweepRow row;
  row.target = ethosn::nameOf(target);
  Options options = base;
  options.target = row.target;
  options.progress = nullptr;
  options.dump = nullptr;
  const auto fill = [&]() -> Status {
    CARINA_TRY(const Build build, buildFrom(cloneOf(front), options, {}));
    CARINA_TRY(const EthosNProfile profile, profileEthosN(build));
    CARINA_TRY(const std::string program, pte::writeProgram(build.program));
    row.wholly = build.partitioned.wholly;
    row.measured = measuredOf(build, static_cast<int64_t>(program.size()));
    row.cycles = static_cast<npu::Cycles>(profile.cycles());
    row.measured.cycles = row.cycles;
    for (const EthosNPartCost& part : profile.parts) {
      row.macs += static_cast<int64_t>(part.sum(&EthosNPassCost::macs));
      row.arenaBytes = std::max(row.arenaBytes, static_cast<int64_t>(part.intermediateBytes));
      row.constantBytes += static_cast<int64_t>(part.constantBytes);
      row.commandBytes += static_cast<int64_t>(part.commandBytes);
    }
    row.bytes[npu::MemoryKind::Dram] = row.arenaBytes + row.constantBytes + row.commandBytes;
    if (profile.parts.empty()) row.problem = "nothing runs on the NPU";
    constexpr int64_t kMacsPerOg = 8;
    const double perCycle = static_cast<double>(target.variant->igs() * target.variant->ogs() * kMacsPerOg);
    if (row.cycles > 0)
      row.macUse = static_cast<double>(row.macs) / (static_cast<double>(row.cycles) * perCycle);
    return {};
  };
  if (const Status status = fill(); !status.ok()) row.problem = status.error().message();
  return row;
}

/// Number of arena limits between those of --optimize size and performance.
constexpr int kLimits = 10;

/// The frontier of one configuration; one row if it cannot be compiled, or both ends coincide.
std::vector<SweepRow> frontierOf(const Options& base, const std::string& core, const Front& front,
                                 const npu::Machine& machine) {
  const auto compiled = [&](const Options& options, std::string reproduce) {
    SweepRow row = rowOf(options, core, front, machine);
    row.reproduce = std::move(reproduce);
    return row;
  };
  Options size = base;
  size.optimize = compiler::Optimize::Size;
  std::vector<SweepRow> rows{compiled(size, "--optimize size"), compiled(base, "--optimize performance")};
  if (!rows[0].problem.empty() || !rows[1].problem.empty()) return {rows[rows[0].problem.empty() ? 1 : 0]};
  const int64_t least = rows[0].arenaBytes, most = rows[1].arenaBytes, bound = rows[0].arenaBound;
  // Equal ratios; arenas are multiples of 16.
  std::vector<int64_t> limits;
  for (int i = 1; i <= kLimits; ++i) {
    const double ratio = static_cast<double>(most) / static_cast<double>(std::max<int64_t>(least, 1));
    const auto limit =
        static_cast<int64_t>(static_cast<double>(least) * std::pow(ratio, i / (kLimits + 1.0)));
    if (limit / 16 * 16 > least && (limits.empty() || limit / 16 * 16 > limits.back()))
      limits.push_back(limit / 16 * 16);
  }
  std::vector<SweepRow> between(limits.size());
  parallelFor(limits.size(), [&](size_t i) {
    Options options = base;
    options.arenaLimit = limits[i];
    between[i] = compiled(options, fmt::format("--arena-size {}", limits[i]));
  });
  std::move(between.begin(), between.end(), std::back_inserter(rows));
  std::stable_sort(rows.begin(), rows.end(), [](const SweepRow& a, const SweepRow& b) {
    return std::tuple(a.arenaBytes, a.cycles) < std::tuple(b.arenaBytes, b.cycles);
  });
  std::vector<SweepRow> frontier;
  for (SweepRow& row : rows) {
    if (!row.problem.empty() || (!frontier.empty() && row.cycles >= frontier.back().cycles)) continue;
    row.arenaBound = bound;
    frontier.push_back(std::move(row));
  }
  return frontier;
}

}  // namespace

Result<Sweep> sweep(const SweepOptions& options) {
  CARINA_TRY(const std::vector<npu::Machine> machines, machinesOf(options));
  CARINA_TRY(const std::vector<ethosn::Target> ethosN, ethosNTargetsOf(options));
  if (!ethosN.empty() && (!options.systemConfigs.empty() || !options.memoryModes.empty())) {
    return fail(Code::OptionDoesNotApply, "an Ethos-N has no system configurations or memory modes")
        .at("--targets")
        .withRemedy("leave out --system-configs and --memory-modes, or the Ethos-N");
  }
  const size_t count = machines.size() + ethosN.size();
  Options reading = options.base;
  reading.target =
      machines.empty() ? ethosn::nameOf(ethosN.front()) : std::string(machines.front().target->name);
  Sweep result;
  CARINA_TRY(const Front front, runFront(reading, result.times));
  result.warnings = front.warnings;
  std::vector<std::vector<SweepRow>> rows(count);
  std::mutex mutex;
  size_t done = 0;
  if (options.progress) options.progress(0, count);
  {
    Stopwatch watch(result.times, "compile");
    parallelFor(count, [&](size_t i) {
      if (i >= machines.size()) {
        rows[i] = {rowOf(options.base, front, ethosN[i - machines.size()])};
      } else if (options.pareto) {
        rows[i] = frontierOf(options.base, options.cpuCore, front, machines[i]);
      } else {
        rows[i] = {rowOf(options.base, options.cpuCore, front, machines[i])};
      }
      const std::lock_guard<std::mutex> lock(mutex);
      ++done;
      if (options.progress) options.progress(done, count);
    });
  }
  for (std::vector<SweepRow>& found : rows)
    std::move(found.begin(), found.end(), std::back_inserter(result.rows));
  return result;
}

}  // namespace carina::pipeline
