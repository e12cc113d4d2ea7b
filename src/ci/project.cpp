// SPDX-License-Identifier: Apache-2.0
#include "ci/project.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <toml.hpp>

#include "base/file.hpp"
#include "base/nearest.hpp"
#include "npu/targets/target_name.hpp"

namespace carina::ci {
namespace {

using Value = toml::value;

constexpr size_t kMostBytes = size_t{1} << 20;
/// Limit for brackets and for dots in one line, because the parser recurses for each.
constexpr int kMostDepth = 128;

std::string lineOf(const Value& value) {
  return fmt::format("line {}", value.location().line());
}

/// Whether brackets and keys are nested no deeper than the parser's stack allows. Counts characters in
/// strings as well.
bool isShallow(std::string_view text) {
  int brackets = 0, dots = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++brackets;
    if (c == ']' || c == '}') brackets = std::max(brackets - 1, 0);
    dots = c == '\n' ? 0 : dots + (c == '.');
    if (brackets > kMostDepth || dots > kMostDepth) return false;
  }
  return true;
}

/// One table of the file. Every key that was asked for is known, all others are errors.
class Table {
 public:
  static Result<Table> of(const Value& value, std::string_view what) {
    if (value.is_table()) return Table(value);
    return fail(Code::BadConfiguration, "{} is not a table", what).at(lineOf(value));
  }

  const Value* find(const std::string& key) {
    known_.insert(key);
    const auto& entries = value_->as_table();
    const auto it = entries.find(key);
    return it == entries.end() ? nullptr : &it->second;
  }

  Status read(const std::string& key, std::string& into) {
    const Value* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string())
      return fail(Code::BadConfiguration, "{} is not a string", key).at(lineOf(*value));
    into = value->as_string().str;
    return {};
  }

  Status read(const std::string& key, bool& into) {
    const Value* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_boolean())
      return fail(Code::BadConfiguration, "{} is neither true nor false", key).at(lineOf(*value));
    into = value->as_boolean();
    return {};
  }

  /// Must not be negative.
  Status read(const std::string& key, std::optional<int64_t>& into) {
    const Value* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_integer() || value->as_integer() < 0)
      return fail(Code::BadConfiguration, "{} is not a nonnegative integer", key).at(lineOf(*value));
    into = value->as_integer();
    return {};
  }

  Status read(const std::string& key, std::optional<double>& into) {
    const Value* value = find(key);
    if (value == nullptr) return {};
    if (value->is_integer()) {
      into = static_cast<double>(value->as_integer());
    } else if (value->is_floating() && std::isfinite(value->as_floating())) {
      into = value->as_floating();
    } else {
      return fail(Code::BadConfiguration, "{} is not a number", key).at(lineOf(*value));
    }
    return {};
  }

  Status read(const std::string& key, std::vector<std::string>& into) {
    const Value* value = find(key);
    if (value == nullptr) return {};
    const bool strings = value->is_array() && std::all_of(value->as_array().begin(), value->as_array().end(),
                                                          [](const Value& v) { return v.is_string(); });
    if (!strings)
      return fail(Code::BadConfiguration, "{} is not an array of strings", key).at(lineOf(*value));
    into.clear();
    for (const Value& entry : value->as_array()) into.push_back(entry.as_string().str);
    return {};
  }

  /// Rejects keys that were not asked for.
  Status checkKeys() const {
    for (const auto& [key, value] : value_->as_table()) {
      if (known_.contains(key)) continue;
      const std::string nearest = nearestWord(key, std::vector<std::string>(known_.begin(), known_.end()));
      Error error = fail(Code::BadConfiguration, "there is no key {} here", key).at(lineOf(value));
      if (nearest.empty()) return error;
      return std::move(error).withRemedy("did you mean " + nearest + "?");
    }
    return {};
  }

  const Value& value() const { return *value_; }

 private:
  explicit Table(const Value& value) : value_(&value) {}
  const Value* value_;
  std::set<std::string> known_;
};

