// SPDX-License-Identifier: Apache-2.0
// Stock system configurations and memory modes (ethosu-architecture 2.1, 2.2) and the vela.ini grammar for
// others.
#include <INIReader.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "base/file.hpp"
#include "npu/targets/recorded_memories.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {
namespace {

MemoryTiming sram(int ports, int burst, int latency, int outstanding) {
  return {MemoryKind::Sram, 1.0, ports, burst, latency, latency, outstanding, outstanding};
}
MemoryTiming flash(double scale, int readLatency) {
  return {MemoryKind::OffChipFlash, scale, 1, 128, readLatency, 0, 2, 0};
}
MemoryTiming dram(double scale, int ports, int maxReads, int maxWrites) {
  return {MemoryKind::Dram, scale, ports, 128, 500, 250, maxReads, maxWrites};
}

const std::vector<SystemConfig>& systemConfigs() {
  static const std::vector<SystemConfig> configs{
      {"Ethos_U55_Deep_Embedded", Family::U55, 200e6, {sram(1, 32, 32, 8), flash(0.0625, 64)}},
      {"Ethos_U55_High_End_Embedded", Family::U55, 500e6, {sram(1, 32, 32, 4), flash(0.125, 64)}},
      {"Ethos_U65_Embedded", Family::U65, 500e6, {sram(1, 32, 32, 8), flash(0.0625, 64)}},
      {"Ethos_U65_Mid_End", Family::U65, 500e6, {sram(1, 32, 32, 8), dram(0.46875, 1, 12, 6)}},
      {"Ethos_U65_High_End", Family::U65, 1e9, {sram(1, 32, 32, 16), dram(0.234375, 1, 24, 12)}},
      {"Ethos_U65_Client_Server", Family::U65, 1e9, {sram(1, 32, 32, 16), dram(0.75, 1, 24, 12)}},
      {"Ethos_U85_SYS_Flash_Low", Family::U85, 200e6, {sram(2, 64, 8, 8), flash(0.0625, 32)}},
      {"Ethos_U85_SYS_Flash_High", Family::U85, 500e6, {sram(2, 64, 32, 8), flash(0.0625, 64)}},
      {"Ethos_U85_SYS_DRAM_Low", Family::U85, 500e6, {sram(2, 64, 16, 8), dram(0.46875, 1, 24, 12)}},
      {"Ethos_U85_SYS_DRAM_Mid", Family::U85, 1e9, {sram(2, 64, 32, 8), dram(0.75, 1, 64, 32)}},
      {"Ethos_U85_SYS_DRAM_High", Family::U85, 1e9, {sram(4, 64, 32, 8), dram(0.75, 2, 64, 32)}},
  };
  return configs;
}

const std::vector<MemoryMode>& memoryModes() {
  static const std::vector<MemoryMode> modes{
      {"Sram_Only", 0, 0, 0, 0},
      {"Shared_Sram", 1, 0, 0, 0},
      {"Dedicated_Sram", 1, 1, 0, 0},
      {"Dedicated_Sram_256KB", 1, 1, 0, 256 * 1024},
      {"Dedicated_Sram_384KB", 1, 1, 0, 384 * 1024},
      {"Dedicated_Sram_512KB", 1, 1, 0, 512 * 1024},
  };
  return modes;
}

const std::string kSystemSection = "System_Config.", kModeSection = "Memory_Mode.";

/// A configuration file; keys of a section are looked up along its `inherit` chain.
class IniFile {
 public:
  static Result<IniFile> open(const std::filesystem::path& path) {
    CARINA_TRY(auto file, MappedFile::open(path));
    return parse(asText(file->bytes()), path.string());
  }

  /// `name` identifies the text in messages.
  static Result<IniFile> parse(std::string_view text, std::string name) {
    IniFile ini;
    ini.path_ = std::move(name);
    ini.text_ = text;
    ini.reader_ = std::make_unique<INIReader>(text.data(), text.size());
    if (ini.reader_->ParseError() != 0) {
      return fail(Code::BadConfiguration, "line {} is not 'key = value' or '[section]'",
                  ini.reader_->ParseError())
          .inFile(ini.path_)
          .withRemedy(
              "write sections [System_Config.NAME] and [Memory_Mode.NAME] with such lines, as in vela.ini");
    }
    return ini;
  }

