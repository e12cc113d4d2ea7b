// SPDX-License-Identifier: Apache-2.0
#include "pipeline/methods.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "compiler/schedule/known_weights.hpp"
#include "delivery/delegate.hpp"
#include "pipeline/assemble.hpp"
#include "pipeline/chosen_machine.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/float_network.hpp"
#include "pipeline/integer_io.hpp"
#include "pipeline/memory_needs.hpp"
#include "pipeline/port_codes.hpp"
#include "pt2/exported_program.hpp"

namespace carina::pipeline {
namespace {

Status checkSources(std::span<const MethodSource> sources) {
  std::set<std::string> names;
  for (const MethodSource& source : sources) {
    if (source.name.empty() || !names.insert(source.name).second) {
      return fail(Code::BadOption, "'{}' is the name of another method", source.name)
          .at("--method")
          .withRemedy("give each method a different name; a MODEL without a name is 'forward'");
    }
    CARINA_TRY(const FileKind kind, fileKindOf(source.model));
    if (kind == FileKind::Archive) continue;
    return fail(Code::WrongKind, "methods are compiled from .pt2 archives, but this is a {}",
                fileKindName(kind))
        .inFile(source.model.string())
        .withRemedy("export it with torch.export.save, or compile it as a separate program");
  }
  return {};
}

std::vector<Options> optionsOf(const Options& options, std::span<const MethodSource> sources) {
  std::vector<Options> all;
  for (const MethodSource& source : sources) {
    Options own = options;
    own.model = source.model;
    own.calibration = source.calibration;
    own.sizes = source.sizes;
    own.constantMethods.clear();  // belong to the program of all methods
    all.push_back(std::move(own));
  }
  return all;
}

/// Buffers that one method writes and another one reads or writes.
Result<std::vector<std::string>> commonState(std::span<const Options> methods) {
  std::set<std::string> written;
  std::vector<std::set<std::string>> used;  // by each method
  for (const Options& options : methods) {
    pt2::ReadOptions reading{.model = options.program, .state = pt2::StatePolicy::Expose};
    reading.sizes = options.sizes;
    CARINA_TRY(const pt2::ExportedProgram program, pt2::readExportedProgram(options.model, reading));
    written.insert(program.written.begin(), program.written.end());
    std::set<std::string>& names = used.emplace_back(program.written.begin(), program.written.end());
    for (const pt2::StateTensor& tensor : program.state) {
      if (tensor.value) names.insert(tensor.name);
    }
  }
  std::vector<std::string> common;
  for (const std::string& name : written) {
    const auto users =
        std::count_if(used.begin(), used.end(), [&](const auto& names) { return names.count(name) != 0; });
    if (users > 1) common.push_back(name);
  }
  return common;
}

/// The index of a variable in a state.
std::optional<size_t> indexOf(const ir::State& state, const std::string& name) {
  for (size_t i = 0; i < state.size(); ++i) {
    if (state[i].name == name) return i;
  }
  return std::nullopt;
}

/// Keeps common variables in the same codes in all methods: those of the first method that has any.
void keepCommonCodes(std::span<const MethodSource> sources, const std::vector<std::string>& common,
                     std::vector<Front>& fronts) {
  for (const std::string& name : common) {
    std::optional<quantize::QParams> codes;
    for (const Front& front : fronts) {
      const auto index = indexOf(front.state, name);
      if (index && !codes) codes = stateCodes(front.quantized, front.state.size(), *index);
    }
    if (!codes) continue;
    for (size_t m = 0; m < fronts.size(); ++m) {
      Front& front = fronts[m];
      const auto index = indexOf(front.state, name);
      if (!index) continue;
      const size_t states = front.state.size();
      const auto own = stateCodes(front.quantized, states, *index);
      const size_t input = ir::callerInputs(front.quantized, front.state) + *index;
      const bool reads = !front.quantized.inputs()[input]->unused();
      const bool converts = keepStateAs(front.quantized, states, *index, *codes);
      if (!converts || (!own && !reads)) continue;  // write-only: it has no codes that could differ
      front.warnings.push_back(
          {fmt::format(
               "method {} uses other codes for it than the preceding methods: it is converted in every call",
               sources[m].name),
           "", sources[m].model.string(), "'" + name + "'"});
    }
  }
}

std::vector<SharedVariable> sharedVariables(const MethodsBuild& build) {
  std::vector<SharedVariable> shared;
  for (size_t m = 0; m < build.methods.size(); ++m) {
    for (const pte::Value& value : build.program.methods[m].values) {
      const auto* tensor = std::get_if<pte::Tensor>(&value);
      if (!tensor || !tensor->extra || tensor->extra->name.empty()) continue;
      const std::string& name = tensor->extra->name;
      const auto known = std::find_if(shared.begin(), shared.end(),
                                      [&](const SharedVariable& variable) { return variable.name == name; });
      if (known != shared.end()) {
        known->methods.push_back(build.names[m]);
        continue;
      }
      shared.push_back({name, tensor->str(), {build.names[m]}});
    }
  }
  shared.erase(std::remove_if(shared.begin(), shared.end(),
                              [](const SharedVariable& variable) { return variable.methods.size() == 1; }),
               shared.end());
  return shared;
}

/// Warns if several methods have state but share none of it: the same buffers were probably intended.
void warnOfSeparateState(MethodsBuild& build) {
  std::vector<std::string> methods;
  for (size_t m = 0; m < build.methods.size(); ++m) {
    if (!build.methods[m].state.empty())
      methods.push_back(fmt::format("{} ('{}', ...)", build.names[m], build.methods[m].state[0].name));
  }
  if (methods.size() < 2 || !build.shared.empty()) return;
  build.warnings.push_back(
      {fmt::format("{} and {} keep state, but share none: no two of their buffers have the same name",
                   methods[0], methods[1]),
       "register the buffers under the same names in the modules that are exported", "", "--method"});
}

/// Merges the constants of the NPU parts of all methods into one region, if that saves memory. Returns its
/// key, or "".
Result<std::string> shareNpuConstants(MethodsBuild& build) {
  std::vector<compiler::CompiledProgram*> parts;
  for (Build& method : build.methods) {
    if (method.options.delivery == Delivery::Tosa)
      return std::string();  // each is compiled separately at load
    for (compiler::CompiledProgram& part : method.compiled) parts.push_back(&part);
  }
  CARINA_TRY(build.npuConstants, compiler::shareConstants(parts));
  if (build.npuConstants.together == build.npuConstants.apart) return std::string();
  const std::vector<std::byte>& constants = parts.front()->constants;
  std::string key = delivery::constantsKeyOf(constants);
  build.program.namedData.push_back({key, constants});
  return key;
}

Status assembleAll(const Options& options, MethodsBuild& build) {
  pte::StatePool pool(build.program);
  CARINA_TRY(const std::string constantsKey, shareNpuConstants(build));
  for (size_t m = 0; m < build.methods.size(); ++m) {
    Build& method = build.methods[m];
    std::vector<pte::Delegate> delegates = method.program.methods.front().delegates;
    for (size_t i = 0; i < method.compiled.size() && !constantsKey.empty(); ++i) {
      CARINA_TRY(delegates[i], delivery::ethosUDelegate(method.compiled[i], method.integerIo, constantsKey));
    }
    auto computed =
        assembleMethod({method.partitioned, delegates, method.state}, build.names[m], build.program, pool);
    if (!computed) return std::move(computed).error().inFile(method.options.model.string());
    method.computed = std::move(*computed);
  }
  CARINA_RETURN_IF_ERROR(addConstantMethods(options, build.program));
  for (size_t m = 0; m < build.methods.size(); ++m)
    CARINA_RETURN_IF_ERROR(addCodeMethods(codesOf(build.methods[m]), build.names[m], build.program));
  pool.finish();
  return {};
}

/// The order in which methods are compiled: largest first, so that small methods can use the weights of large
/// ones in the blocks that the large ones need.
std::vector<size_t> largestFirst(const std::vector<Front>& fronts) {
  std::vector<int64_t> elements;  // of all results
  for (const Front& front : fronts) {
    int64_t sum = 0;
    for (const ir::Node* node : front.quantized.nodes()) {
      for (const ir::Value* value : node->results()) sum += value->numElements();
    }
    elements.push_back(sum);
  }
  std::vector<size_t> order(fronts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return elements[a] > elements[b]; });
  return order;
}

}  // namespace

