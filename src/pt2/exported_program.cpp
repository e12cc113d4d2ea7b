// SPDX-License-Identifier: Apache-2.0
#include "pt2/exported_program.hpp"

#include <unordered_map>

#include "aten/control_flow.hpp"
#include "base/damaged.hpp"
#include "base/file.hpp"
#include "ir/invalid_node.hpp"
#include "ir/verifier.hpp"
#include "pt2/archive.hpp"
#include "pt2/document.hpp"
#include "pt2/graph_builder.hpp"
#include "pt2/pickle.hpp"
#include "pt2/refusals.hpp"
#include "pt2/specialize.hpp"
#include "pt2/state_writes.hpp"
#include "pt2/unused_nodes.hpp"

namespace carina::pt2 {
namespace {

/// The newest minor schema version whose fields were all reviewed; later ones only add fields and tags.
constexpr int kNewestMinor = 20;

/// Finds the values of the state by name, since passes have replaced or removed some of them.
void findState(BuiltProgram& built) {
  std::unordered_map<std::string_view, ir::Value*> byName;
  for (ir::Value* input : built.graph.inputs()) byName.emplace(input->name, input);
  for (const auto& constant : built.graph.constants()) byName.emplace(constant->name, constant.get());
  for (size_t i = 0; i < built.state.size(); ++i) {
    const auto it = built.stateNames[i].empty() ? byName.end() : byName.find(built.stateNames[i]);
    built.state[i].value = it == byName.end() ? nullptr : it->second;
  }
}

/// Frees the text and its parsed form on return.
Result<ProgramDocument> readDocument(const Archive& archive, const std::string& model) {
  CARINA_TRY(const JsonText json, archive.graph(model));
  return readProgramDocument(json.root());
}

/// The inputs that torch.export was called with; empty if the archive does not have them in a form that fits.
std::vector<Tensor> readExamples(const Archive& archive, const std::string& model, const ir::Graph& graph,
                                 size_t count) {
  const ZipArchive::Member* member = archive.container() == Container::FlatZip
                                         ? archive.find("serialized_example_inputs.pt")
                                         : archive.find(fmt::format("data/sample_inputs/{}.pt", model));
  if (!member) return {};
  auto contents = archive.read(*member);
  if (!contents.ok()) return {};
  const auto stored = readPickledArguments(contents->bytes, contents->owner, archive.inflation());
  if (!stored.ok() || stored->size() != count) return {};
  Budget copies = Budget::ofFile(archive.fileBytes(), 1 << 20, 1);
  std::vector<Tensor> examples;
  for (size_t i = 0; i < stored->size(); ++i) {
    auto tensor = denseTensor((*stored)[i], copies);
    if (!tensor.ok() || tensor->shape() != graph.inputs()[i]->shape()) return {};
    examples.push_back(std::move(*tensor));
  }
  return examples;
}

/// The symbolic dimensions of each user input, by name.
std::map<std::string, std::vector<size_t>> symbolicDimensions(const ProgramDocument& document) {
  std::map<std::string, std::vector<size_t>> symbolic;
  for (const InputSpec& spec : document.inputs) {
    if (spec.kind != InputSpec::Kind::User || spec.argument.tag != Argument::Tag::Tensor) continue;
    const auto meta = document.graph.tensors.find(spec.argument.names[0]);
    if (meta == document.graph.tensors.end()) continue;
    for (size_t d = 0; d < meta->second.sizes.size(); ++d) {
      if (!meta->second.sizes[d].isConstant()) symbolic[spec.argument.names[0]].push_back(d);
    }
  }
  return symbolic;
}

}  // namespace

std::string_view containerText(Container container) {
  switch (container) {
    case Container::FlatZip:
      return "flat zip (torch 2.1 to 2.7)";
    case Container::PickledState:
      return "PT2 archive with pickled state (torch 2.8)";
    case Container::RawState:
      return "PT2 archive (torch 2.9 or later)";
  }
  CARINA_UNREACHABLE("unknown container");
}

Result<ExportedProgram> readExportedProgram(ByteSpan bytes, std::shared_ptr<const void> owner,
                                            const ReadOptions& options) {
  CARINA_TRY(const Archive archive, Archive::open(bytes, std::move(owner)));
  ExportedProgram program;
  program.container = archive.container();
  CARINA_TRY(program.model, archive.chooseModel(options.model));
  CARINA_TRY(ProgramDocument document, readDocument(archive, program.model));
  program.torchVersion = document.torchVersion;
  program.schemaMajor = document.schemaMajor;
  program.schemaMinor = document.schemaMinor;
  if (document.schemaMinor > kNewestMinor) {
    program.warnings.push_back(
        {fmt::format("has schema version {}.{}, newer than {}.{}", document.schemaMajor, document.schemaMinor,
                     document.schemaMajor, kNewestMinor),
         "Compare results with torch.", "", ""});
  }
  const auto symbolic = symbolicDimensions(document);
  if (!options.sizes.empty()) CARINA_RETURN_IF_ERROR(specialize(document, options.sizes, program.warnings));
  eraseUnusedNodes(document.graph);
  CARINA_RETURN_IF_ERROR(checkServable(document));
  CARINA_TRY(BuiltProgram built, buildGraph(document, archive, program.model));
  CARINA_RETURN_IF_ERROR(
      ir::rejectInvalidNodes(program.model, [&] { return resolveWrites(built, options, program); }));
  CARINA_RETURN_IF_ERROR(aten::forEachGraph(built.graph, [](ir::Graph& graph) -> Status {
    graph.eraseDeadNodes();
    return {};
  }));
  CARINA_RETURN_IF_ERROR(ir::verify(built.graph));
  findState(built);
  program.graph = std::move(built.graph);
  if (options.examples)
    program.examples = readExamples(archive, program.model, program.graph,
                                    program.graph.inputs().size() - program.exposedBuffers.size());
  program.inputs = std::move(built.inputs);
  for (ProgramInput& input : program.inputs) {
    if (const auto dimensions = symbolic.find(input.name); dimensions != symbolic.end())
      input.chosen = dimensions->second;
  }
  program.outputs = std::move(built.outputs);
  program.state = std::move(built.state);
  for (const NodeDocument& node : document.graph.nodes) {
    for (const ModuleClass& module : node.modules) program.moduleClasses.emplace(module.path, module.type);
  }
  return program;
}

Result<ExportedProgram> readExportedProgram(const std::filesystem::path& path, const ReadOptions& options) {
  CARINA_TRY(const auto file, MappedFile::open(path));
  auto program = readExportedProgram(file->bytes(), file, options);
  if (!program.ok()) {
    return std::move(program)
        .error()
        .inFile(file->path())
        .withRemedy(
            "Export the program again (torch.export.save), if possible with a recent version of torch.");
  }
  for (Diagnostic& warning : program->warnings) warning.file = file->path();
  return program;
}

Result<std::vector<ListedNode>> listNodes(const std::filesystem::path& path, const ReadOptions& options) {
  CARINA_TRY(const auto file, MappedFile::open(path));
  const auto read = [&]() -> Result<std::vector<ListedNode>> {
    CARINA_TRY(const Archive archive, Archive::open(file->bytes(), file));
    CARINA_TRY(const std::string model, archive.chooseModel(options.model));
    CARINA_TRY(ProgramDocument document, readDocument(archive, model));
    eraseUnusedNodes(document.graph);
    std::vector<ListedNode> nodes;
    for (const NodeDocument& node : document.graph.nodes) {
      const bool isOperator = node.target.starts_with("torch.ops.");
      nodes.push_back({isOperator ? std::string(operatorName(node.target)) : node.target, node.location});
    }
    return nodes;
  };
  auto nodes = read();
  if (!nodes.ok()) return std::move(nodes).error().inFile(file->path());
  return nodes;
}

Result<std::vector<SizeSymbol>> sizeSymbols(const std::filesystem::path& path, const ReadOptions& options) {
  CARINA_TRY(const auto file, MappedFile::open(path));
  const auto read = [&]() -> Result<std::vector<SizeSymbol>> {
    CARINA_TRY(const Archive archive, Archive::open(file->bytes(), file));
    CARINA_TRY(const std::string model, archive.chooseModel(options.model));
    CARINA_TRY(const ProgramDocument document, readDocument(archive, model));
    return sizeSymbolsOf(document);
  };
  auto symbols = read();
  if (!symbols.ok()) return std::move(symbols).error().inFile(file->path()).withRemedy(kDamagedRemedy);
  return symbols;
}

Result<std::vector<std::string>> modelNames(const std::filesystem::path& path) {
  CARINA_TRY(const auto file, MappedFile::open(path));
  auto archive = Archive::open(file->bytes(), file);
  if (!archive.ok()) return std::move(archive).error().inFile(file->path()).withRemedy(kDamagedRemedy);
  return archive->models();
}

}  // namespace carina::pt2
