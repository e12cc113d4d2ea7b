// SPDX-License-Identifier: Apache-2.0
#include "pipeline/graph_file.hpp"

#include "base/file.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/passes.hpp"
#include "pt2/exported_program.hpp"
#include "tflite/graph_builder.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::pipeline {

Result<ir::Graph> readGraph(const std::filesystem::path& file, const std::string& program) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  const FileKind kind = fileKind(mapped->bytes(), file);
  switch (kind) {
    case FileKind::Archive: {
      CARINA_TRY(pt2::ExportedProgram exported, pt2::readExportedProgram(file, {.model = program}));
      return std::move(exported.graph);
    }
    case FileKind::Tosa:
      return tosa_io::readTosa(file);
    case FileKind::Tflite:
      return tflite::readNetwork(file);
    case FileKind::Unknown:
      break;
    default:
      return fail(Code::WrongKind, "is a {}, not a graph", fileKindName(kind))
          .inFile(file.string())
          .withRemedy("graphs are read from text (.ir) and from networks: .pt2, .tosa, .tflite");
  }
  auto graph = ir::parse(asText(mapped->bytes()), allOperators());
  if (!graph)
    return std::move(graph)
        .error()
        .inFile(file.string())
        .withRemedy("see docs/ir.md for how graphs are written");
  return graph;
}

Result<Front> quantizeGraph(ir::Graph graph, const std::filesystem::path& file,
                            const std::filesystem::path& calibration, bool trusted) {
  if (Status status = checkDialect(graph, Dialect::Aten); !status.ok())
    return std::move(status).error().inFile(file.string()).at("--calibrate");
  Options options;
  options.model = file;
  options.calibration = calibration;
  options.trusted = trusted;
  std::vector<StageTime> times;
  return frontOf(options, std::move(graph), times);
}

}  // namespace carina::pipeline
