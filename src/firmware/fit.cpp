// SPDX-License-Identifier: Apache-2.0
#include "firmware/fit.hpp"

#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "base/file.hpp"
#include "base/signals.hpp"
#include "firmware/plan.hpp"
#include "npu/targets/recorded_memories.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/timed_profile.hpp"

namespace carina::firmware {
namespace {

constexpr size_t kMaxPeakTensors = 6;

/// A file with the board's memories for --config; none if the target's stock names describe them.
class ConfigFile {
 public:
  static Result<ConfigFile> of(const npu::Machine& machine) {
    ConfigFile file;
    const std::string text = npu::describeMemories(machine);
    if (text.empty()) return file;
    std::error_code failed;
    std::string name = (std::filesystem::temp_directory_path(failed) / "carina-board-XXXXXX").string();
    const int descriptor = failed ? -1 : ::mkstemp(name.data());
    if (descriptor < 0) return fail(Code::CannotWrite, "cannot create a temporary file").inFile(name);
    ::close(descriptor);
    file.path_ = name;
    file.guard_.emplace(RemovedOnSignal::Kind::File, name);
    CARINA_RETURN_IF_ERROR(writeFile(name, text));
    return file;
  }
  ~ConfigFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  ConfigFile(ConfigFile&& other) noexcept : path_(std::move(other.path_)), guard_(std::move(other.guard_)) {
    other.path_.clear();
  }
  ConfigFile& operator=(ConfigFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  ConfigFile() = default;
  std::filesystem::path path_;
  std::optional<RemovedOnSignal> guard_;
};

/// Places blocks in the memories of a board.
class Placer {
 public:
  Placer(const Board& board, std::vector<MemoryUse>& memories) : memories_(memories) {
    for (const BoardMemory& memory : board.memories) memories_.push_back({memory, {}});
  }

  /// Places a block in the first memory of one of `kinds`, in order of preference, that has space for it; if
  /// none has, in the one with the most free space.
  void put(const std::string& what, int64_t bytes, std::initializer_list<std::string_view> kinds) {
    if (bytes <= 0) return;
    MemoryUse* widest = nullptr;
    for (const std::string_view kind : kinds) {
      for (MemoryUse& use : memories_) {
        if (!use.memory.takes(kind)) continue;
        if (use.free() >= bytes) return use.blocks.push_back({what, bytes});
        if (widest == nullptr || use.free() > widest->free()) widest = &use;
      }
    }
    if (widest != nullptr) {
      widest->blocks.push_back({what, bytes});
      return;
    }
    // No memory of such a kind: all bytes are missing.
    memories_.push_back({{std::string(*kinds.begin()), 0, 0, {}}, {{what, bytes}}});
  }