  bool has(const std::string& section) const { return reader_->HasSection(section); }

  /// Names in the file's sections that begin with `kind`: "A, B", or "none".
  std::string described(std::string_view kind) const {
    std::vector<std::string_view> names;
    std::string_view text = text_;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      const size_t close = line.find(']');
      if (!line.starts_with('[') || close == std::string_view::npos) continue;
      const std::string_view section = line.substr(1, close - 1);
      if (section.starts_with(kind)) names.push_back(section.substr(kind.size()));
    }
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  }

  /// Value of a key, looked up along the `inherit` chain (at most 8 long; a longer one is a cycle).
  std::optional<std::string> get(std::string section, const std::string& key) const {
    for (int depth = 0; depth < 8 && has(section); ++depth) {
      if (reader_->HasValue(section, key)) return reader_->Get(section, key, "");
      section = reader_->Get(section, "inherit", "");
    }
    return std::nullopt;
  }

  Result<double> number(const std::string& section, const std::string& key, double byDefault,
                        double least) const {
    auto text = get(section, key);
    if (!text) return byDefault;
    char* end = nullptr;
    const double value = std::strtod(text->c_str(), &end);
    if (text->empty() || *end != '\0' || !std::isfinite(value)) {
      return fail(Code::BadConfiguration, "{} = {} is not a number", key, *text).inFile(path_).at(section);
    }
    if (value < least) {
      return fail(Code::BadConfiguration, "{} = {} is too small; expected at least {}", key, *text, least)
          .inFile(path_)
          .at(section);
    }
    return value;
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_, text_;
  std::unique_ptr<INIReader> reader_;
};

std::optional<MemoryKind> memoryKindFromName(std::string_view name) {
  for (MemoryKind kind :
       {MemoryKind::Sram, MemoryKind::Dram, MemoryKind::OnChipFlash, MemoryKind::OffChipFlash}) {
    if (memoryKindName(kind) == name) return kind;
  }
  return std::nullopt;
}

Result<int32_t> smallCount(const IniFile& ini, const std::string& section, const std::string& key,
                           double byDefault, double least) {
  CARINA_TRY(const double value, ini.number(section, key, byDefault, least));
  return static_cast<int32_t>(std::min(value, 1e6));
}

Result<MemoryTiming> readTiming(const IniFile& ini, const std::string& section, const std::string& portKey) {
  const std::string name = ini.get(section, portKey).value_or("Sram");
  auto kind = memoryKindFromName(name);
  if (!kind) {
    return fail(Code::BadConfiguration, "{} = {} is not a memory", portKey, name)
        .inFile(ini.path())
        .at(section)
        .withRemedy("choose one of: Sram, Dram, OnChipFlash, OffChipFlash");
  }
  MemoryTiming timing;
  timing.kind = *kind;
  CARINA_TRY(timing.clockScale, ini.number(section, name + "_clock_scale", 1.0, 0.0001));
  CARINA_TRY(timing.ports, smallCount(ini, section, name + "_ports_used", 1, 1));
  CARINA_TRY(timing.burst, smallCount(ini, section, name + "_burst_length", 64, 1));
  CARINA_TRY(timing.readLatency, smallCount(ini, section, name + "_read_latency", 1, 0));
  CARINA_TRY(timing.writeLatency, smallCount(ini, section, name + "_write_latency", 1, 0));
  CARINA_TRY(timing.maxReads, smallCount(ini, section, name + "_max_reads", 1, 1));
  CARINA_TRY(timing.maxWrites, smallCount(ini, section, name + "_max_writes", 1, 1));
  CARINA_TRY(timing.pulseOn, smallCount(ini, section, name + "_pulse_on", 0, 1));
  if (timing.pulseOn > 0) {
    CARINA_TRY(timing.pulseOff, smallCount(ini, section, name + "_pulse_off", 0, 0));
    CARINA_TRY(timing.firstPulse, smallCount(ini, section, name + "_first_pulse", timing.pulseOn, 0));
    timing.firstPulse = std::min(timing.firstPulse, timing.pulseOn);
  }
  return timing;
}

Result<SystemConfig> readSystemConfig(const IniFile& ini, const std::string& name, Family family) {
  const std::string section = kSystemSection + name;
  SystemConfig config;
  config.name = name;
  config.family = family;
  CARINA_TRY(config.clockHz, ini.number(section, "core_clock", 5e8, 1.0));
  CARINA_TRY(config.ports[0], readTiming(ini, section, "axi0_port"));
  CARINA_TRY(config.ports[1], readTiming(ini, section, "axi1_port"));
  return config;
}

Result<MemoryMode> readMemoryMode(const IniFile& ini, const std::string& name) {
  const std::string section = kModeSection + name;
  const auto port = [&](const char* key) -> Result<uint8_t> {
    const std::string value = ini.get(section, key).value_or("Axi0");
    if (value == "Axi0") return uint8_t{0};
    if (value == "Axi1") return uint8_t{1};
    return fail(Code::BadConfiguration, "{} = {} is not a port", key, value)
        .inFile(ini.path())
        .at(section)
        .withRemedy("choose one of: Axi0, Axi1");
  };
  MemoryMode mode;
  mode.name = name;
  CARINA_TRY(mode.constantsPort, port("const_mem_area"));
  CARINA_TRY(mode.arenaPort, port("arena_mem_area"));
  CARINA_TRY(mode.cachePort, port("cache_mem_area"));
  CARINA_TRY(const double bytes, ini.number(section, "arena_cache_size", 0, 0));
  mode.cacheBytes = static_cast<int64_t>(std::min(bytes, 1e12));
  if (!mode.spilling()) mode.cacheBytes = 0;
  return mode;
}

/// Rejects a given file that describes nothing requested; the mistake would otherwise go unnoticed.
Status checkUsed(const IniFile& ini, const std::string& system, const std::string& mode) {
  if (ini.has(kSystemSection + system) || ini.has(kModeSection + mode)) return {};
  return fail(Code::BadConfiguration,
              "describes neither the system configuration {} nor the memory mode {}: it would not be used",
              system, mode)
      .inFile(ini.path())
      .withRemedy(fmt::format(
          "select what it describes with --system-config ({}) or --memory-mode ({}), or leave out --config",
          ini.described(kSystemSection), ini.described(kModeSection)));
}

Status checkMemories(const Machine& machine) {
  const MemoryKind cache = machine.timing(Area::Cache).kind;
  if (cache != MemoryKind::Sram) {
    return fail(Code::BadConfiguration, "memory mode {} puts the cache in {}", machine.memory.name,
                memoryKindName(cache))
        .withRemedy(
            "the cache must be Sram; swap the ports of the memory mode or of the system configuration");
  }
  const MemoryKind arena = machine.timing(Area::Arena).kind;
  if (arena != MemoryKind::Sram && arena != MemoryKind::Dram) {
    return fail(Code::BadConfiguration, "memory mode {} puts the arena in {}, which cannot be written",
                machine.memory.name, memoryKindName(arena))
        .withRemedy("use a memory mode whose arena is Sram or Dram, or a system configuration with Dram");
  }
  return {};
}

}  // namespace