/// `gates` holds the defaults for gates that the table does not set.
Status readGates(Table& parent, pipeline::Gates& gates) {
  const Value* value = parent.find("gates");
  if (value == nullptr) return {};
  CARINA_TRY(Table table, Table::of(*value, "gates"));
  CARINA_RETURN_IF_ERROR(table.read("max-cycles", gates.maxCycles));
  CARINA_RETURN_IF_ERROR(table.read("max-inference-ms", gates.maxInferenceMs));
  CARINA_RETURN_IF_ERROR(table.read("max-sram", gates.maxSram));
  CARINA_RETURN_IF_ERROR(table.read("max-flash", gates.maxFlash));
  CARINA_RETURN_IF_ERROR(table.read("min-sqnr", gates.minSqnr));
  CARINA_RETURN_IF_ERROR(table.read("min-top1", gates.minTop1));
  CARINA_RETURN_IF_ERROR(table.read("require-npu", gates.requireNpu));
  return table.checkKeys();
}

/// The keys of a network other than targets and gates.
Status readNetwork(Table& table, const std::filesystem::path& folder, Job& job) {
  const auto path = [&](const std::string& name) {
    return name.empty() ? std::filesystem::path() : (folder / name).lexically_normal();
  };
  std::string model, calibrate, rules, config, data, quantize;
  CARINA_RETURN_IF_ERROR(table.read("model", model));
  if (model.empty())
    return fail(Code::BadConfiguration, "the network has no model")
        .at(lineOf(table.value()))
        .withRemedy("add model = \"FILE\"");
  CARINA_RETURN_IF_ERROR(table.read("calibrate", calibrate));
  CARINA_RETURN_IF_ERROR(table.read("quantize-config", rules));
  CARINA_RETURN_IF_ERROR(table.read("config", config));
  CARINA_RETURN_IF_ERROR(table.read("data", data));
  CARINA_RETURN_IF_ERROR(table.read("quantize", quantize));
  job.build.model = path(model);
  job.build.calibration = path(calibrate);
  job.build.quantizeConfig = path(rules);
  job.build.configFile = path(config);
  job.evaluate.data = path(data);
  CARINA_RETURN_IF_ERROR(table.read("program", job.build.program));
  CARINA_RETURN_IF_ERROR(table.read("system-config", job.build.systemConfig));
  CARINA_RETURN_IF_ERROR(table.read("memory-mode", job.build.memoryMode));
  CARINA_RETURN_IF_ERROR(table.read("per-channel", job.build.perChannel));
  CARINA_RETURN_IF_ERROR(table.read("equalize", job.build.equalize));
  if (quantize == "int8") {
    job.build.quantization = pipeline::Quantization::Int8;
  } else if (quantize == "int16x8") {
    job.build.quantization = pipeline::Quantization::Int16x8;
  } else if (quantize == "none") {
    job.build.quantization = pipeline::Quantization::None;
  } else if (!quantize.empty()) {
    return fail(Code::BadConfiguration, "quantize is '{}', not int8, int16x8 or none", quantize)
        .at(lineOf(*table.find("quantize")));
  }
  std::optional<int64_t> samples;
  CARINA_RETURN_IF_ERROR(table.read("samples", samples));
  job.evaluate.most = static_cast<size_t>(samples.value_or(0));
  job.name = job.build.model.stem().string();
  return table.read("name", job.name);
}

/// Letters, digits, '.', '_' and '-' are kept; anything else becomes '-'.
std::string folderOf(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !result.empty());
    result += plain ? c : '-';
  }
  return result;
}

