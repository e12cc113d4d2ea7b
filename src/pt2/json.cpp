// SPDX-License-Identifier: Apache-2.0
#include "pt2/json.hpp"

#include <limits>
#include <new>
#include <string_view>
#include <unordered_set>

namespace carina::pt2 {
namespace {

constexpr size_t kMaxDepth = 100;

/// Quotes the three tokens that Python writes and JSON does not allow.
std::string quoteNonFinite(std::string_view text) {
  static constexpr std::string_view kTokens[] = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  out.reserve(text.size() + 64);
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      out += c;
      if (c == '\\' && i + 1 < text.size()) out += text[++i];
      if (c == '"') inString = false;
      continue;
    }
    inString = c == '"';
    const bool candidate = c == 'I' || c == 'N' || c == '-';
    bool quoted = false;
    for (std::string_view token : kTokens) {
      if (candidate && text.substr(i, token.size()) == token) {
        out.append("\"").append(token).append("\"");
        i += token.size() - 1;
        quoted = true;
        break;
      }
    }
    if (!quoted) out += c;
  }
  return out;
}

bool mayHoldNonFinite(std::string_view text) {
  return text.find("Infinity") != std::string_view::npos || text.find("NaN") != std::string_view::npos;
}

/// Depth is bounded by the parser.
Status checkDuplicates(JsonValue value) {
  if (value.is_array()) {
    for (JsonValue item : JsonArray(value.get_array().value_unsafe()))
      CARINA_RETURN_IF_ERROR(checkDuplicates(item));
  } else if (value.is_object()) {
    const simdjson::dom::object object = value.get_object().value_unsafe();
    std::unordered_set<std::string_view> many;
    std::string_view few[8];
    size_t count = 0;
    for (const auto& [key, item] : object) {
      bool fresh = true;
      if (count < std::size(few)) {
        for (size_t i = 0; i < count; ++i) fresh = fresh && few[i] != key;
        few[count] = key;
      } else {
        if (many.empty()) many.insert(std::begin(few), std::end(few));
        fresh = many.insert(key).second;
      }
      ++count;
      if (!fresh) return fail(Code::Damaged, "the JSON text names the key '{}' twice in one object", key);
      CARINA_RETURN_IF_ERROR(checkDuplicates(item));
    }
  }
  return {};
}

/// Why a text is not JSON. (The library has messages as well, but in a table that a program which loads the
/// library on demand cannot link.)
std::string_view reason(simdjson::error_code code) {
  switch (code) {
    case simdjson::EMPTY:
      return "it is empty";
    case simdjson::STRING_ERROR:
      return "a string has an unknown escape sequence";
    case simdjson::UNCLOSED_STRING:
      return "a string is not terminated";
    case simdjson::UNESCAPED_CHARS:
      return "a string has a control character";
    case simdjson::UTF8_ERROR:
      return "it is not UTF-8";
    case simdjson::NUMBER_ERROR:
      return "a number is malformed";
    case simdjson::T_ATOM_ERROR:
    case simdjson::F_ATOM_ERROR:
    case simdjson::N_ATOM_ERROR:
      return "a value is a word other than true, false and null";
    default:
      return "brackets, commas or colons are missing or in the wrong place";
  }
}

Error wrongType(std::string_view what, std::string_view wanted) {
  return fail(Code::Damaged, "{} is not {}", what, wanted);
}

}  // namespace

