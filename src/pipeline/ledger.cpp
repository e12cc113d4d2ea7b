// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ledger.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "pipeline/command_streams.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/memory_needs.hpp"
#include "pipeline/timed_profile.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = size_t{256} << 20;
constexpr std::string_view kProfileSchema = "carina.profile/1", kReportSchema = "carina.report/1";
constexpr const char* kWhatIsRead =
    "give a program (.pte, compiled .tflite, blob), the JSON of 'carina profile --json', or report.json of "
    "'carina compile --report' or its folder";

/// An absent or null value yields nullopt; a value of another type is an error.
template <typename T>
Status read(const json& object, const char* key, std::optional<T>& into) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return {};
  bool good = false;
  if constexpr (std::is_same_v<T, bool>) {
    good = it->is_boolean();
  } else if constexpr (std::is_same_v<T, std::string>) {
    good = it->is_string();
  } else if constexpr (std::is_same_v<T, double>) {
    good = it->is_number();
  } else {
    good =
        it->is_number_integer() && (!it->is_number_unsigned() || it->template get<uint64_t>() <= INT64_MAX);
  }
  if (!good) return fail(Code::Damaged, "is {}, which is of the wrong type", it->type_name()).at(key);
  into = it->template get<T>();
  return {};
}

Status read(const json& object, const char* key, std::string& into) {
  std::optional<std::string> text;
  CARINA_RETURN_IF_ERROR(read(object, key, text));
  into = text.value_or("");
  return {};
}

Result<const json*> arrayOf(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) return fail(Code::Damaged, "the array is missing").at(key);
  const bool objects =
      std::all_of(it->begin(), it->end(), [](const json& entry) { return entry.is_object(); });
  if (!objects) return fail(Code::Damaged, "holds elements that are not objects").at(key);
  return &*it;
}

/// The sum over both ports of "read_bytes" and "written_bytes".
Status readTraffic(const json& object, std::optional<int64_t>& into) {
  for (const char* key : {"read_bytes", "written_bytes"}) {
    const auto it = object.find(key);
    if (it == object.end()) continue;
    if (!it->is_array()) return fail(Code::Damaged, "is not an array").at(key);
    for (const json& port : *it) {
      if (!port.is_number_integer() || port.get<int64_t>() < 0 || port.get<int64_t>() > INT64_MAX / 8)
        return fail(Code::Damaged, "holds elements that are not byte counts").at(key);
      if (into.value_or(0) > INT64_MAX / 2) return fail(Code::Excessive, "is too large").at(key);
      into = into.value_or(0) + port.get<int64_t>();
    }
  }
  return {};
}

Status readLayers(const json& part, size_t index, std::vector<LedgerLayer>& layers) {
  CARINA_TRY(const json* list, arrayOf(part, "layers"));
  for (const json& entry : *list) {
    LedgerLayer layer;
    layer.part = index;
    CARINA_RETURN_IF_ERROR(read(entry, "name", layer.name));
    // Operations of a finished program are numbered.
    if (layer.name.starts_with('#')) layer.name.clear();
    CARINA_RETURN_IF_ERROR(read(entry, "module", layer.modulePath));
    CARINA_RETURN_IF_ERROR(read(entry, "source", layer.source));
    CARINA_RETURN_IF_ERROR(read(entry, "kind", layer.kind));
    CARINA_RETURN_IF_ERROR(read(entry, "what", layer.what));
    CARINA_RETURN_IF_ERROR(read(entry, "cycles", layer.cycles));
    CARINA_RETURN_IF_ERROR(read(entry, "sqnr_db", layer.sqnr));
    CARINA_RETURN_IF_ERROR(readTraffic(entry, layer.bytes));
    layers.push_back(std::move(layer));
  }
  return {};
}

