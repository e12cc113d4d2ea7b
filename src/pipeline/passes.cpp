// SPDX-License-Identifier: Apache-2.0
#include "pipeline/passes.hpp"

#include "aten/control_flow.hpp"
#include "aten/ops.hpp"
#include "base/nearest.hpp"
#include "compiler/legalize/legalize.hpp"
#include "compiler/legalize/row_tiles.hpp"
#include "compiler/schedule/split_weights.hpp"
#include "compiler/storage/storage.hpp"
#include "cpu/kernel_form.hpp"
#include "decompose/aliases.hpp"
#include "decompose/composites.hpp"
#include "decompose/decompose.hpp"
#include "decompose/empty_tensors.hpp"
#include "decompose/functionalize.hpp"
#include "decompose/recurrence_loops.hpp"
#include "decompose/regions.hpp"
#include "decompose/rewrites.hpp"
#include "ir/invalid_node.hpp"
#include "ir/pass.hpp"
#include "ir/verifier.hpp"
#include "lower/lower.hpp"
#include "lower/single_precision.hpp"
#include "lower_tfl/lower.hpp"
#include "npu_ir/ops.hpp"
#include "partition/partition.hpp"
#include "partition/units.hpp"
#include "pipeline/integer_io.hpp"
#include "pipeline/work_limits.hpp"
#include "quantize/prequantized.hpp"
#include "quantize/quantize.hpp"
#include "quantize/rms_norms.hpp"
#include "tfl/ops.hpp"
#include "tosa/tosa.hpp"