Result<JsonText> JsonText::parse(std::string_view text) {
  JsonText result;
  result.parser_ = std::make_unique<simdjson::dom::parser>();
  // The parser keeps strings in buffers of its own, so the text is not needed afterwards.
  const simdjson::padded_string padded =
      mayHoldNonFinite(text) ? simdjson::padded_string(quoteNonFinite(text)) : simdjson::padded_string(text);
  const auto allocated = result.parser_->allocate(std::max<size_t>(padded.size(), 64), kMaxDepth);
  // The library allocates without exceptions.
  if (allocated == simdjson::MEMALLOC || padded.data() == nullptr) throw std::bad_alloc();
  if (allocated != simdjson::SUCCESS)
    return fail(Code::Excessive, "the JSON text of {} bytes is too large", text.size());
  const auto parsed = result.parser_->parse(padded).get(result.root_);
  if (parsed == simdjson::MEMALLOC) throw std::bad_alloc();
  if (parsed == simdjson::DEPTH_ERROR)
    return fail(Code::Excessive, "the JSON text is nested more than {} levels deep", kMaxDepth);
  if (parsed != simdjson::SUCCESS)
    return fail(Code::Damaged, "the JSON text is malformed: {}", reason(parsed));
  CARINA_RETURN_IF_ERROR(checkDuplicates(result.root_));
  return result;
}

Result<int64_t> jsonInt(JsonValue value, std::string_view what) {
  int64_t number = 0;
  if (value.get_int64().get(number) != simdjson::SUCCESS) return wrongType(what, "a 64-bit integer");
  return number;
}

Result<double> jsonReal(JsonValue value, std::string_view what) {
  double number = 0;
  if (value.get_double().get(number) == simdjson::SUCCESS) return number;
  std::string_view text;
  if (value.get_string().get(text) == simdjson::SUCCESS) {
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  return wrongType(what, "a number");
}

Result<bool> jsonBool(JsonValue value, std::string_view what) {
  bool flag = false;
  if (value.get_bool().get(flag) != simdjson::SUCCESS) return wrongType(what, "true or false");
  return flag;
}

Result<std::string_view> jsonString(JsonValue value, std::string_view what) {
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS) return wrongType(what, "a string");
  return text;
}

Result<JsonArray> jsonArray(JsonValue value, std::string_view what) {
  JsonArray array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return wrongType(what, "a list");
  return array;
}

Result<JsonObject> JsonObject::of(JsonValue value, std::string_view what) {
  simdjson::dom::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return wrongType(what, "an object");
  return JsonObject(object, what);
}

Result<JsonValue> JsonObject::get(std::string_view key) const {
  JsonValue value;
  if (object_.at_key(key).get(value) != simdjson::SUCCESS)
    return fail(Code::Damaged, "{} has no '{}'", what_, key);
  return value;
}

std::optional<JsonValue> JsonObject::find(std::string_view key) const {
  JsonValue value;
  if (object_.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return value;
}

Result<int64_t> JsonObject::getInt(std::string_view key) const {
  CARINA_TRY(const JsonValue value, get(key));
  return jsonInt(value, fmt::format("'{}' of {}", key, what_));
}

Result<bool> JsonObject::getBool(std::string_view key) const {
  CARINA_TRY(const JsonValue value, get(key));
  return jsonBool(value, fmt::format("'{}' of {}", key, what_));
}

Result<std::string> JsonObject::getName(std::string_view key) const {
  constexpr size_t kMaxName = 4096;
  CARINA_TRY(const JsonValue value, get(key));
  CARINA_TRY(const std::string_view text, jsonString(value, fmt::format("'{}' of {}", key, what_)));
  if (text.size() > kMaxName)
    return fail(Code::Excessive, "'{}' of {} is longer than {} bytes", key, what_, kMaxName);
  return std::string(text);
}

Result<JsonArray> JsonObject::getArray(std::string_view key) const {
  CARINA_TRY(const JsonValue value, get(key));
  return jsonArray(value, fmt::format("'{}' of {}", key, what_));
}

Result<JsonObject> JsonObject::getObject(std::string_view key) const {
  CARINA_TRY(const JsonValue value, get(key));
  return of(value, fmt::format("'{}' of {}", key, what_));
}

Result<JsonTagged> jsonTagged(JsonValue value, std::string_view what) {
  simdjson::dom::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS || object.size() != 1) {
    return fail(Code::Damaged, "{} is not an object with exactly one key", what);
  }
  const auto entry = *object.begin();
  return JsonTagged{entry.key, entry.value};
}

}  // namespace carina::pt2