/// Operators refused by the NPU, in a report.
Status readRefusals(const json& root, std::vector<LedgerLayer>& layers) {
  if (!root.contains("cpu")) return {};
  CARINA_TRY(const json* list, arrayOf(root, "cpu"));
  for (const json& entry : *list) {
    LedgerLayer layer;
    layer.onNpu = false;
    CARINA_RETURN_IF_ERROR(read(entry, "node", layer.name));
    CARINA_RETURN_IF_ERROR(read(entry, "module", layer.modulePath));
    CARINA_RETURN_IF_ERROR(read(entry, "op", layer.kind));
    layers.push_back(std::move(layer));
  }
  return {};
}

Status readBytes(const json& object, Ledger& ledger) {
  const auto bytes = object.find("bytes");
  if (bytes == object.end()) return {};
  if (!bytes->is_object()) return fail(Code::Damaged, "is not an object").at("bytes");
  std::optional<int64_t> arena, cache, constants, commands;
  CARINA_RETURN_IF_ERROR(read(*bytes, "arena", arena));
  CARINA_RETURN_IF_ERROR(read(*bytes, "cache", cache));
  CARINA_RETURN_IF_ERROR(read(*bytes, "constants", constants));
  CARINA_RETURN_IF_ERROR(read(*bytes, "commands", commands));
  // Parts share an arena one after the other; the data that they read adds up.
  const auto most = [](std::optional<int64_t>& sum, const std::optional<int64_t>& value) {
    if (value) sum = std::max(sum.value_or(0), *value);
  };
  const auto add = [](std::optional<int64_t>& sum, const std::optional<int64_t>& value) {
    if (value) sum = sum.value_or(0) + std::clamp<int64_t>(*value, 0, INT64_MAX / 4);
  };
  most(ledger.arenaBytes, arena);
  most(ledger.cacheBytes, cache);
  add(ledger.constantBytes, constants);
  add(ledger.commandBytes, commands);
  return {};
}

Status fill(const json& root, Ledger& ledger) {
  std::string schema;
  CARINA_RETURN_IF_ERROR(read(root, "schema", schema));
  if (schema != kProfileSchema && schema != kReportSchema) {
    return fail(Code::Damaged, "is '{}', but only {} and {} can be compared", schema, kProfileSchema,
                kReportSchema)
        .at("schema")
        .withRemedy(kWhatIsRead);
  }
  const bool isReport = schema == kReportSchema;
  CARINA_RETURN_IF_ERROR(read(root, "target", ledger.target));
  CARINA_RETURN_IF_ERROR(read(root, "system_config", ledger.systemConfig));
  CARINA_RETURN_IF_ERROR(read(root, "memory_mode", ledger.memoryMode));
  std::optional<double> clock;
  CARINA_RETURN_IF_ERROR(read(root, "clock_hz", clock));
  ledger.clockHz = clock.value_or(0);
  CARINA_RETURN_IF_ERROR(read(root, "wholly_on_npu", ledger.wholly));
  CARINA_RETURN_IF_ERROR(read(root, "cycles", ledger.cycles));
  CARINA_RETURN_IF_ERROR(read(root, "macs", ledger.macs));
  CARINA_RETURN_IF_ERROR(read(root, "program_bytes", ledger.fileBytes));
  CARINA_RETURN_IF_ERROR(read(root, "output_sqnr_db", ledger.sqnr));
  CARINA_RETURN_IF_ERROR(readBytes(root, ledger));
  if (const auto inference = root.find("inference"); inference != root.end()) {
    if (!inference->is_object()) return fail(Code::Damaged, "is not an object").at("inference");
    CARINA_RETURN_IF_ERROR(read(*inference, "milliseconds", ledger.inferenceMs));
  }
  CARINA_TRY(const json* parts, arrayOf(root, "parts"));
  for (size_t i = 0; i < parts->size(); ++i) {
    const json& part = (*parts)[i];
    CARINA_RETURN_IF_ERROR(readLayers(part, i, ledger.layers));
    if (isReport) continue;
    std::optional<int64_t> cycles, macs;
    CARINA_RETURN_IF_ERROR(read(part, "cycles", cycles));
    CARINA_RETURN_IF_ERROR(read(part, "macs", macs));
    for (auto& [sum, value] : {std::pair(&ledger.cycles, cycles), std::pair(&ledger.macs, macs)}) {
      if (value) *sum = sum->value_or(0) + std::clamp<int64_t>(*value, 0, INT64_MAX / 4);
    }
    CARINA_RETURN_IF_ERROR(readBytes(part, ledger));
  }
  return readRefusals(root, ledger.layers);
}