std::string_view memoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::Sram:
      return "Sram";
    case MemoryKind::Dram:
      return "Dram";
    case MemoryKind::OnChipFlash:
      return "OnChipFlash";
    case MemoryKind::OffChipFlash:
      return "OffChipFlash";
  }
  return "";
}

std::span<const SystemConfig> stockSystemConfigs() {
  return systemConfigs();
}
std::span<const MemoryMode> stockMemoryModes() {
  return memoryModes();
}

bool supportsMemoryMode(const Target& target, const MemoryMode& mode) {
  // The U55's second port is read-only, so its arena cannot be behind it.
  return target.architecture().bothPortsWrite || (mode.arenaPort == 0 && mode.cachePort == 0);
}

namespace {

/// Sources of configurations other than the stock ones, in search order.
using IniFiles = std::vector<IniFile>;

const IniFile* describing(const IniFiles& files, const std::string& section) {
  const auto it =
      std::find_if(files.begin(), files.end(), [&](const IniFile& ini) { return ini.has(section); });
  return it == files.end() ? nullptr : &*it;
}

/// The error for a name that neither a file nor the stock configurations define. `what`: "system
/// configuration" or "memory mode"; `given`: the file of --config.
Error unknownName(const Target& target, const char* what, const std::string& name, const std::string& section,
                  const IniFile* given, std::string_view choices) {
  if (given == nullptr) {
    return fail(Code::UnknownName, "{} has no {} '{}'", target.name, what, name)
        .withRemedy(fmt::format("choose one of: {}; or describe it in a file passed with --config", choices));
  }
  return fail(Code::UnknownName, "there is no section [{}{}], and {} has no {} of that name", section, name,
              target.name, what)
      .inFile(given->path())
      .withRemedy(fmt::format("choose one of: {}; or a section of the file ({})", choices,
                              given->described(section)));
}

Result<SystemConfig> findSystem(const Target& target, const std::string& name, const IniFiles& files,
                                const IniFile* given) {
  if (const IniFile* ini = describing(files, kSystemSection + name))
    return readSystemConfig(*ini, name, target.family);
  std::vector<std::string_view> names;
  for (const SystemConfig& config : systemConfigs()) {
    if (config.family != target.family) continue;
    if (config.name == name) return config;
    names.push_back(config.name);
  }
  return unknownName(target, "system configuration", name, kSystemSection, given,
                     fmt::format("{}", fmt::join(names, ", ")));
}

/// The error for a memory mode that exists but that the target cannot use.
Error refuseMode(const Target& target, const MemoryMode& mode, std::string_view choices) {
  std::string areas;
  if (mode.arenaPort != 0) areas = "the arena";
  if (mode.cachePort != 0) areas += areas.empty() ? "the cache" : " and the cache";
  return fail(Code::BadConfiguration, "memory mode '{}' puts {} on Axi1, which {} only reads", mode.name,
              areas, familyName(target.family))
      .withRemedy(
          fmt::format("keep arena_mem_area and cache_mem_area on Axi0; modes for this target: {}", choices));
}

Result<MemoryMode> findMode(const Target& target, const std::string& name, const IniFiles& files,
                            const IniFile* given) {
  std::optional<MemoryMode> found;
  std::vector<std::string_view> names;
  for (const MemoryMode& mode : memoryModes()) {
    if (mode.name == name) found = mode;
    if (supportsMemoryMode(target, mode)) names.push_back(mode.name);
  }
  if (const IniFile* ini = describing(files, kModeSection + name)) {
    CARINA_TRY(found, readMemoryMode(*ini, name));
  }
  const std::string choices = fmt::format("{}", fmt::join(names, ", "));
  if (!found) return unknownName(target, "memory mode", name, kModeSection, given, choices);
  if (!supportsMemoryMode(target, *found)) return refuseMode(target, *found, choices);
  return *found;
}

bool same(const MemoryTiming& a, const MemoryTiming& b) {
  const auto all = [](const MemoryTiming& t) {
    return std::tie(t.kind, t.clockScale, t.ports, t.burst, t.readLatency, t.writeLatency, t.maxReads,
                    t.maxWrites, t.pulseOn, t.pulseOff, t.firstPulse);
  };
  return all(a) == all(b);
}

bool isStock(const SystemConfig& system) {
  const auto& all = systemConfigs();
  return std::any_of(all.begin(), all.end(), [&](const SystemConfig& stock) {
    return stock.name == system.name && stock.family == system.family && stock.clockHz == system.clockHz &&
           same(stock.ports[0], system.ports[0]) && same(stock.ports[1], system.ports[1]);
  });
}

bool isStock(const MemoryMode& mode) {
  const auto all = [](const MemoryMode& m) {
    return std::tie(m.name, m.constantsPort, m.arenaPort, m.cachePort, m.cacheBytes);
  };
  return std::any_of(memoryModes().begin(), memoryModes().end(),
                     [&](const MemoryMode& stock) { return all(stock) == all(mode); });
}

std::string timingText(std::string_view portKey, const MemoryTiming& timing) {
  const std::string_view name = memoryKindName(timing.kind);
  std::string text = fmt::format(
      "{0}={1}\n{1}_clock_scale={2}\n{1}_ports_used={3}\n{1}_burst_length={4}\n{1}_read_latency={5}\n"
      "{1}_write_latency={6}\n{1}_max_reads={7}\n{1}_max_writes={8}\n",
      portKey, name, timing.clockScale, timing.ports, timing.burst, timing.readLatency, timing.writeLatency,
      timing.maxReads, timing.maxWrites);
  if (timing.pulseOn > 0) {
    text += fmt::format("{0}_pulse_on={1}\n{0}_pulse_off={2}\n{0}_first_pulse={3}\n", name, timing.pulseOn,
                        timing.pulseOff, timing.firstPulse);
  }
  return text;
}

}  // namespace

