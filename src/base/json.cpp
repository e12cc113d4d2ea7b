// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace carina {
namespace {

using nlohmann::json;

/// Thrown in the parser's callback.
struct Unwanted {
  std::string what;
};

class StructureCheck {
 public:
  explicit StructureCheck(const JsonRules& rules) : rules_(rules) {}
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (depth > rules_.depth) throw Unwanted{"is nested too deeply"};
    if (!rules_.uniqueKeys) return true;
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second)
      throw Unwanted{fmt::format("contains '{}' twice in one object", parsed.get<std::string>())};
    return true;
  }

 private:
  JsonRules rules_;
  std::vector<std::set<std::string>> keys_;
};

/// "[json.exception.parse_error.101] parse error at line 3, column 5: ..." without the library's own prefix.
std::string withoutPrefix(const std::string& what) {
  const size_t end = what.find("] ");
  return end == std::string::npos ? what : what.substr(end + 2);
}

}  // namespace

Result<json> parseJson(std::string_view text, Code code, const JsonRules& rules) {
  try {
    StructureCheck check(rules);
    return json::parse(text.begin(), text.end(), std::ref(check), true, rules.comments);
  } catch (const json::exception& error) {
    return fail(code, "is not valid JSON: {}", withoutPrefix(error.what()));
  } catch (const Unwanted& unwanted) {
    return fail(code, "{}", unwanted.what);
  }
}

}  // namespace carina