Ledger ledgerOf(const Profile& profile) {
  Ledger ledger;
  ledger.target = profile.machine.target->name;
  ledger.systemConfig = profile.machine.system.name;
  ledger.memoryMode = profile.machine.memory.name;
  ledger.clockHz = profile.machine.system.clockHz;
  int64_t cycles = 0, macs = 0, arena = 0, cache = 0, constants = 0, commands = 0;
  for (size_t i = 0; i < profile.parts.size(); ++i) {
    const ProfiledPart& part = profile.parts[i];
    cycles += part.cycles;
    macs += part.macs;
    arena = std::max(arena, part.arenaBytes);
    cache = std::max(cache, part.cacheBytes);
    constants += part.constantBytes;
    commands += part.commandBytes;
    for (const ProfiledOperation& operation : part.operations) {
      LedgerLayer layer;
      layer.part = i;
      layer.kind = operation.kind;
      layer.what = operation.description;
      layer.cycles = operation.added;
      int64_t bytes = 0;
      for (const npu::PortTraffic& port : operation.timing.cost.traffic)
        bytes += port.readBytes + port.writeBytes;
      layer.bytes = bytes;
      ledger.layers.push_back(std::move(layer));
    }
  }
  ledger.cycles = cycles;
  ledger.macs = macs;
  ledger.arenaBytes = arena;
  ledger.cacheBytes = cache;
  ledger.constantBytes = constants;
  ledger.commandBytes = commands;
  return ledger;
}

/// Lists the kernel calls of a program as layers on the CPU.
Status addKernels(ByteSpan bytes, Ledger& ledger) {
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes));
  bool wholly = true;
  for (const pte::Method& method : program.methods) {
    for (const pte::Chain& chain : method.chains) {
      for (const pte::Instruction& instruction : chain.instructions) {
        const auto* call = std::get_if<pte::KernelCall>(&instruction);
        if (call == nullptr) continue;
        LedgerLayer layer;
        layer.onNpu = false;
        layer.kind = method.operators[static_cast<size_t>(call->op)].str();
        wholly = wholly && layer.kind.starts_with("quantized_decomposed::");
        ledger.layers.push_back(std::move(layer));
      }
    }
  }
  ledger.wholly = wholly;
  return {};
}

Result<Ledger> programLedger(const std::filesystem::path& file, const MappedFile& mapped,
                             const Options& options) {
  Ledger ledger;
  CARINA_TRY(const std::vector<CommandStream> streams, commandStreams(file, options.target));
  if (!streams.empty()) {
    Options profiled = options;
    profiled.model = file;
    CARINA_TRY(const TimedProfile timed, timedProfile(profiled, ""));
    ledger = ledgerOf(timed.profile);
    ledger.inferenceMs = timed.profile.inferenceMs;
  }
  ledger.fileBytes = static_cast<int64_t>(mapped.bytes().size());
  if (fileKind(mapped.bytes(), file) == FileKind::Program) {
    if (auto status = addKernels(mapped.bytes(), ledger); !status.ok())
      return std::move(status).error().inFile(file.string()).withRemedy(kDamagedRemedy);
    if (streams.empty()) ledger.wholly = false;
  }
  return ledger;
}