std::string describeMemories(const Machine& machine) {
  std::string text;
  const SystemConfig& system = machine.system;
  if (!isStock(system)) {
    text += fmt::format("[System_Config.{}]\ncore_clock={}\n", system.name, system.clockHz);
    text += timingText("axi0_port", system.ports[0]);
    // If both ports lead to the same memory, its keys appear once.
    text += same(system.ports[1], system.ports[0])
                ? fmt::format("axi1_port={}\n", memoryKindName(system.ports[1].kind))
                : timingText("axi1_port", system.ports[1]);
  }
  const MemoryMode& mode = machine.memory;
  if (!isStock(mode)) {
    text += fmt::format(
        "[Memory_Mode.{}]\nconst_mem_area=Axi{}\narena_mem_area=Axi{}\ncache_mem_area=Axi{}\narena_cache_"
        "size={}\n",
        mode.name, mode.constantsPort, mode.arenaPort, mode.cachePort, mode.cacheBytes);
  }
  return text;
}

Result<Machine> makeMachine(std::string_view targetName, std::string_view systemName,
                            std::string_view modeName, const std::filesystem::path& iniFile) {
  return makeMachine(targetName, systemName, modeName, iniFile, {});
}

Result<Machine> makeMachine(std::string_view targetName, std::string_view systemName,
                            std::string_view modeName, const std::filesystem::path& iniFile,
                            std::string_view recorded) {
  Machine machine;
  CARINA_TRY(machine.target, findTarget(targetName));
  const Target& target = *machine.target;
  const std::string system(systemName.empty() ? target.defaultSystemConfig : systemName);
  const std::string mode(modeName.empty() ? target.defaultMemoryMode : modeName);
  IniFiles files;
  if (!iniFile.empty()) {
    CARINA_TRY(IniFile file, IniFile::open(iniFile));
    files.push_back(std::move(file));
  }
  if (!recorded.empty()) {
    CARINA_TRY(IniFile file, IniFile::parse(recorded, "the memory system that the program records"));
    files.push_back(std::move(file));
  }
  const IniFile* given = iniFile.empty() ? nullptr : &files.front();
  CARINA_TRY(machine.system, findSystem(target, system, files, given));
  CARINA_TRY(machine.memory, findMode(target, mode, files, given));
  if (auto status = checkMemories(machine); !status.ok())
    return std::move(status).error().inFile(files.empty() ? std::string() : files.front().path());
  if (!iniFile.empty()) CARINA_RETURN_IF_ERROR(checkUsed(files.front(), system, mode));
  return machine;
}

}  // namespace carina::npu
