// SPDX-License-Identifier: Apache-2.0
#include "pipeline/profile.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "aten/control_flow.hpp"
#include "base/damaged.hpp"
#include "base/file.hpp"
#include "base/npy.hpp"
#include "compiler/schedule/operation_builder.hpp"
#include "npu/isa/disassembler.hpp"
#include "npu/isa/stream.hpp"
#include "npu/model/memory_uses.hpp"
#include "npu/targets/recorded_memories.hpp"
#include "npu/timing/way.hpp"
#include "pipeline/command_streams.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/gates.hpp"
#include "pipeline/stopwatch.hpp"
#include "pipeline/timed_profile.hpp"
#include "pipeline/verify.hpp"
#include "tflite/vela.hpp"

namespace carina::pipeline {
namespace {

/// Groups operations into layers.
class PartBuilder {
 public:
  explicit PartBuilder(ProfiledPart& part) : part_(part) {}

  /// Adds operations in stream order. Layers are distinguished by name and module path.
  void add(ProfiledOperation operation, const std::string& layer, const ir::LocationRef& location) {
    const std::string module = location ? location->modulePath : "";
    const auto [it, isNew] = layers_.try_emplace(std::tuple(layer, module), part_.layers.size());
    if (isNew) {
      Layer fresh;
      fresh.name = layer;
      fresh.modulePath = module;
      if (location) fresh.source = location->source;
      part_.layers.push_back(std::move(fresh));
    }
    Layer& into = part_.layers[it->second];
    operation.layer = it->second;
    operation.added = std::max<npu::Cycles>(operation.timing.end - end_, 0);
    // Transfers run in parallel with kernels: only the time that kernels wait for them counts.
    if (operation.timing.isDma) operation.added = 0;
    end_ += operation.added;
    const npu::OperationCost& cost = operation.timing.cost;
    ++into.operations;
    into.cycles += operation.added;
    into.macs += cost.macs;
    part_.macs += cost.macs;
    for (size_t port = 0; port < 2; ++port) {
      into.traffic[port].readBytes += cost.traffic[port].readBytes;
      into.traffic[port].writeBytes += cost.traffic[port].writeBytes;
    }
    if (!operation.timing.isDma) {
      into.compute += cost.total;
      if (into.kind.empty() || cost.total > part_.operations[into.heaviest].timing.cost.total) {
        into.kind = operation.kind;
        into.heaviest = part_.operations.size();
        into.bound = cost.bound;
      }
    }
    part_.operations.push_back(std::move(operation));
  }

  void finish() {
    for (Layer& layer : part_.layers) {
      if (layer.kind.empty()) {
        layer.kind = "DMA";
        layer.bound = npu::BoundBy::Dma;
      } else if (layer.cycles > 2 * layer.compute) {
        layer.bound = npu::BoundBy::Dma;  // it mostly waits for its transfers
      }
    }
  }