/// Pairs layers with equal keys, the n-th with the n-th. Empty keys match nothing.
class Matcher {
 public:
  using Key = std::function<std::string(const LedgerLayer&)>;
  Matcher(const std::vector<LedgerLayer>& a, const std::vector<LedgerLayer>& b)
      : a_(a), b_(b), ofB_(b.size(), kNone), usedA_(a.size(), false) {}

  void match(const Key& key) {
    std::map<std::string, std::vector<size_t>> waiting;
    for (size_t i = 0; i < a_.size(); ++i) {
      const std::string text = usedA_[i] ? "" : key(a_[i]);
      if (!text.empty()) waiting[text].push_back(i);
    }
    for (auto& [text, list] : waiting) std::reverse(list.begin(), list.end());
    for (size_t i = 0; i < b_.size(); ++i) {
      if (ofB_[i] != kNone) continue;
      const std::string text = key(b_[i]);
      const auto it = text.empty() ? waiting.end() : waiting.find(text);
      if (it == waiting.end() || it->second.empty()) continue;
      ofB_[i] = it->second.back();
      it->second.pop_back();
      usedA_[ofB_[i]] = true;
    }
  }

  /// In the order of b; layers only in a follow the layer that precedes them in a.
  std::vector<LedgerDiff::Pair> pairs() const {
    std::vector<size_t> placeOfA(a_.size(), kNone);
    for (size_t i = 0; i < b_.size(); ++i) {
      if (ofB_[i] != kNone) placeOfA[ofB_[i]] = i;
    }
    std::vector<std::vector<size_t>> behind(b_.size() + 1);  // by place in b + 1; 0: at the start
    size_t place = 0;
    for (size_t i = 0; i < a_.size(); ++i) {
      if (placeOfA[i] == kNone) {
        behind[place].push_back(i);
      } else {
        place = placeOfA[i] + 1;
      }
    }
    std::vector<LedgerDiff::Pair> result;
    for (size_t i = 0; i <= b_.size(); ++i) {
      if (i > 0) result.push_back({ofB_[i - 1] == kNone ? nullptr : &a_[ofB_[i - 1]], &b_[i - 1]});
      for (const size_t lost : behind[i]) result.push_back({&a_[lost], nullptr});
    }
    return result;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  const std::vector<LedgerLayer>&a_, &b_;
  std::vector<size_t> ofB_;  // index into a
  std::vector<bool> usedA_;
};

/// Joins the parts of a key, none of which may be empty.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    if (part.empty()) return "";
    text += std::string(part) + '\x1f';
  }
  return text;
}

}  // namespace

bool Ledger::named() const {
  return std::any_of(layers.begin(), layers.end(), [](const LedgerLayer& layer) { return layer.named(); });
}

bool LedgerDiff::Pair::changed() const {
  if (a == nullptr || b == nullptr) return true;
  const auto differ = [](const auto& x, const auto& y) { return x && y && *x != *y; };
  return a->onNpu != b->onNpu || a->kind != b->kind || differ(a->cycles, b->cycles) ||
         differ(a->bytes, b->bytes) || differ(a->sqnr, b->sqnr);
}

Result<Ledger> parseLedger(std::string_view text) {
  if (text.size() > kMostBytes)
    return fail(Code::Excessive, "has {} bytes, more than the {} of a report", text.size(), kMostBytes);
  Ledger ledger;
  auto parsed = parseJson(text);
  if (!parsed) return std::move(parsed).error().withRemedy(kWhatIsRead);
  const json& root = *parsed;
  if (!root.is_object())
    return fail(Code::Damaged, "is {}, not an object", root.type_name()).withRemedy(kWhatIsRead);
  CARINA_RETURN_IF_ERROR(fill(root, ledger));
  return ledger;
}

