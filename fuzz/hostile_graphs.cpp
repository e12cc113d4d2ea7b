// SPDX-License-Identifier: Apache-2.0
#include "hostile_graphs.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "base/npy.hpp"
#include "ir/parser.hpp"
#include "pipeline/passes.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace {

using namespace carina;

class Graphs {
 public:
  explicit Graphs(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// `body` computes %out from %x, one element repeated to `shape`.
  void save(const std::string& name, const std::string& type, const std::vector<int64_t>& shape,
            const std::string& body) {
    const std::string ones = fmt::format("{}", fmt::join(std::vector<int>(shape.size(), 1), ","));
    const std::string text = fmt::format(
        "graph @main(%in: {}[{}]) -> (%out) {{\n  %n: shape[{}] = [{}]\n  %zero: {}[1] = [0]\n"
        "  %x = tosa.TILE(%in, %n) loc(\"x\")\n{}}}\n",
        type, ones, shape.size(), fmt::join(shape, ", "), type, body);
    write(name, text);
  }

  bool failed = false;

 private:
  void write(const std::string& name, const std::string& text) {
    const auto graph = ir::parse(text, pipeline::allOperators());
    const auto bytes = graph.ok() ? tosa_io::writeTosa(*graph) : Result<std::string>(graph.error());
    if (!bytes.ok()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), Error(bytes.error()).str().c_str());
      failed = true;
      return;
    }
    std::ofstream(folder_ / (name + ".tosa"), std::ios::binary) << *bytes;
    NamedTensors inputs;
    for (const ir::Value* input : graph->inputs())
      inputs.emplace_back(fmt::format("in{}", inputs.size()), Tensor::zeros(input->dtype(), input->shape()));
    std::ofstream(folder_ / (name + ".npz"), std::ios::binary) << formatNpz(inputs);
  }

  std::filesystem::path folder_;
};

/// Applies the operator `times` times, from %x to %out.
std::string chain(const std::string& op, int times, const std::string& attributes = "") {
  std::string text;
  for (int i = 0; i < times; ++i) {
    const std::string from = i == 0 ? "x" : fmt::format("v{}", i),
                      to = i + 1 == times ? "out" : fmt::format("v{}", i + 1);
    text += fmt::format("  %{} = {} {} loc(\"{}\")\n", to, fmt::format(fmt::runtime(op), "%" + from),
                        attributes, to);
  }
  return text;
}

std::string loop(const std::string& body) {
  return "  %out: i32[1,16,16], %y: i32[1,16,16] = tosa.WHILE_LOOP([%x, %x]) loc(\"loop\")\n"
         "    graph @again(%a: i32[1,16,16], %b: i32[1,16,16]) -> (%go) {\n"
         "      %true: bool[] = [1]\n      %go = tosa.IDENTITY(%true) loc(\"go\")\n    }\n"
         "    graph @body(%c: i32[1,16,16], %d: i32[1,16,16]) -> (%e, %f) {\n" +
         body + "    }\n";
}

}  // namespace

bool writeHostileGraphs(const std::filesystem::path& folder) {
  Graphs graphs(folder);
  for (const int side : {512, 1024, 2048, 4096}) {
    graphs.save(fmt::format("matmul_{}", side), "i8", {1, side, side},
                "  %out = tosa.MATMUL(%x, %x, %zero, %zero) loc(\"out\")\n");
  }
  graphs.save("matmul_float", "f32", {1, 2048, 2048},
              "  %out = tosa.MATMUL(%x, %x, %zero, %zero) loc(\"out\")\n");
  graphs.save("matmul_thin", "i8", {1, 4096, 1},
              "  %p: shape[3] = [1, 1, 4096]\n  %y = tosa.RESHAPE(%x, %p) loc(\"y\")\n"
              "  %out = tosa.MATMUL(%x, %y, %zero, %zero) loc(\"out\")\n");
  graphs.save("fourier", "f32", {1, 1024, 1024}, "  %out, %i = tosa.RFFT2D(%x) loc(\"out\")\n");
  for (const int kernel : {3, 15, 255}) {
    graphs.save(
        fmt::format("pool_{}", kernel), "i8", {1, 512, 512, 4},
        fmt::format(
            "  %out = tosa.MAX_POOL2D(%x) {{kernel = [{0}, {0}], stride = [1, 1], pad = [{1}, {1}, {1}, "
            "{1}]}} loc(\"out\")\n",
            kernel, kernel / 2));
  }
  for (const char* op : {"ABS", "IDENTITY", "CLZ", "BITWISE_NOT"})
    graphs.save(fmt::format("chain_{}", op), "i32", {1, 512, 512},
                chain(fmt::format("tosa.{}({{}})", op), 2000));
  for (const char* op : {"EXP", "TANH", "ERF", "FLOOR"})
    graphs.save(fmt::format("chain_{}", op), "f32", {1, 512, 512},
                chain(fmt::format("tosa.{}({{}})", op), 2000));
  for (const int side : {256, 512})
    graphs.save(fmt::format("fourier_{}", side), "f32", {1, side, side},
                "  %out, %i = tosa.RFFT2D(%x) loc(\"out\")\n");
  graphs.save("chain_POW", "f32", {1, 512, 512}, chain("tosa.POW({0}, {0})", 2000));
  graphs.save("chain_REDUCE", "i32", {1, 4096, 1024},
              "  %out = tosa.REDUCE_MAX(%x) {axis = 1} loc(\"out\")\n");
  graphs.save("chain_RESIZE", "i8", {1, 1000, 1000, 1},
              "  %s: shape[4] = [2, 1, 2, 1]\n  %o: shape[2] = [0, 0]\n  %b: shape[2] = [1, 1]\n"
              "  %out = tosa.RESIZE(%x, %s, %o, %b) {mode = NEAREST} loc(\"out\")\n");
  graphs.save("chain_ADD", "i32", {1, 512, 512}, chain("tosa.ADD({0}, {0})", 2000));
  graphs.save("chain_TRANSPOSE", "i8", {1, 1024, 1024},
              chain("tosa.TRANSPOSE({})", 2000, "{perms = [0, 2, 1]}"));
  graphs.save("chain_REVERSE", "i8", {1, 1024, 1024}, chain("tosa.REVERSE({})", 2000, "{axis = 2}"));
  graphs.save("reduce", "i32", {1, 4096, 4096}, "  %out = tosa.REDUCE_SUM(%x) {axis = 1} loc(\"out\")\n");
  graphs.save("memory", "i32", {1, 16384, 16384}, "  %out = tosa.ABS(%x) loc(\"out\")\n");
  graphs.save("memory_4096", "i32", {1, 4096, 4096}, chain("tosa.ABS({})", 3));
  graphs.save("endless", "i32", {1, 16, 16},
              loop("      %e = tosa.IDENTITY(%c) loc(\"e\")\n      %f = tosa.IDENTITY(%d) loc(\"f\")\n"));
  graphs.save("endless_additions", "i32", {1, 16, 16},
              loop("      %e = tosa.BITWISE_NOT(%c) loc(\"e\")\n      %f = tosa.ABS(%d) loc(\"f\")\n"));
  return !graphs.failed;
}