namespace carina::pipeline {
namespace {

// Adapts passes of one argument to the table.
template <Status (*Pass)(ir::Graph&)>
Status plain(ir::Graph& graph, const PassSettings&) {
  return Pass(graph);
}

/// Applies one family of rewrites to its fixpoint.
template <void (*Add)(std::vector<ir::Rewrite>&)>
Status rewrites(ir::Graph& graph, const PassSettings&) {
  std::vector<ir::Rewrite> family;
  Add(family);
  return ir::rewriteToFixpoint(graph, family);
}

Status eraseDead(ir::Graph& graph, const PassSettings&) {
  graph.eraseDeadNodes();
  return {};
}

Status functionalize(ir::Graph& graph, const PassSettings&) {
  return decompose::functionalize(graph);
}

Status replaceAliases(ir::Graph& graph, const PassSettings&) {
  return decompose::replaceAliases(graph, decompose::Copies::Replace);
}

Status eraseAssertions(ir::Graph& graph, const PassSettings&) {
  decompose::eraseAssertions(graph);
  return {};
}

Status toSinglePrecision(ir::Graph& graph, const PassSettings&) {
  lower::toSinglePrecision(graph);
  return {};
}

Status removeIdentities(ir::Graph& graph, const PassSettings&) {
  return ir::rewriteToFixpoint(graph, std::vector<ir::Rewrite>{decompose::removeIdentity});
}

Status foldConstants(ir::Graph& graph, const PassSettings&) {
  return decompose::foldConstants(graph, decompose::FoldQuantization::No);
}

Status foldWeights(ir::Graph& graph, const PassSettings&) {
  return decompose::foldConstants(graph, decompose::FoldQuantization::Yes);
}

Status replaceBy(ir::Graph& graph, Result<ir::Graph> lowered) {
  if (!lowered) return std::move(lowered).error();
  graph = std::move(*lowered);
  return {};
}

Status lowerAten(ir::Graph& graph, const PassSettings&) {
  return replaceBy(graph, lower::lowerToTosa(graph));
}

Status lowerTfl(ir::Graph& graph, const PassSettings&) {
  CARINA_TRY(lower_tfl::Lowered lowered, lower_tfl::lowerToTosa(graph));
  graph = std::move(lowered.tosa);
  return {};
}

Status legalize(ir::Graph& graph, const PassSettings& settings) {
  CARINA_RETURN_IF_ERROR(tosa::verify(graph, {.extensions = tosa::kIntegerExtensions}));
  return replaceBy(graph, compiler::legalize(graph, *settings.target));
}

Status integerIo(ir::Graph& graph, const PassSettings&) {
  return exposeIntegers(graph, ProgramIo::Int8, ProgramIo::Int8, 0);
}

Status loopRecurrences(ir::Graph& graph, const PassSettings&) {
  return decompose::loopRecurrences(graph, {});
}

/// Every run in two tiles; the compiler tiles only where that saves cycles.
Status gatherRows(ir::Graph& graph, const PassSettings&) {
  graph = compiler::withLongRuns(graph);
  return {};
}

Status tileRows(ir::Graph& graph, const PassSettings&) {
  const compiler::RowTiling tiling(graph);
  std::vector<compiler::RowTiles> tiles;
  for (const compiler::RowRun& run : tiling.runs()) tiles.push_back({run.first, run.last, 2});
  graph = tiling.tiled(tiles).graph;
  return {};
}

Status splitWeights(ir::Graph& graph, const PassSettings&) {
  compiler::splitWeights(graph);
  return {};
}

constexpr Dialect kAny = Dialect::Any, kAten = Dialect::Aten, kTosa = Dialect::Tosa, kNpu = Dialect::Npu;

constexpr NamedPass kPasses[] = {
    {"erase-dead-nodes", kAny, kAny, false, "removes nodes whose results are unused, and unused constants",
     eraseDead},
    // Passes of the .pt2 reader.
    {"functionalize", kAten, kAten, false, "replaces writes into tensors by functional operators",
     functionalize},
    {"replace-aliases", kAten, kAten, false, "replaces aliases of operators", replaceAliases},
    {"replace-composites", kAten, kAten, false, "replaces operators that a few simpler ones compute exactly",
     plain<decompose::replaceComposites>},
    // Decomposition.
    {"remove-empty-tensors", kAten, kAten, false, "removes tensors without elements",
     plain<decompose::removeEmptyTensors>},
    {"close-regions", kAten, kAten, false,
     "moves the constants that branches and loops use into them, and removes unused operands",
     plain<decompose::closeRegions>},
    {"to-single-precision", kAten, kAten, false,
     "computes networks of float64, float16 and bfloat16 in float32", toSinglePrecision},
    {"settle-parameters", kAten, kAten, false, "turns quantize nodes over constants into integer constants",
     plain<quantize::settleParameters>},
    {"normalize-prequantized", kAten, kAten, false,
     "converts prequantized networks to the form that the quantizer writes",
     plain<quantize::normalizePrequantized>},
    {"erase-assertions", kAten, kAten, false, "removes checks of properties that export fixed",
     eraseAssertions},
    {"fold-constants", kAten, kAten, false, "computes what depends on constants only", foldConstants},
    {"fold-weights", kAten, kAten, false, "like fold-constants, including dequantized weights", foldWeights},
    {"remove-identities", kAten, kAten, false, "removes operators that return their operand unchanged",
     removeIdentities},
    {"decompose-einsum", kAten, kAten, false, "einsum as products of matrices",
     rewrites<decompose::addEinsumRewrites>},
    {"decompose-matrix", kAten, kAten, false, "products with constants as linear layers",
     rewrites<decompose::addMatrixRewrites>},
    {"decompose-norm", kAten, kAten, false, "softmax, normalizations and variance",
     rewrites<decompose::addNormRewrites>},
    {"decompose-attention", kAten, kAten, false, "scaled_dot_product_attention",
     rewrites<decompose::addAttentionRewrites>},
    {"decompose-pointwise", kAten, kAten, false, "division, glu, masked_fill, prelu and the like",
     rewrites<decompose::addPointwiseRewrites>},
    {"decompose-function", kAten, kAten, false, "hypot, logaddexp, lerp and the like",
     rewrites<decompose::addFunctionRewrites>},
    {"decompose-transposed", kAten, kAten, false, "transposed convolution in three dimensions",
     rewrites<decompose::addTransposedRewrites>},
    {"decompose-recurrent", kAten, kAten, false, "lstm, gru, rnn and their cells",
     rewrites<decompose::addRecurrentRewrites>},
    {"decompose-types", kAten, kAten, false, "operands of different types, integers and numbers",
     rewrites<decompose::addTypeRewrites>},
    {"decompose-logic", kAten, kAten, false, "logic of numbers, arithmetic of bools and integers",
     rewrites<decompose::addLogicRewrites>},
    {"decompose-window", kAten, kAten, false, "unfold, im2col, col2im, as_strided, circular padding",
     rewrites<decompose::addWindowRewrites>},
    {"decompose-pool", kAten, kAten, false, "pools of volumes, adaptive pools",
     rewrites<decompose::addPoolRewrites>},
    {"decompose-resize", kAten, kAten, false, "resizing of lines and volumes, bicubic",
     rewrites<decompose::addResizeRewrites>},
    {"decompose-grid", kAten, kAten, false, "sampling at known positions",
     rewrites<decompose::addGridRewrites>},
    {"decompose-index", kAten, kAten, false, "several indices, index_copy, index_add",
     rewrites<decompose::addIndexRewrites>},
    {"decompose-scatter", kAten, kAten, false, "scatter, scatter_reduce, masked_scatter",
     rewrites<decompose::addScatterRewrites>},
    {"decompose-scan", kAten, kAten, false, "running products, counts, distances",
     rewrites<decompose::addScanRewrites>},
    {"decompose-order", kAten, kAten, false, "medians as the last of the k smallest elements",
     rewrites<decompose::addOrderRewrites>},
    {"decompose-extreme", kAten, kAten, false, "top-k and short sorts as repeated extremes",
     rewrites<decompose::addExtremeRewrites>},
    {"decompose-rank", kAten, kAten, false, "dimensions beyond the six of TOSA",
     rewrites<decompose::addRankRewrites>},
    {"loop-recurrences", kAten, kAten, false, "recurrent layers over 100 or more steps as loops",
     loopRecurrences},
    {"decompose", kAten, kAten, false, "all of decomposition: folding, identities and every family in turn",
     [](ir::Graph& graph, const PassSettings&) { return decompose::forNpu(graph); }},
    {"fold-batch-norms", kAten, kAten, false,
     "folds batch norms and constant factors into the preceding or following layers",
     [](ir::Graph& graph, const PassSettings&) { return quantize::foldBatchNorms(graph); }},
    {"use-rms-norms", kAten, kAten, false,
     "turns layer norms into RMS norms where the preceding layers can remove the mean",
     plain<quantize::useRmsNorms>},
    // Quantized networks to TOSA, or to CPU kernels.
    {"separate-dequantizes", kAten, kAten, false, "gives every dequantize node a single use",
     plain<partition::separateDequantizes>},
    {"integer-io", kAten, kAten, false, "int8 inputs and outputs where the graph has float ones", integerIo},
    {"kernel-form", kAten, kAten, false, "rewrites CPU operators into those that have kernels",
     plain<cpu::toKernelForm>},
    {"lower-to-tosa", kAten, kTosa, false, "a quantized graph as TOSA with integer arithmetic", lowerAten},
    {"lower-tfl-to-tosa", Dialect::Tfl, kTosa, false, "a TensorFlow Lite graph as TOSA", lowerTfl},
    // The compiler.
    {"gather-rows", kTosa, kTosa, false, "moves what interrupts runs of row-by-row operators before them",
     gatherRows},
    {"tile-rows", kTosa, kTosa, false, "repeats operators that work row by row for two ranges of rows",
     tileRows},
    {"legalize", kTosa, kNpu, true, "TOSA as operations of the target", legalize},
    {"split-weights", kNpu, kNpu, false, "splits convolutions with many weights by output channels",
     splitWeights},
    {"make-addressable", kNpu, kNpu, false, "views and joins as addressing, with copies where necessary",
     plain<compiler::makeAddressable>},
};

const NamedPass* findPass(std::string_view name) {
  for (const NamedPass& pass : kPasses) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

bool belongsTo(const ir::Node& node, Dialect dialect) {
  switch (dialect) {
    case Dialect::Any:
      return true;
    case Dialect::Aten:
      return decompose::findReadable(node.opName()) == &node.def() || node.is(partition::delegateCallDef());
    case Dialect::Tfl:
      return tfl::isOperator(&node);
    case Dialect::Tosa:
      return tosa::isOperator(&node);
    case Dialect::Npu:
      return npu_ir::isOperator(&node);
  }
  return false;
}

Status verified(const ir::Graph& graph) {
  const Status status = ir::verify(graph);
  if (status.ok()) return {};
  const Diagnostic& first = status.error().diagnostics().front();
  return fail(Code::InvalidGraph, "the graph is invalid after this pass: {}: {}", first.place, first.message)
      .withRemedy("another pass may have to run first; otherwise, this is a bug in Carina: please report it");
}

Status runOne(ir::Graph& graph, const NamedPass& pass, const PassSettings& settings) {
  CARINA_RETURN_IF_ERROR(checkDialect(graph, pass.takes));
  if (pass.needsTarget && !settings.target)
    return fail(Code::BadOption, "the pass depends on the target").withRemedy("name one with --target");
  return ir::rejectInvalidNodes("", [&] { return pass.run(graph, settings); });
}

}  // namespace

std::string_view dialectName(Dialect dialect) {
  switch (dialect) {
    case Dialect::Any:
      return "any";
    case Dialect::Aten:
      return "aten";
    case Dialect::Tfl:
      return "tfl";
    case Dialect::Tosa:
      return "tosa";
    case Dialect::Npu:
      return "npu";
  }
  return "";
}

Status checkDialect(const ir::Graph& graph, Dialect dialect) {
  for (const ir::Node* node : graph.nodes()) {
    if (!belongsTo(*node, dialect)) {
      return fail(Code::WrongKind, "expected a graph of the {} dialect, found {}", dialectName(dialect),
                  node->opName())
          .withRemedy("'carina opt --list-passes' shows the input and output dialect of each pass");
    }
    if (node->is(partition::delegateCallDef())) continue;
    for (const auto& region : node->regions()) {
      if (region) CARINA_RETURN_IF_ERROR(checkDialect(*region, dialect));
    }
  }
  return {};
}

std::span<const NamedPass> namedPasses() {
  return kPasses;
}

const ir::OperatorSet& allOperators() {
  static const ir::OperatorSet kOperators{
      [](std::string_view name) -> const ir::OpDef* {
        for (const auto find :
             {decompose::findReadable, tosa::findOperator, tfl::findOperator, npu_ir::findOperator}) {
          if (const ir::OpDef* def = find(name)) return def;
        }
        return name == partition::delegateCallDef().name ? &partition::delegateCallDef() : nullptr;
      },
      [] {
        std::vector<std::string> names;
        for (const ir::OpDef* def :
             {&partition::delegateCallDef(), &aten::condDef(), &aten::whileLoopDef(), &aten::scanDef()})
          names.emplace_back(def->name);
        for (const auto operators : {aten::operators, tosa::operators, tfl::operators, npu_ir::operators}) {
          for (const ir::OpDef& def : operators()) names.emplace_back(def.name);
        }
        return names;
      }};
  return kOperators;
}

Status runNamedPasses(ir::Graph& graph, std::span<const std::string> names, const PassSettings& settings,
                      bool verifyEach) {
  std::vector<const NamedPass*> chosen;
  for (const std::string& name : names) {
    chosen.push_back(findPass(name));
    if (chosen.back()) continue;
    std::vector<std::string> known;
    for (const NamedPass& pass : kPasses) known.emplace_back(pass.name);
    const std::string nearest = nearestWord(name, known);
    return fail(Code::UnknownName, "there is no pass '{}'", name)
        .at("--passes")
        .withRemedy(nearest.empty() ? "'carina opt --list-passes' lists the passes"
                                    : fmt::format("did you mean '{}'?", nearest));
  }
  if (settings.budget != nullptr && !chosen.empty())
    CARINA_RETURN_IF_ERROR(checkWork(graph, 1, *settings.budget));
  for (const NamedPass* pass : chosen) {
    Status status = runOne(graph, *pass, settings);
    if (status.ok() && (verifyEach || ir::verifiesEachPass() || pass == chosen.back()))
      status = verified(graph);
    if (status.ok()) continue;
    std::vector<Diagnostic> diagnostics = status.error().diagnostics();
    for (Diagnostic& diagnostic : diagnostics)
      diagnostic.place =
          fmt::format("{}{}{}", pass->name, diagnostic.place.empty() ? "" : ": ", diagnostic.place);
    return Error(std::move(diagnostics));
  }
  return {};
}

}  // namespace carina::pipeline