 private:
  std::vector<MemoryUse>& memories_;
};

int64_t alignedTo16(int64_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/// Places a measured program.
void place(const Plan& plan, const npu::Machine& machine, Fit& fit) {
  const auto kindOf = [&](npu::Area area) { return npu::memoryKindName(machine.timing(area).kind); };
  Placer placer(*fit.board, fit.memories);
  const bool hasNpu = plan.machine.has_value();
  const std::string_view arena = hasNpu ? kindOf(npu::Area::Arena) : "Sram";
  const std::string_view constants = hasNpu ? kindOf(npu::Area::Constants) : "OffChipFlash";
  placer.put("cache", alignedTo16(plan.fastScratchBytes), {kindOf(npu::Area::Cache)});
  placer.put("arena", alignedTo16(plan.temporaryBytes), {arena});
  placer.put("program", alignedTo16(plan.programBytes), {constants});
  placer.put("pools", plan.poolBytes(), {"Sram", "data", "Dram"});
  placer.put("method memory", plan.methodBytes(), {"data", "Sram", "Dram"});
  placer.put("stack", plan.stackBytes, {"data", "Sram", "Dram"});
}

/// The tensors that are live when arena use is at its peak.
void findPeak(const pipeline::Build& build, Fit& fit) {
  int64_t most = 0;
  for (const compiler::CompiledProgram& part : build.compiled) {
    const auto liveAt = [&](int32_t step) {
      std::vector<const compiler::MemoryRecord*> live;
      for (const compiler::MemoryRecord& record : part.memory) {
        const bool own = record.area == npu::Area::Arena && record.what != "in place";
        if (own && record.first <= step && step <= record.last) live.push_back(&record);
      }
      return live;
    };
    for (const compiler::MemoryRecord& at : part.memory) {
      const auto live = liveAt(at.first);
      const int64_t bytes =
          std::accumulate(live.begin(), live.end(), int64_t{0},
                          [](int64_t sum, const compiler::MemoryRecord* r) { return sum + r->bytes; });
      if (bytes <= most) continue;
      most = bytes;
      const auto step = static_cast<size_t>(std::max(at.first, 0));
      fit.peakStep = at.first >= 0 && step < part.steps.size() ? part.steps[step] : "the start";
      fit.peak.clear();
      for (const compiler::MemoryRecord* record : live)
        fit.peak.push_back({record->name, record->what, record->bytes});
    }
  }
  std::stable_sort(fit.peak.begin(), fit.peak.end(),
                   [](const PeakTensor& a, const PeakTensor& b) { return a.bytes > b.bytes; });
  if (fit.peak.size() > kMaxPeakTensors) fit.peak.resize(kMaxPeakTensors);
}

const std::string& coreName(const FitOptions& options) {
  return options.core.empty() ? options.board->cpu : options.core;
}

/// The gate applies to the board's core.
void takeTime(Fit& fit) {
  fit.measured.inferenceMs.reset();
  if (fit.inference && fit.inference->clockHz > 0) fit.measured.inferenceMs = fit.inference->milliseconds();
}

/// One compilation with its placement.
struct Attempt {
  Fit fit;
  pipeline::Build build;
};

Result<Attempt> compileFor(const FitOptions& options) {
  Attempt attempt;
  Fit& fit = attempt.fit;
  fit.board = options.board;
  fit.isNetwork = true;
  CARINA_TRY(fit.machine, machineOf(*options.board, options.build.target, options.build.memoryMode));
  CARINA_TRY(const ConfigFile config, ConfigFile::of(fit.machine));
  pipeline::Options build = options.build;
  build.target = std::string(fit.machine.target->name);
  build.systemConfig = fit.machine.system.name;
  build.memoryMode = fit.machine.memory.name;
  build.configFile = config.path();
  CARINA_TRY(attempt.build, pipeline::build(build));
  CARINA_TRY(fit.program, pte::writeProgram(attempt.build.program));
  CARINA_TRY(Plan plan, measureProgram(asBytes(fit.program), ""));
  if (options.stackBytes > 0) plan.stackBytes = options.stackBytes;
  place(plan, fit.machine, fit);
  for (const compiler::CompiledProgram& part : attempt.build.compiled) {
    fit.constantBytes += static_cast<int64_t>(part.constants.size());
    fit.commandBytes += static_cast<int64_t>(4 * part.commands.size());
  }
  fit.inference = pipeline::inferenceOf(attempt.build, coreName(options));
  fit.measured = pipeline::measuredOf(attempt.build, static_cast<int64_t>(fit.program.size()));
  takeTime(fit);
  fit.file = options.build.model.filename().string();
  fit.warnings = attempt.build.warnings;
  return attempt;
}

bool hasFloatEnds(const pte::Program& program) {
  for (const pte::Method& method : program.methods) {
    for (const auto* ends : {&method.inputs, &method.outputs}) {
      for (const int32_t end : *ends) {
        const auto* tensor = std::get_if<pte::Tensor>(&method.values[static_cast<size_t>(end)]);
        if (tensor != nullptr && tensor->type == pte::ScalarType::Float32) return true;
      }
    }
  }
  return false;
}

/// Option changes that may help: each alone, then together with the smallest arena.
class Fixer {
 public:
  /// To be created before the build is released, whose memory attempts need.
  Fixer(const FitOptions& options, const Attempt& before)
      : options_(options), before_(before.fit), floatEnds_(hasFloatEnds(before.build.program)) {
    for (const compiler::CompiledProgram& part : before.build.compiled)
      arenaBound_ = std::max(arenaBound_, part.arenaBound);
  }

  std::vector<FitFix> run() {
    const pipeline::Options& build = options_.build;
    for (const npu::MemoryMode& mode : npu::stockMemoryModes()) {
      if (mode.name == before_.machine.memory.name || !npu::supportsMemoryMode(*before_.machine.target, mode))
        continue;
      try_("--memory-mode " + mode.name, [&](pipeline::Options& o) { o.memoryMode = mode.name; });
    }
    const bool smaller = build.optimize != compiler::Optimize::Size && arenaCanShrink();
    if (smaller) try_("--optimize size", [](pipeline::Options& o) { o.optimize = compiler::Optimize::Size; });
    if (const int64_t room = arenaRoom(); room > 0 && smaller) {
      try_(fmt::format("--arena-size {}", room), [&](pipeline::Options& o) { o.arenaLimit = room; });
    }
    if (floatEnds_) try_(std::string("--io ") + integerType(), [&](pipeline::Options& o) { integerIo(o); });
    if (floatEnds_ && smaller && !anyFits()) {
      try_(std::string("--optimize size --io ") + integerType(), [&](pipeline::Options& o) {
        o.optimize = compiler::Optimize::Size;
        integerIo(o);
      });
    }
    std::stable_sort(fixes_.begin(), fixes_.end(), [](const FitFix& a, const FitFix& b) {
      if (a.fits != b.fits) return a.fits;
      return a.fits ? a.cycles < b.cycles : a.over < b.over;
    });
    return std::move(fixes_);
  }

 private:
  bool wide() const { return options_.build.quantization == pipeline::Quantization::Int16x8; }
  const char* integerType() const { return wide() ? "int16" : "int8"; }
  void integerIo(pipeline::Options& options) const {
    options.inputs = options.outputs = wide() ? pipeline::ProgramIo::Int16 : pipeline::ProgramIo::Int8;
  }

  /// Bytes that the arena's memory leaves to the arena; 0 if that memory is large enough.
  int64_t arenaRoom() const {
    const MemoryUse* use = before_.memoryOf("arena");
    if (use == nullptr || use->over() == 0) return 0;
    int64_t others = 0;
    for (const FitBlock& block : use->blocks) others += block.what == "arena" ? 0 : block.bytes;
    return std::max<int64_t>((use->memory.bytes - others) / 16 * 16, 0);
  }

  /// Whether a choice of cascades may fit the arena into its memory: what is live at once with the best
  /// choice does not exceed the space that there is.
  bool arenaCanShrink() const {
    const int64_t room = arenaRoom();
    return room == 0 || arenaBound_ <= room;
  }

  bool anyFits() const {
    return std::any_of(fixes_.begin(), fixes_.end(), [](const FitFix& fix) { return fix.fits; });
  }

  /// A change that cannot be compiled is not a fix.
  template <typename Change>
  void try_(std::string change, Change&& apply) {
    FitOptions options = options_;
    apply(options.build);
    options.build.progress = nullptr;
    options.build.dump = nullptr;
    const auto attempt = compileFor(options);
    if (!attempt) return;
    const int64_t over = attempt->fit.over();
    if (over >= before_.over()) return;
    const auto& time = attempt->fit.inference;
    fixes_.push_back({std::move(change), over == 0, over, time ? time->cycles() : 0});
  }

  const FitOptions& options_;
  const Fit& before_;
  const bool floatEnds_;
  int64_t arenaBound_ = 0;
  std::vector<FitFix> fixes_;
};

Result<Fit> fitNetwork(const FitOptions& options) {
  CARINA_TRY(Attempt attempt, compileFor(options));
  Fit& result = attempt.fit;
  findPeak(attempt.build, result);
  if (result.fits()) return std::move(attempt.fit);
  Fixer fixer(options, attempt);
  attempt.build = pipeline::Build();
  result.program = {};
  result.fixes = fixer.run();
  return std::move(attempt.fit);
}

Result<Fit> fitProgram(const FitOptions& options, ByteSpan file) {
  Fit result;
  result.board = options.board;
  result.file = options.build.model.filename().string();
  auto measured = measureProgram(file, "");
  if (!measured) return std::move(measured).error().inFile(options.build.model.string());
  Plan plan = std::move(*measured);
  if (options.stackBytes > 0) plan.stackBytes = options.stackBytes;
  const std::string mode = plan.machine ? plan.machine->memory.name : "";
  const std::string target = plan.machine ? plan.target : "";
  auto machine = machineOf(*options.board, target, mode);
  if (!machine) return std::move(machine).error().inFile(options.build.model.string());
  result.machine = std::move(*machine);
  int64_t cycles = 0;
  if (plan.machine) {
    pipeline::Options profiled;
    profiled.model = options.build.model;
    CARINA_TRY(const pipeline::Profile profile, pipeline::profileProgram(options.build.model, profiled));
    result.measured = pipeline::measuredOf(profile);
    for (const pipeline::ProfiledPart& part : profile.parts) {
      result.constantBytes += part.constantBytes;
      result.commandBytes += part.commandBytes;
      cycles += part.cycles;
    }
    if (plan.machine->system.name != result.machine.system.name) {
      result.warnings.push_back({fmt::format("was compiled for the memories of {}, not for those of {}",
                                             plan.machine->system.name, options.board->name),
                                 "give the network instead: carina fit then compiles it for the board",
                                 result.file, ""});
    }
  }
  const npu::Machine* timed = plan.machine ? &*plan.machine : nullptr;
  CARINA_TRY(result.inference, pipeline::inferenceOf(file, "", cycles, timed, coreName(options)));
  result.measured.subject = result.file;
  result.measured.flash = static_cast<int64_t>(file.size());
  pipeline::recordPlacement(file, result.measured);
  takeTime(result);
  place(plan, result.machine, result);
  return result;
}

}  // namespace

int64_t MemoryUse::used() const {
  return std::accumulate(blocks.begin(), blocks.end(), int64_t{0},
                         [](int64_t sum, const FitBlock& block) { return sum + block.bytes; });
}

int64_t Fit::over() const {
  return std::accumulate(memories.begin(), memories.end(), int64_t{0},
                         [](int64_t sum, const MemoryUse& use) { return sum + use.over(); });
}

const MemoryUse* Fit::memoryOf(std::string_view what) const {
  for (const MemoryUse& use : memories) {
    for (const FitBlock& block : use.blocks) {
      if (block.what == what) return &use;
    }
  }
  return nullptr;
}

Result<Fit> fit(const FitOptions& options) {
  CARINA_CHECK(options.board != nullptr, "a board is chosen");
  CARINA_TRY(const auto file, MappedFile::open(options.build.model));
  const std::string name = options.build.model.string();
  if (pipeline::isNetwork(file->bytes(), options.build.model)) return fitNetwork(options);
  if (pipeline::fileKind(file->bytes(), options.build.model) == pipeline::FileKind::Program)
    return fitProgram(options, file->bytes());
  return fail(Code::WrongKind, "a {} is neither a network nor a program",
              pipeline::fileKindName(pipeline::fileKind(file->bytes(), options.build.model)))
      .inFile(name)
      .withRemedy("give a .pt2, .tflite or .tosa network, or a .pte program");
}

}  // namespace carina::firmware