 private:
  ProfiledPart& part_;
  std::map<std::tuple<std::string, std::string>, size_t> layers_;
  npu::Cycles end_ = 0;
};

std::string kindText(const npu::Operation& operation) {
  if (const auto* kernel = std::get_if<npu::KernelOperation>(&operation))
    return compiler::operationKindText(*kernel);
  return "DMA";
}

int64_t regionBytes(const CommandStream& stream, size_t region) {
  const auto& known = stream.memory.regions[region];
  return known ? static_cast<int64_t>(known->bytes) : 0;
}

/// Every rule set costs as much as a whole profile; no network has more operations than this.
constexpr size_t kMaxTimedByRules = 100000;

/// Cycles of the stream under each rule set of the cycle model that the measurements allow; empty for very
/// long streams.
std::vector<npu::Cycles> cyclesByRules(std::span<const npu::PlacedOperation> operations,
                                       const npu::Machine& machine,
                                       std::span<const npu::CountedLoop> loops = {}) {
  std::vector<npu::Cycles> cycles;
  if (operations.size() > kMaxTimedByRules) return cycles;
  for (const npu::timing::Rules& rules : npu::timing::ruleSets())
    cycles.push_back(npu::longestPath(operations, machine, rules, loops));
  return cycles;
}

/// One past the last byte of the cache that an operation reads or writes; 0 if it accesses none.
int64_t cacheEndOf(const npu::Target& target, const npu::Operation& operation) {
  constexpr int32_t kCacheRegion = 2;
  std::vector<npu::MemoryUse> uses;
  if (const auto* kernel = std::get_if<npu::KernelOperation>(&operation))
    uses = npu::memoryUses(target, *kernel);
  else if (const auto* dma = std::get_if<npu::DmaOperation>(&operation))
    uses = npu::memoryUses(target, *dma);
  int64_t end = 0;
  for (const npu::MemoryUse& use : uses) {
    if (use.space == kCacheRegion) end = std::max(end, static_cast<int64_t>(use.last) + 1);
  }
  return end;
}

/// Operations of a stream that a profile lists. Compilers use more words per operation; only commands that
/// repeat settings are denser.
size_t mostProfiled(std::span<const uint32_t> words) {
  return std::max(words.size() / 4, size_t{1} << 16);
}

Result<ProfiledPart> profileStream(const CommandStream& stream, const npu::Machine& machine) {
  ProfiledPart part;
  part.constantBytes = regionBytes(stream, 0);
  part.arenaBytes = regionBytes(stream, 1);
  part.commandBytes = static_cast<int64_t>(stream.words.size() * 4);
  CARINA_TRY(const std::vector<npu::PlacedOperation> operations,
             npu::decodeStream(stream.words, *machine.target));
  npu::Timeline timeline(machine);
  PartBuilder builder(part);
  for (const npu::PlacedOperation& placed : operations) {
    const std::optional<npu::ScheduledCost> timing = timeline.add(placed.operation, placed.offset);
    if (!timing) continue;
    if (part.operations.size() == mostProfiled(stream.words)) {
      return fail(Code::TooLarge,
                  "the command stream of {} words has more than {} operations, the most that a profile can "
                  "list",
                  stream.words.size(), mostProfiled(stream.words))
          .withRemedy("`carina run` counts the cycles of any stream");
    }
    ProfiledOperation operation;
    operation.name = fmt::format("#{}", part.operations.size());
    operation.kind = kindText(placed.operation);
    operation.description = npu::describe(placed.operation);
    operation.operation = placed.operation;
    operation.timing = *timing;
    part.cacheBytes = std::max(part.cacheBytes, cacheEndOf(*machine.target, placed.operation));
    const std::string name = operation.name;
    builder.add(std::move(operation), name, nullptr);
  }
  builder.finish();
  part.cycles = npu::longestPath(operations, machine);
  part.cyclesByRules = cyclesByRules(operations, machine);
  return part;
}

/// Places every stream of a finished program on the timeline of its machine.
Status addStreams(std::span<const CommandStream> streams, const Options& options, Profile& profile) {
  Stopwatch watch(profile.times, "time");
  const bool several = std::any_of(streams.begin(), streams.end(), [&](const CommandStream& stream) {
    return stream.method != streams.front().method;
  });
  std::set<std::string> keys;  // of constants
  for (const CommandStream& stream : streams) {
    if (!options.target.empty() && options.target != stream.target->name) {
      return fail(Code::OtherNpu, "the program was compiled for {}", stream.target->name)
          .inFile(profile.file.string())
          .withRemedy("profile the network itself for " + options.target);
    }
    const auto read = [&]() -> Result<ProfiledPart> {
      CARINA_TRY(profile.machine,
                 npu::makeMachine(stream.target->name,
                                  options.systemConfig.empty() ? stream.systemConfig : options.systemConfig,
                                  options.memoryMode.empty() ? stream.memoryMode : options.memoryMode,
                                  options.configFile, stream.memories));
      return profileStream(stream, profile.machine);
    };
    auto part = read();
    if (!part) return std::move(part).error().inFile(profile.file.string()).withRemedy(kDamagedRemedy);
    if (several) part->method = stream.method;
    // Constants that several parts share count once, for the first.
    if (!stream.constantsKey.empty() && !keys.insert(stream.constantsKey).second) part->constantBytes = 0;
    profile.parts.push_back(std::move(*part));
  }
  return {};
}

/// Cycles of the longest path through the branches of a graph, with all iterations of loops whose iteration
/// count is known and one of each other. `next`: the part of the next delegate call.
npu::Cycles longestPath(const ir::Graph& graph, std::span<const compiler::CompiledProgram> parts,
                        size_t& next) {
  npu::Cycles total = 0;
  for (const ir::Node* node : graph.nodes()) {
    if (node->is(partition::delegateCallDef())) total += parts[next++].cycles;
    if (!aten::isControlFlow(*node)) continue;
    const npu::Cycles first = longestPath(node->region(0), parts, next);
    if (node->is(aten::scanDef())) {
      total += first * aten::Scan(*node).turns;
      continue;
    }
    const npu::Cycles second = longestPath(node->region(1), parts, next);
    total += node->is(aten::condDef()) ? std::max(first, second) : first + second;
  }
  return total;
}

/// Explains the sum over all parts for a network with control flow; nullopt for others.
std::optional<Diagnostic> aboutBranches(const Build& build, npu::Cycles longest) {
  bool branches = false, slices = false;
  aten::forEachNode(build.graph(), [&](const ir::Node& node) {
    (node.is(aten::scanDef()) ? slices : branches) |= aten::isControlFlow(node);
  });
  if (!branches && !slices) return std::nullopt;
  if (!branches) {
    return Diagnostic{
        fmt::format("loops call NPU parts repeatedly: all calls of the {} parts together take {} cycles",
                    build.compiled.size(), longest),
        "--input SAMPLES measures the cycles of samples", build.options.model.string(), "", Code::None};
  }
  return Diagnostic{fmt::format("branches and loops decide which of the {} NPU parts run: the longest path, "
                                "with one iteration of each loop whose count is unknown, takes {} cycles",
                                build.compiled.size(), longest),
                    "--input SAMPLES measures the cycles of samples", build.options.model.string(), "",
                    Code::None};
}

std::vector<int64_t> partCyclesOf(const Profile& profile) {
  std::vector<int64_t> cycles;
  for (const ProfiledPart& part : profile.parts) cycles.push_back(part.cycles);
  return cycles;
}

/// The timeline of the inference, if each part of the profile is a delegate of the method.
void takeSteps(const pte::Method& method, TimedProfile& timed) {
  if (timed.inference && method.delegates.size() == timed.profile.parts.size())
    timed.steps = inferenceSteps(method, partCyclesOf(timed.profile), timed.inference->core);
}

}  // namespace

bool isNetwork(ByteSpan bytes, const std::filesystem::path& file) {
  const FileKind kind = fileKind(bytes, file);
  if (kind != FileKind::Tflite) return kind == FileKind::Archive || kind == FileKind::Tosa;
  const auto model = tflite::readModel(bytes);
  return model.ok() && tflite::npuCalls(*model).empty();
}

Profile profileBuild(const Build& build) {
  CARINA_CHECK(build.machine, "a profile is of an NPU");
  Profile profile;
  profile.file = build.options.model;
  profile.machine = *build.machine;
  profile.warnings = build.warnings;
  size_t next = 0;
  profile.longest = longestPath(build.graph(), build.compiled, next);
  if (auto about = aboutBranches(build, profile.longest)) profile.warnings.push_back(std::move(*about));
  profile.times = build.times;
  profile.network = networkGraph(build);
  const auto operators = operatorsByName(build.nodes);
  const std::map<std::string, double> sqnr = sqnrByValue(build);
  for (const compiler::CompiledProgram& compiled : build.compiled) {
    ProfiledPart part;
    part.arenaBytes = compiled.arenaBytes;
    part.cacheBytes = compiled.cacheBytes;
    part.constantBytes = static_cast<int64_t>(compiled.constants.size());
    part.commandBytes = static_cast<int64_t>(compiled.commands.size() * 4);
    part.memory = compiled.memory;
    part.steps = compiled.steps;
    PartBuilder builder(part);
    for (const compiler::OperationRecord& record : compiled.operations) {
      ProfiledOperation operation;
      operation.name = record.name;
      operation.kind = record.kind;
      operation.description = npu::describe(record.operation);
      operation.operation = record.operation;
      operation.timing = record.timing;
      const std::string layer =
          record.location && !record.location->name.empty() ? record.location->name : record.name;
      builder.add(std::move(operation), layer, record.location);
      const auto found = sqnr.find(record.value.substr(0, record.value.find(':')));
      if (found != sqnr.end()) part.layers[part.operations.back().layer].sqnr = found->second;
    }
    builder.finish();
    for (Layer& layer : part.layers) {
      if (const auto known = operators.find(layer.name); known != operators.end()) layer.op = known->second;
    }
    part.cycles = compiled.cycles;
    const auto operations = npu::decodeStream(compiled.commands, *profile.machine.target);
    CARINA_CHECK(operations.ok(), "a stream that was just written");
    part.cyclesByRules = cyclesByRules(*operations, profile.machine, compiler::countedLoops(compiled));
    part.branches = compiled.branches;
    profile.parts.push_back(std::move(part));
  }
  return profile;
}

Result<Profile> profileProgram(const std::filesystem::path& file, const Options& options) {
  Profile profile;
  profile.file = file;
  std::vector<CommandStream> streams;
  {
    Stopwatch watch(profile.times, "read");
    CARINA_TRY(streams, commandStreams(file, options.target));
  }
  CARINA_RETURN_IF_ERROR(addStreams(streams, options, profile));
  if (profile.parts.empty()) {
    return fail(Code::NeedsWholeNpu, "nothing in this program runs on an Ethos-U")
        .inFile(file.string())
        .withRemedy("compile it for an Ethos-U; for an Ethos-N, profile the network itself with --target");
  }
  return profile;
}

namespace {

/// The paths that the samples of a file take.
Result<MeasuredPaths> measuredWays(const Build& build, const std::filesystem::path& file) {
  CARINA_TRY(const NamedTensors arrays, readArrays(file));
  const auto samples = verificationSamples(build, arrays);
  if (!samples) return Error(samples.error()).inFile(file.string());
  return measurePaths(build, *samples);
}

}  // namespace

Result<TimedProfile> timedProfile(const Options& options, const std::string& core,
                                  const std::filesystem::path& samples) {
  {
    CARINA_TRY(const auto mapped, MappedFile::open(options.model));
    if (!isNetwork(mapped->bytes(), options.model)) {
      if (!samples.empty()) {
        return fail(Code::OptionDoesNotApply, "a finished program does not record where its branches begin")
            .inFile(options.model.string())
            .at("--input")
            .withRemedy("profile the network itself, or count the cycles of samples with carina run");
      }
      if (!options.sizes.empty()) {
        return fail(Code::OptionDoesNotApply, "the sizes of a program are fixed")
            .inFile(options.model.string())
            .at("--specialize")
            .withRemedy("leave it out");
      }
      TimedProfile timed;
      CARINA_TRY(timed.profile, profileProgram(options.model, options));
      timed.profile.programBytes = static_cast<int64_t>(mapped->bytes().size());
      // An inference runs a single method.
      const bool one = timed.profile.parts.front().method.empty();
      const auto read = pte::readProgram(mapped->bytes());
      if (one && read.ok() && !read->methods.empty() && pte::verifyProgram(*read).ok()) {
        const pte::Method& method = read->methods.front();
        const int64_t cycles = npuCyclesOf(method, partCyclesOf(timed.profile));
        CARINA_TRY(timed.inference, inferenceOf(mapped->bytes(), "", cycles, &timed.profile.machine, core));
        timed.profile.inferenceMs =
            timed.inference ? std::optional(timed.inference->milliseconds()) : std::nullopt;
        takeSteps(method, timed);
      }
      Measured place;
      recordPlacement(mapped->bytes(), place);
      timed.profile.wholly = place.wholly;
      timed.profile.onCpu = place.onCpu;
      return timed;
    }
  }
  if (options.target.empty() || options.target == "cpu") {
    return fail(Code::NeedsWholeNpu, "{}",
                options.target.empty() ? "no NPU is named for the network to run on"
                                       : "target cpu has no NPU to profile")
        .inFile(options.model.string())
        .at("--target")
        .withRemedy("name an NPU with --target (see 'carina targets')");
  }
  CARINA_TRY(const Build built, build(options));
  if (built.compiled.empty()) {
    return fail(Code::NeedsWholeNpu, "no part of the network runs on {}", options.target)
        .inFile(options.model.string())
        .withRemedy("see why with carina ops");
  }
  CARINA_TRY(const std::string program, pte::writeProgram(built.program));
  const Measured measured = measuredOf(built, static_cast<int64_t>(program.size()));
  TimedProfile timed{profileBuild(built), inferenceOf(built, core), {}};
  takeSteps(built.program.methods.front(), timed);
  if (!samples.empty()) {
    CARINA_TRY(timed.profile.measured, measuredWays(built, samples));
  }
  Profile& result = timed.profile;
  result.inferenceMs = timed.inference ? std::optional(timed.inference->milliseconds()) : std::nullopt;
  result.sqnr = measured.sqnr;
  result.wholly = measured.wholly;
  result.onCpu = measured.onCpu;
  result.programBytes = measured.flash;
  return timed;
}

Result<Profile> profile(const Options& options) {
  CARINA_TRY(TimedProfile timed, timedProfile(options, ""));
  return std::move(timed.profile);
}

}  // namespace carina::pipeline
