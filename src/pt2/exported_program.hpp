// SPDX-License-Identifier: Apache-2.0
// Reads what torch.export.save writes (.pt2, torch 2.6 to 2.14, all three container generations) into a
// functional graph of the aten dialect with its weights and signature.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace carina::pt2 {

/// What to do with a program that keeps state: a buffer that one call writes and the next call (or an output)
/// reads.
enum class StatePolicy : uint8_t {
  Refuse,  // an error that names buffer and node
  Expose,  // the buffer becomes an extra graph input after the program's own, its new value an extra output
           // after the program's own
};

struct ReadOptions {
  std::string model;  // which program of an archive with several; empty: the only one, or "model"
  StatePolicy state = StatePolicy::Refuse;
  bool examples = false;  // fill in ExportedProgram::examples
  /// Buffers that other methods of the same program also read or write: under StatePolicy::Expose they are
  /// state, even if no result depends on what is written, or if this method only reads them.
  std::vector<std::string> sharedState = {};
  /// Values for symbols in the inputs' sizes (sizeSymbols()). Empty: a program with such symbols is rejected.
  std::map<std::string, int64_t> sizes = {};
};

enum class Container : uint8_t {
  FlatZip,       // torch 2.1 to 2.7: serialized_exported_program.json and pickled state
  PickledState,  // torch 2.8: PT2 archive with data/weights/NAME.pt
  RawState,      // torch 2.9 and later: PT2 archive with raw storages
};
std::string_view containerText(Container container);

/// One argument of the exported forward(), flattened, in order.
struct ProgramInput {
  std::string name;                 // as in the source graph: "input", "d_a"
  ir::Value* value = nullptr;       // a graph input; null for a Python constant that was fixed at export
  std::string constant;             // that constant as text: "3", "'hi'", "None"
  std::vector<size_t> chosen = {};  // dimensions whose sizes are ReadOptions::sizes, or computed from them
};

/// One result of forward(), flattened, in order. Results that are not tensors have no graph output.
struct ProgramOutput {
  std::string name;
  std::optional<size_t> graphOutput;  // index into graph.outputs()
  std::string constant;               // otherwise the constant as text: "3", "None"
};

enum class StateKind : uint8_t { Parameter, Buffer, Constant };

/// A parameter, buffer or lifted constant. Identical views of the same bytes share one value.
struct StateTensor {
  std::string name;  // "features.0.weight"
  StateKind kind = StateKind::Parameter;
  bool persistent = true;      // false: a buffer that is not part of the state dict
  ir::Value* value = nullptr;  // the graph's constant; null when no node reads it (it was not loaded)
};

/// A buffer that the program writes, under StatePolicy::Expose.
struct ExposedBuffer {
  std::string name;
  size_t graphInput = 0;
  size_t graphOutput = 0;
  Tensor initial;
};

struct ExportedProgram {
  /// aten dialect, functional, verified; node locations carry source names, module paths and source lines.
  /// Inputs are the tensor arguments in order, outputs the tensor results in order (then exposed buffers).
  ir::Graph graph;
  std::string model;
  std::string torchVersion;  // "" if the file does not record it
  int schemaMajor = 0, schemaMinor = 0;
  Container container = Container::RawState;
  std::vector<ProgramInput> inputs;
  std::vector<ProgramOutput> outputs;
  std::vector<StateTensor> state;
  std::vector<ExposedBuffer> exposedBuffers;
  std::vector<std::string> written;  // every buffer that it writes, whether a result depends on it or not
  /// With ReadOptions::examples: the inputs that the program was exported with, a tensor per argument. Empty
  /// if the archive has none that can be read and match; only messages depend on them.
  std::vector<Tensor> examples;
  /// Python classes by module path ("" for the root): {"stem.0", "torch.nn.modules.conv.Conv2d"}.
  std::map<std::string, std::string> moduleClasses;
  /// What was left out without changing the results: writes to inputs, state that nothing reads.
  std::vector<Diagnostic> warnings;
};

/// Weights borrow the mapped file if they are dense in it; the tensors keep the mapping alive. Errors name
/// the file, the node (with module path) and a remedy; each unsupported node gets a diagnostic.
Result<ExportedProgram> readExportedProgram(const std::filesystem::path& path,
                                            const ReadOptions& options = {});
/// The same from memory that `owner` keeps alive.
Result<ExportedProgram> readExportedProgram(ByteSpan bytes, std::shared_ptr<const void> owner,
                                            const ReadOptions& options = {});

/// One node of an exported graph as in the file, supported or not.
struct ListedNode {
  std::string op;  // "aten.relu.default", "mylib::op.default", "torch._functorch.predispatch..."
  ir::LocationRef location;
};
/// The nodes of a program in file order, for tables of networks that readExportedProgram() rejects.
Result<std::vector<ListedNode>> listNodes(const std::filesystem::path& path, const ReadOptions& options = {});

/// A symbol in the sizes of a program's inputs: torch.export's dynamic_shapes.
struct SizeSymbol {
  std::string name;                 // "s77"
  std::optional<int64_t> min, max;  // that it was exported for
  std::string where;                // "input x, dimension 2"

  std::string str() const;  // "s77 from 2 to 64"
};
/// In the order of the inputs.
Result<std::vector<SizeSymbol>> sizeSymbols(const std::filesystem::path& path,
                                            const ReadOptions& options = {});

/// Names of the programs in an archive.
Result<std::vector<std::string>> modelNames(const std::filesystem::path& path);

}  // namespace carina::pt2