Status addNetwork(const Value& value, const pipeline::Gates& common, const std::filesystem::path& folder,
                  Project& project) {
  CARINA_TRY(Table table, Table::of(value, "a network"));
  Job job;
  job.gates = common;
  CARINA_RETURN_IF_ERROR(readNetwork(table, folder, job));
  CARINA_RETURN_IF_ERROR(readGates(table, job.gates));
  std::vector<std::string> targets;
  CARINA_RETURN_IF_ERROR(table.read("targets", targets));
  if (targets.empty())
    return fail(Code::BadConfiguration, "the network has no targets")
        .at(lineOf(value))
        .withRemedy("add targets = [\"ethos-u55-128\", ...]");
  const Value* perTarget = table.find("target");
  CARINA_RETURN_IF_ERROR(table.checkKeys());
  std::set<std::string> used;
  for (const std::string& target : targets) {
    Job one = job;
    one.build.target = npu::canonicalTargetName(target);
    if (perTarget != nullptr) {
      CARINA_TRY(Table all, Table::of(*perTarget, "target"));
      if (const Value* own = all.find(target)) {
        used.insert(target);
        CARINA_TRY(Table entry, Table::of(*own, target));
        CARINA_RETURN_IF_ERROR(entry.read("system-config", one.build.systemConfig));
        CARINA_RETURN_IF_ERROR(entry.read("memory-mode", one.build.memoryMode));
        CARINA_RETURN_IF_ERROR(readGates(entry, one.gates));
        CARINA_RETURN_IF_ERROR(entry.checkKeys());
      }
    }
    one.name = job.name + " " + one.build.target;
    one.folder = folderOf(job.name + "-" + one.build.target);
    const bool taken = std::any_of(project.jobs.begin(), project.jobs.end(),
                                   [&](const Job& other) { return other.folder == one.folder; });
    if (taken)
      return fail(Code::BadConfiguration, "{} occurs twice", one.name)
          .at(lineOf(value))
          .withRemedy("give the networks different names");
    project.jobs.push_back(std::move(one));
  }
  if (perTarget == nullptr) return {};
  for (const auto& [name, own] : perTarget->as_table()) {
    if (!used.contains(name))
      return fail(Code::BadConfiguration, "{} is not one of the network's targets", name).at(lineOf(own));
  }
  return {};
}

Status fill(const Value& root, const std::filesystem::path& folder, Project& project) {
  CARINA_TRY(Table table, Table::of(root, "the file"));
  pipeline::Gates common;
  CARINA_RETURN_IF_ERROR(readGates(table, common));
  const Value* networks = table.find("network");
  CARINA_RETURN_IF_ERROR(table.checkKeys());
  if (networks == nullptr || !networks->is_array())
    return fail(Code::BadConfiguration, "there is no network")
        .withRemedy("begin each network with a line [[network]]");
  for (const Value& network : networks->as_array())
    CARINA_RETURN_IF_ERROR(addNetwork(network, common, folder, project));
  if (project.jobs.empty())
    return fail(Code::BadConfiguration, "there is no network")
        .withRemedy("begin each network with a line [[network]]");
  return {};
}

/// The message of toml11, without the names of its functions and the lines that it cites.
std::string reasonOf(const toml::exception& error) {
  std::string text = error.what();
  text.resize(std::min(text.find('\n'), text.size()));
  const size_t colon = text.find(": ");
  return colon != std::string::npos && text.starts_with("[error] ") ? text.substr(colon + 2) : text;
}

}  // namespace

Result<Project> parseProject(std::string_view text, const std::filesystem::path& file) {
  if (text.size() > kMostBytes)
    return fail(Code::Excessive, "has {} bytes, a project file has at most {}", text.size(), kMostBytes)
        .inFile(file.string());
  if (!isShallow(text)) return fail(Code::BadConfiguration, "is nested too deeply").inFile(file.string());
  Project project;
  project.file = file;
  try {
    std::istringstream stream{std::string(text)};
    const Value root = toml::parse(stream, file.filename().string());
    if (auto status = fill(root, file.parent_path(), project); !status.ok())
      return std::move(status).error().inFile(file.string());
  } catch (const toml::exception& error) {
    return fail(Code::BadConfiguration, "is not valid TOML: {}", reasonOf(error))
        .at(fmt::format("line {}", error.location().line()))
        .inFile(file.string())
        .withRemedy("docs/commands/ci.md shows a project file");
  }
  return project;
}

Result<Project> readProject(const std::filesystem::path& file) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  return parseProject(asText(mapped->bytes()), file);
}

}  // namespace carina::ci
