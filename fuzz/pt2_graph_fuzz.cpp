// SPDX-License-Identifier: Apache-2.0
// Arbitrary text as the graph of an otherwise valid archive with some state to refer to. This gets past the
// zip level, where most mutations of whole archives fail.
#include <map>
#include <string>
#include <string_view>

#include "base/file.hpp"
#include "base/zip.hpp"
#include "pt2/exported_program.hpp"
#include "target.hpp"

namespace carina::pt2_graph_fuzz {

namespace {

std::string payload(const char* name, int type, const char* sizes, const char* strides) {
  return std::string("\"") + name +
         "\": {\"path_name\": \"weight_0\", \"is_param\": true, \"use_pickle\": false, \"tensor_meta\": "
         "{\"dtype\": " +
         std::to_string(type) + ", \"sizes\": [" + sizes +
         "], \"requires_grad\": false, \"device\": {\"type\": \"cpu\", \"index\": null}, \"strides\": [" +
         strides + "], \"storage_offset\": {\"as_int\": 0}, \"layout\": 7}}";
}

std::string config() {
  return "{\"config\": {" +
         payload("fc.weight", 7, "{\"as_int\": 3}, {\"as_int\": 4}", "{\"as_int\": 4}, {\"as_int\": 1}") +
         ", " + payload("fc.bias", 7, "{\"as_int\": 3}", "{\"as_int\": 1}") + ", " +
         payload("total", 7, "{\"as_int\": 3}", "{\"as_int\": 2}") + ", " + payload("calls", 5, "", "") +
         "}}";
}

/// A size for each symbol in the text, at most four.
std::map<std::string, int64_t> sizesFor(std::string_view text) {
  constexpr std::string_view kSymbol = "Symbol('";
  std::map<std::string, int64_t> sizes;
  for (size_t at = text.find(kSymbol); at != text.npos && sizes.size() < 4; at = text.find(kSymbol, at + 1)) {
    const std::string_view name = text.substr(at + kSymbol.size(), 4);
    sizes.emplace(name.substr(0, name.find('\'')), 8);
  }
  return sizes;
}

}  // namespace

CARINA_FUZZ_TARGET(pt2_graph) {
  static const std::string table = config();
  const std::vector<std::pair<std::string, std::string>> members{
      {"m/archive_format", "pt2"},
      {"m/models/model.json", std::string(reinterpret_cast<const char*>(data), size)},
      {"m/data/weights/model_weights_config.json", table},
      {"m/data/constants/model_constants_config.json", table},
      {"m/data/weights/weight_0", std::string(48, '\1')},
      {"m/data/constants/weight_0", std::string(48, '\0')}};
  const auto archive = std::make_shared<const std::string>(writeZip(members));
  pt2::ReadOptions options;
  options.state = pt2::StatePolicy::Expose;
  (void)pt2::readExportedProgram(asBytes(*archive), archive, options);
  options.sizes = sizesFor({reinterpret_cast<const char*>(data), size});
  if (!options.sizes.empty()) (void)pt2::readExportedProgram(asBytes(*archive), archive, options);
  return 0;
}

}  // namespace carina::pt2_graph_fuzz