Result<MethodsBuild> buildMethods(const Options& options, std::span<const MethodSource> sources) {
  CARINA_RETURN_IF_ERROR(checkTarget(options));
  CARINA_RETURN_IF_ERROR(checkSources(sources));
  const std::vector<Options> all = optionsOf(options, sources);
  CommonState common;
  CARINA_TRY(common.names, commonState(all));
  std::vector<std::vector<StageTime>> times(all.size());
  std::vector<FloatNetwork> networks;
  for (size_t m = 0; m < all.size(); ++m) {
    CARINA_TRY(FloatNetwork network, readFloatNetwork(all[m], times[m], &common));
    networks.push_back(std::move(network));
  }
  CARINA_TRY(std::vector<Front> fronts, quantizeNetworks(all, std::move(networks), times.front()));
  keepCommonCodes(sources, common.names, fronts);
  MethodsBuild build;
  build.methods.resize(all.size());
  compiler::KnownWeights known;
  for (const size_t m : largestFirst(fronts)) {
    CARINA_TRY(build.methods[m], buildFrom(std::move(fronts[m]), all[m], std::move(times[m]), &known));
  }
  for (const MethodSource& source : sources) build.names.push_back(source.name);
  CARINA_RETURN_IF_ERROR(assembleAll(options, build));
  build.shared = sharedVariables(build);
  warnOfSeparateState(build);
  return build;
}

Measured measuredOf(const MethodsBuild& build, std::optional<int64_t> programBytes) {
  Measured all;
  SramNeeds needs;
  for (size_t m = 0; m < build.methods.size(); ++m) {
    const Measured one = measuredOf(build.methods[m], programBytes);
    const auto most = [](auto& to, const auto& from) {
      to = to && from ? std::max(to, from) : to ? to : from;
    };
    most(all.cycles, one.cycles);
    most(all.inferenceMs, one.inferenceMs);
    if (one.sqnr) all.sqnr = std::min(all.sqnr.value_or(*one.sqnr), *one.sqnr);
    all.wholly = all.wholly.value_or(true) && one.wholly.value_or(false);
    if (all.onCpu.empty() && !one.onCpu.empty())
      all.onCpu = fmt::format("method {}: {}", build.names[m], one.onCpu);
    all.subject += (m == 0 ? "" : ", ") + one.subject;
    const SramNeeds own = sramNeeds(build.methods[m]);
    needs.arena = std::max(needs.arena, own.arena);
    needs.cache = std::max(needs.cache, own.cache);
    needs.constants += own.constants;
    // Constants that parts share were counted for each.
    if (own.constants > 0 && build.sharesNpuConstants())
      needs.constants -= build.npuConstants.together * static_cast<int64_t>(build.methods[m].compiled.size());
  }
  if (needs.constants > 0 && build.sharesNpuConstants()) needs.constants += build.npuConstants.together;
  all.flash = programBytes;
  if (build.methods.front().machine) {
    all.sram = needs.total();
    all.sramParts = needs.str();
  }
  return all;
}

}  // namespace carina::pipeline