Result<Ledger> readLedger(const std::filesystem::path& given, const Options& options) {
  std::error_code ignored;
  const bool isFolder = std::filesystem::is_directory(given, ignored);
  const std::filesystem::path file = isFolder ? given / "report.json" : given;
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  const FileKind kind = fileKind(mapped->bytes(), file);
  auto ledger = [&]() -> Result<Ledger> {
    switch (kind) {
      case FileKind::Json:
        return parseLedger(asText(mapped->bytes()));
      case FileKind::Archive:
      case FileKind::Tosa:
        return fail(Code::WrongKind, "is a network, which has no layers to compare until it is compiled")
            .withRemedy(
                "compare what 'carina compile --report DIR' or 'carina profile --json FILE' writes for both");
      case FileKind::Arrays:
      case FileKind::Array:
      case FileKind::TensorData:
      case FileKind::EtDump:
      case FileKind::Firmware:
      case FileKind::EthosNNetwork:
        return fail(Code::WrongKind, "a {} cannot be compared", fileKindName(kind)).withRemedy(kWhatIsRead);
      default:
        return programLedger(file, *mapped, options);
    }
  }();
  if (!ledger) return std::move(ledger).error().inFile(file.string());
  ledger->file = given.string();
  return ledger;
}

Measured measuredOf(const Ledger& ledger, const std::filesystem::path& configFile) {
  Measured measured;
  measured.subject = ledger.file;
  measured.cycles = ledger.cycles;
  measured.inferenceMs = ledger.inferenceMs;
  measured.flash = ledger.fileBytes;
  measured.sqnr = ledger.sqnr;
  measured.wholly = ledger.wholly;
  const auto onCpu = std::find_if(ledger.layers.begin(), ledger.layers.end(), [](const LedgerLayer& layer) {
    return !layer.onNpu && !layer.kind.starts_with("quantized_decomposed::");
  });
  if (onCpu != ledger.layers.end())
    measured.onCpu = onCpu->kind + (onCpu->named() ? " (" + onCpu->name + ")" : "");
  if (!ledger.arenaBytes || ledger.target.empty()) return measured;
  const auto machine = npu::makeMachine(ledger.target, ledger.systemConfig, ledger.memoryMode, configFile);
  if (!machine) return measured;
  const auto inSram = [&](npu::Area area) { return machine->timing(area).kind == npu::MemoryKind::Sram; };
  SramNeeds needs;
  if (inSram(npu::Area::Arena)) needs.arena = *ledger.arenaBytes;
  if (inSram(npu::Area::Cache)) needs.cache = ledger.cacheBytes.value_or(0);
  if (inSram(npu::Area::Constants))
    needs.constants = ledger.constantBytes.value_or(0) + ledger.commandBytes.value_or(0);
  measured.sram = needs.total();
  measured.sramParts = needs.str();
  return measured;
}

LedgerDiff diffLedgers(Ledger a, Ledger b) {
  LedgerDiff diff;
  diff.a = std::move(a);
  diff.b = std::move(b);
  diff.byName = diff.a.named() && diff.b.named();
  Matcher matcher(diff.a.layers, diff.b.layers);
  using Layer = LedgerLayer;
  if (diff.byName) {
    matcher.match([](const Layer& l) { return joined({l.modulePath, l.source, l.name}); });
    // Layers without modules; lines may move, modules seldom do.
    matcher.match([](const Layer& l) { return l.modulePath.empty() ? joined({l.source, l.name}) : ""; });
    matcher.match([](const Layer& l) { return joined({l.modulePath, l.name}); });
    matcher.match([](const Layer& l) { return joined({l.modulePath, l.kind}); });
    matcher.match([](const Layer& l) { return joined({l.source, l.kind}); });
    matcher.match([](const Layer& l) { return joined({l.name}); });
  } else {
    const auto place = [](const Layer& l) { return std::string_view(l.onNpu ? "npu" : "cpu"); };
    matcher.match([&](const Layer& l) { return joined({place(l), l.kind, l.what}); });
    matcher.match([&](const Layer& l) { return joined({place(l), l.kind}); });
  }
  diff.layers = matcher.pairs();
  return diff;
}

}  // namespace carina::pipeline
