// SPDX-License-Identifier: Apache-2.0
#include "quantize/rules_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.hpp"
#include "base/file.hpp"
#include "base/json.hpp"

namespace carina::quantize {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = size_t{1} << 20, kMaxRules = 10'000;

/// Choices of a setting by name.
template <typename T, size_t N>
using Names = std::array<std::pair<std::string_view, T>, N>;

constexpr Names<Precision, 3> kPrecisions{
    {{"int8", Precision::Int8}, {"int16x8", Precision::Int16x8}, {"none", Precision::Float}}};
constexpr Names<Precision, 3> kBoundaryTypes{
    {{"float", Precision::Float}, {"int8", Precision::Int8}, {"int16", Precision::Int16x8}}};
constexpr Names<Scheme, 2> kSchemes{{{"affine", Scheme::Affine}, {"symmetric", Scheme::Symmetric}}};
constexpr Names<bool, 2> kWeights{{{"per-channel", true}, {"per-tensor", false}}};
constexpr Names<Rule::By, 4> kPatterns{{{"op", Rule::By::Operator},
                                        {"node", Rule::By::Node},
                                        {"module", Rule::By::Module},
                                        {"module_type", Rule::By::ModuleType}}};

template <typename T, size_t N>
std::string listed(const Names<T, N>& names) {
  std::string text;
  for (const auto& [name, value] : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string member(const std::string& place, std::string_view key) {
  return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
}

/// One object of the file; keys that were looked up are known, all others are errors.
class Entry {
 public:
  static Result<Entry> of(const json& value, std::string place) {
    if (value.is_object()) return Entry(value, std::move(place));
    return fail(Code::BadConfiguration, "is {}, not an object", value.type_name())
        .at(place.empty() ? "the file" : place);
  }

  const json* find(std::string_view key) {
    known_.insert(key);
    const auto it = value_->find(key);
    return it == value_->end() ? nullptr : &*it;
  }

  Result<std::optional<std::string>> text(std::string_view key) {
    const json* value = find(key);
    if (!value) return std::optional<std::string>();
    if (!value->is_string())
      return fail(Code::BadConfiguration, "is {}, not a string", value->type_name()).at(member(place_, key));
    return std::optional(value->get<std::string>());
  }

  template <typename T, size_t N>
  Status choice(std::string_view key, const Names<T, N>& names, std::optional<T>& result) {
    CARINA_TRY(const auto name, text(key));
    if (!name) return {};
    const auto it =
        std::find_if(names.begin(), names.end(), [&](const auto& entry) { return entry.first == *name; });
    if (it == names.end()) {
      return fail(Code::BadConfiguration, "there is no '{}'", *name)
          .at(member(place_, key))
          .withRemedy("choices: " + listed(names));
    }
    result = it->second;
    return {};
  }

  Status flag(std::string_view key, std::optional<bool>& result) {
    const json* value = find(key);
    if (!value) return {};
    if (!value->is_boolean())
      return fail(Code::BadConfiguration, "is {}, not true or false", value->type_name())
          .at(member(place_, key));
    result = value->get<bool>();
    return {};
  }

  Status integer(std::string_view key, int least, int most, std::optional<int>& result) {
    const json* value = find(key);
    if (!value) return {};
    if (!value->is_number_integer() || *value < least || *value > most)
      return fail(Code::BadConfiguration, "expected a whole number from {} to {}, got {}", least, most,
                  value->is_number() ? value->dump() : value->type_name())
          .at(member(place_, key));
    result = value->get<int>();
    return {};
  }

  Status observer(std::optional<ObserverSettings>& result) {
    CARINA_TRY(const auto name, text("observer"));
    if (!name) return {};
    auto settings = parseObserver(*name);
    if (!settings.ok()) return std::move(settings).error().at(member(place_, "observer"));
    result = *settings;
    return {};
  }

  /// Fails if there is a key that was not looked up.
  Status finish() const {
    for (const auto& [key, value] : value_->items()) {
      if (known_.count(key) != 0) continue;
      std::string keys;
      for (std::string_view name : known_) keys += (keys.empty() ? "" : ", ") + std::string(name);
      return fail(Code::BadConfiguration, "there is no setting '{}' here", key)
          .at(member(place_, key))
          .withRemedy("settings: " + keys);
    }
    return {};
  }

  const std::string& place() const { return place_; }

 private:
  Entry(const json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  const json* value_;
  std::string place_;
  std::set<std::string_view, std::less<>> known_;
};

Status readOverrides(Entry& entry, Overrides& overrides) {
  CARINA_RETURN_IF_ERROR(entry.choice("precision", kPrecisions, overrides.precision));
  CARINA_RETURN_IF_ERROR(entry.choice("weights", kWeights, overrides.perChannelWeights));
  CARINA_RETURN_IF_ERROR(entry.integer("weight_bits", kMinWeightBits, kMaxWeightBits, overrides.weightBits));
  CARINA_RETURN_IF_ERROR(entry.choice("activations", kSchemes, overrides.scheme));
  CARINA_RETURN_IF_ERROR(entry.observer(overrides.observer));
  if (overrides.precision == Precision::Int16x8 && overrides.scheme == Scheme::Affine) {
    return fail(Code::BadConfiguration, "int16 activations are symmetric")
        .at(member(entry.place(), "activations"))
        .withRemedy("drop the setting");
  }
  return {};
}

Result<Rule> readRule(const json& value, std::string place) {
  Rule rule;
  rule.place = place;
  CARINA_TRY(Entry entry, Entry::of(value, std::move(place)));
  int patterns = 0;
  for (const auto& [key, by] : kPatterns) {
    CARINA_TRY(const auto pattern, entry.text(key));
    if (!pattern) continue;
    if (pattern->empty())
      return fail(Code::BadConfiguration, "is empty")
          .at(member(rule.place, key))
          .withRemedy("use '*' to match all");
    rule.by = by;
    rule.pattern = *pattern;
    ++patterns;
  }
  if (patterns != 1) {
    return fail(Code::BadConfiguration, "names {} patterns, expected one", patterns)
        .at(rule.place)
        .withRemedy("give exactly one of: " + listed(kPatterns));
  }
  CARINA_RETURN_IF_ERROR(readOverrides(entry, rule.overrides));
  CARINA_RETURN_IF_ERROR(entry.finish());
  if (rule.overrides.empty()) {
    return fail(Code::BadConfiguration, "changes nothing")
        .at(rule.place)
        .withRemedy("give precision, weights, weight_bits, activations or observer");
  }
  return rule;
}

Status readBoundary(Entry& io, std::string_view side, std::optional<BoundarySettings>& result) {
  const json* value = io.find(side);
  if (!value) return {};
  CARINA_TRY(Entry entry, Entry::of(*value, member(io.place(), side)));
  BoundarySettings settings;
  CARINA_RETURN_IF_ERROR(entry.choice("type", kBoundaryTypes, settings.precision));
  CARINA_RETURN_IF_ERROR(entry.choice("activations", kSchemes, settings.scheme));
  CARINA_RETURN_IF_ERROR(entry.observer(settings.observer));
  CARINA_RETURN_IF_ERROR(entry.finish());
  if (settings.precision == Precision::Int16x8 && settings.scheme == Scheme::Affine) {
    return fail(Code::BadConfiguration, "int16 codes are symmetric")
        .at(member(entry.place(), "activations"))
        .withRemedy("drop the setting");
  }
  result = settings;
  return {};
}

Result<RulesFile> readFile(const json& root) {
  RulesFile file;
  CARINA_TRY(Entry entry, Entry::of(root, ""));
  if (const json* global = entry.find("global")) {
    CARINA_TRY(Entry settings, Entry::of(*global, "global"));
    CARINA_RETURN_IF_ERROR(readOverrides(settings, file.global));
    CARINA_RETURN_IF_ERROR(settings.finish());
  }
  if (const json* io = entry.find("io")) {
    CARINA_TRY(Entry sides, Entry::of(*io, "io"));
    CARINA_RETURN_IF_ERROR(readBoundary(sides, "inputs", file.inputs));
    CARINA_RETURN_IF_ERROR(readBoundary(sides, "outputs", file.outputs));
    CARINA_RETURN_IF_ERROR(sides.finish());
  }
  if (const json* rules = entry.find("rules")) {
    if (!rules->is_array())
      return fail(Code::BadConfiguration, "is {}, not an array", rules->type_name()).at("rules");
    if (rules->size() > kMaxRules)
      return fail(Code::BadConfiguration, "holds {} rules, at most {} are read", rules->size(), kMaxRules)
          .at("rules");
    for (size_t i = 0; i < rules->size(); ++i) {
      CARINA_TRY(Rule rule, readRule((*rules)[i], fmt::format("rules[{}]", i)));
      file.rules.push_back(std::move(rule));
    }
  }
  CARINA_RETURN_IF_ERROR(entry.flag("equalize", file.equalize));
  CARINA_RETURN_IF_ERROR(entry.flag("fit_weights", file.fitWeights));
  CARINA_RETURN_IF_ERROR(entry.flag("bias_correction", file.correctBiases));
  CARINA_RETURN_IF_ERROR(entry.finish());
  return file;
}

}  // namespace

Result<RulesFile> parseRules(std::string_view text) {
  if (text.size() > kMostBytes) return fail(Code::BadConfiguration, "is larger than {} bytes", kMostBytes);
  CARINA_TRY(const json root,
             parseJson(text, Code::BadConfiguration, {.depth = 16, .comments = true, .uniqueKeys = true}));
  return readFile(root);
}

Result<RulesFile> readRules(const std::filesystem::path& path) {
  CARINA_TRY(const auto file, MappedFile::open(path));
  const ByteSpan bytes = file->bytes();
  auto rules = parseRules({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!rules.ok()) return std::move(rules).error().inFile(path.string());
  for (Rule& rule : rules->rules) rule.place = fmt::format("{}: {}", path.string(), rule.place);
  return rules;
}

namespace {

using nlohmann::ordered_json;

template <typename T, size_t N>
std::string_view nameIn(const Names<T, N>& names, T value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  CARINA_UNREACHABLE("a setting without a name");
}

ordered_json jsonOf(const Overrides& overrides) {
  ordered_json result = ordered_json::object();
  if (overrides.precision) result["precision"] = nameIn(kPrecisions, *overrides.precision);
  if (overrides.perChannelWeights) result["weights"] = nameIn(kWeights, *overrides.perChannelWeights);
  if (overrides.weightBits) result["weight_bits"] = *overrides.weightBits;
  if (overrides.scheme) result["activations"] = nameIn(kSchemes, *overrides.scheme);
  if (overrides.observer) result["observer"] = observerText(*overrides.observer);
  return result;
}

ordered_json jsonOf(const BoundarySettings& side) {
  ordered_json result = ordered_json::object();
  if (side.precision) result["type"] = nameIn(kBoundaryTypes, *side.precision);
  if (side.scheme) result["activations"] = nameIn(kSchemes, *side.scheme);
  if (side.observer) result["observer"] = observerText(*side.observer);
  return result;
}

std::string ruleLine(const Rule& rule) {
  ordered_json result = ordered_json::object();
  result[std::string(nameIn(kPatterns, rule.by))] = rule.pattern;
  result.update(jsonOf(rule.overrides));
  return result.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string rulesText(const RulesFile& file, std::string_view comment) {
  std::vector<std::string> members;
  if (!file.global.empty()) members.push_back("\"global\": " + jsonOf(file.global).dump());
  ordered_json io = ordered_json::object();
  if (file.inputs) io["inputs"] = jsonOf(*file.inputs);
  if (file.outputs) io["outputs"] = jsonOf(*file.outputs);
  if (!io.empty()) members.push_back("\"io\": " + io.dump());
  if (!file.rules.empty()) {
    std::string rules;
    for (const Rule& rule : file.rules) rules += (rules.empty() ? "\n    " : ",\n    ") + ruleLine(rule);
    members.push_back("\"rules\": [" + rules + "\n  ]");
  }
  const auto flag = [&](const char* name, const std::optional<bool>& value) {
    if (value) members.push_back(fmt::format("\"{}\": {}", name, *value));
  };
  flag("equalize", file.equalize);
  flag("fit_weights", file.fitWeights);
  flag("bias_correction", file.correctBiases);
  std::string text;
  while (!comment.empty()) {
    const size_t end = std::min(comment.find('\n'), comment.size());
    text += fmt::format("// {}\n", comment.substr(0, end));
    comment.remove_prefix(std::min(end + 1, comment.size()));
  }
  text += "{";
  for (size_t i = 0; i < members.size(); ++i) text += (i == 0 ? "\n  " : ",\n  ") + members[i];
  return text + "\n}\n";
}

}  // namespace carina::quantize
