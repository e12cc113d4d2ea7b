// SPDX-License-Identifier: Apache-2.0
// carina inspect: its text and its JSON agree.
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.hpp"
#include "cli.hpp"
#include "pte/bundle.hpp"
#include "pte/tensor_data.hpp"

namespace carina::test {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

class CliInspect : public Cli {
 protected:
  std::string compileDigits(const std::string& target, const std::string& output) const {
    return "compile " + model("digits8.pt2") + " --target " + target + calibrate("digits8") + " -o " +
           path(output);
  }
  ordered_json json(const std::string& arguments) {
    const Outcome outcome = run("inspect " + arguments + " --json -");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    auto parsed = ordered_json::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded());
    return parsed;
  }
};

/// Lines of a text that are commands, without their comments.
std::vector<std::string> commandsIn(const std::string& text) {
  std::vector<std::string> commands;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("NPU_")) continue;
    line.resize(std::min(line.find(';'), line.size()));
    while (line.ends_with(' ')) line.pop_back();
    commands.push_back(line);
  }
  return commands;
}

TEST_F(CliInspect, CommandsHaveTheFieldsOfTheText) {
  ASSERT_EQ(run(compileDigits("ethos-u85-256", "d.pte")).status, 0);
  const std::vector<std::string> text = commandsIn(run("inspect " + path("d.pte") + " --commands").out);
  const ordered_json streams = json(path("d.pte")).at("command_streams");
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].at("name"), "delegate 0 of forward");
  EXPECT_EQ(streams[0].at("target"), "ethos-u85-256");
  const ordered_json& commands = streams[0].at("commands");
  ASSERT_EQ(commands.size(), text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string line = commands[i].at("name").get<std::string>();
    const ordered_json fields =
        commands[i].contains("fields") ? commands[i]["fields"] : ordered_json::object();
    for (const auto& [name, value] : fields.items()) {
      if (value.is_string()) {
        line += fmt::format(" {}={}", name, value.get<std::string>());
      } else {
        const bool hex = text[i].find(name + "=0x") != std::string::npos;
        line += hex ? fmt::format(" {}={:#x}", name, value.get<int64_t>())
                    : fmt::format(" {}={}", name, value.get<int64_t>());
      }
    }
    EXPECT_EQ(line, text[i]);
  }
}

TEST_F(CliInspect, GraphsHaveTheNamesOfTheText) {
  const std::string text = run("inspect " + model("residual.pt2")).out;
  const ordered_json all = json(model("residual.pt2"));
  const ordered_json& graph = all.at("exported")[0].at("graph");
  size_t at = 0;
  for (const ordered_json& node : graph.at("nodes")) {
    const std::string line = fmt::format("{}: ", node.at("results")[0].at("name").get<std::string>());
    at = text.find(line, at);
    ASSERT_NE(at, std::string::npos) << line;
    const std::string rest = text.substr(at, text.find('\n', at) - at);
    EXPECT_THAT(rest, HasSubstr(" = " + node.at("op").get<std::string>() + "("));
    EXPECT_THAT(rest, HasSubstr(node.at("location").at("module").get<std::string>()));
  }
  size_t large = 0;
  for (const ordered_json& constant : graph.at("constants")) {
    if (!constant.contains("checksum")) continue;
    ++large;
    EXPECT_THAT(text, HasSubstr(" = #" + constant.at("checksum").get<std::string>()));
  }
  EXPECT_GT(large, 0u);
}

TEST_F(CliInspect, CasesAndNamedTensorsAreInTheJson) {
  ASSERT_EQ(run(compileDigits("cpu", "c.pte")).status, 0);
  pte::Bundle bundle;
  const std::string program = contentsOf(path("c.pte"));
  bundle.program.assign(asBytes(program).begin(), asBytes(program).end());
  bundle.suites.push_back(
      {"forward", {{{pte::fromTensor(Tensor::zeros(DType::Float32, {1, 1, 8, 8}))}, {int64_t{3}}}}});
  ASSERT_TRUE(writeFile(path("c.bpte"), *pte::writeBundle(bundle)).ok());
  const ordered_json bundled = json(path("c.bpte"));
  EXPECT_EQ(bundled.at("bundle").at("suites")[0].at("cases")[0].dump(),
            R"({"inputs":[{"type":"float32","shape":[1,1,8,8]}],"expected":[3]})");
  EXPECT_EQ(bundled.at("program").at("methods"), json(path("c.pte")).at("program").at("methods"));

  pte::TensorData data;
  data.entries.push_back({"w", pte::TensorLayout{pte::ScalarType::Int8, {2, 3}, {0, 1}}, pte::ByteVector(6)});
  data.entries.push_back({"blob", std::nullopt, pte::ByteVector(5)});
  ASSERT_TRUE(writeFile(path("d.ptd"), *pte::writeTensorData(data)).ok());
  EXPECT_EQ(json(path("d.ptd")).at("tensor_data").dump(),
            R"([{"key":"w","bytes":6,"type":"int8","shape":[2,3]},{"key":"blob","bytes":5}])");
}

TEST_F(CliInspect, CommandsAreTextOnly) {
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "d.pte")).status, 0);
  EXPECT_EQ(run("inspect " + path("d.pte") + " --commands --json -").status, 2);
  EXPECT_EQ(run("inspect " + path("d.pte") + " --json " + path("none/x.json")).status, 1);
  EXPECT_EQ(run("inspect " + path("d.pte") + " --json " + path("d.pte")).status, 1) << "its own input";
}

}  // namespace
}  // namespace carina::test
