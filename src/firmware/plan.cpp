// SPDX-License-Identifier: Apache-2.0
#include "firmware/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/array_fit.hpp"
#include "base/damaged.hpp"
#include "carina/kernels.hpp"
#include "carina/runtime.hpp"
#include "carina/tokenizer.hpp"
#include "delivery/delegate.hpp"
#include "device/aligned_buffer.hpp"
#include "device/npu_setup.hpp"
#include "device/recording_backend.hpp"
#include "pipeline/batch.hpp"
#include "pipeline/language_program.hpp"
#include "pte/program.hpp"
#include "tokenizer/tokenizer.hpp"

namespace carina::firmware {
namespace {

constexpr int64_t kAlignment = 16;
/// Buffer for a typed prompt: bytes per token of the context, within limits.
constexpr int64_t kLineBytesPerToken = 8, kMinLineBytes = 256, kMaxLineBytes = 4096;

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class Planner {
 public:
  Planner(ByteSpan file, const PlanOptions& options) : file_(file), options_(options) {}

  Result<Plan> run() {
    CARINA_TRY(plan_.platform, findPlatform(options_.platform));
    CARINA_RETURN_IF_ERROR(read());
    CARINA_RETURN_IF_ERROR(chooseMethods());
    CARINA_RETURN_IF_ERROR(chooseNpu());
    CARINA_RETURN_IF_ERROR(listKernels());
    CARINA_RETURN_IF_ERROR(measure());
    CARINA_RETURN_IF_ERROR(countUnplanned());
    CARINA_RETURN_IF_ERROR(packArrays());
    CARINA_RETURN_IF_ERROR(place());
    return std::move(plan_);
  }

  /// Everything except placement and arrays, without a platform.
  Result<Plan> measureOnly() {
    CARINA_RETURN_IF_ERROR(read());
    CARINA_RETURN_IF_ERROR(chooseMethods());
    CARINA_RETURN_IF_ERROR(chooseNpu());
    CARINA_RETURN_IF_ERROR(listKernels());
    CARINA_RETURN_IF_ERROR(measure());
    CARINA_RETURN_IF_ERROR(countUnplanned());
    return std::move(plan_);
  }

 private:
  Status read() {
    auto program = pte::readProgram(file_);
    if (!program) return std::move(program).error().withRemedy(kDamagedRemedy);
    program_ = std::move(*program);
    return {};
  }

  const pte::Method& methodOf(const MethodPlan& plan) const { return program_.methods[plan.index]; }

  Status chooseMethods() {
    plan_.programByFile = options_.programByFile;
    plan_.semihosted = options_.semihosted;
    plan_.programBytes = static_cast<int64_t>(file_.size());
    if (options_.text) return chooseLanguage(*options_.text);
    if (options_.method.empty()) {
      plan_.methods.emplace_back();
      return {};
    }
    return addMethod(options_.method);
  }

  Status addMethod(const std::string& wanted) {
    std::vector<std::string> names;
    for (const pte::Method& method : program_.methods) {
      if (method.name == wanted) {
        plan_.methods.emplace_back().index = static_cast<uint32_t>(names.size());
        return {};
      }
      names.push_back(method.name);
    }
    return fail(Code::UnsupportedProgram, "the program has no method '{}'", wanted)
        .withRemedy(fmt::format("its methods: {}", fmt::join(names, ", ")));
  }

  /// Selects decode and, if present, prefill, and converts the tokenizer to a table.
  Status chooseLanguage(const TextOptions& options) {
    CARINA_TRY(const auto tokenizer, tokenizer::Tokenizer::read(options.tokenizer));
    CARINA_TRY(const auto language,
               pipeline::languageProgram(file_, program_, {}, tokenizer.size(), options.context));
    std::vector<pipeline::LanguageMethod> methods = {language.decode};
    if (language.prefill) methods.push_back(*language.prefill);
    for (const pipeline::LanguageMethod& method : methods) {
      CARINA_RETURN_IF_ERROR(addMethod(method.name));
      CARINA_RETURN_IF_ERROR(checkTypes(methodOf(plan_.methods.back())));
    }
    TextPlan text;
    text.prompt = options.prompt;
    text.tokens = options.tokens;
    text.context = language.context;
    auto table = tokenizer.table();
    if (!table) return std::move(table).error().inFile(options.tokenizer.string());
    text.table = std::move(*table);
    if (!options.prompt.empty()) {
      CARINA_TRY(const auto tokens, pipeline::promptTokens(tokenizer, options.prompt, text.context));
      text.lineBytes = static_cast<int64_t>(options.prompt.size());
    } else {
      text.lineBytes = std::clamp(kLineBytesPerToken * std::min(text.context, kMaxLineBytes), kMinLineBytes,
                                  kMaxLineBytes);
    }
    CARINA_TRY(const auto around, tokenizer.encode(""));
    text.pieces = text.lineBytes + static_cast<int64_t>(around.size());
    plan_.text = std::move(text);
    return {};
  }

  /// Checks types that languageProgram() leaves open, but of which firmware supports only some.
  static Status checkTypes(const pte::Method& method) {
    const auto typeOf = [&](int32_t id) {
      return std::get<pte::Tensor>(method.values[static_cast<size_t>(id)]).type;
    };
    for (const int32_t id : method.inputs) {
      const bool tensor = std::holds_alternative<pte::Tensor>(method.values[static_cast<size_t>(id)]);
      if (!tensor || (typeOf(id) != pte::ScalarType::Int64 && typeOf(id) != pte::ScalarType::Int32))
        return fail(Code::UnsupportedProgram, "takes inputs other than tokens and positions of 32 or 64 bits")
            .at(method.name)
            .withRemedy("export a step whose only inputs are int64 tokens and positions");
    }
    if (typeOf(method.outputs[0]) == pte::ScalarType::Float32) return {};
    return fail(Code::UnsupportedProgram, "returns logits as {}, but an image takes float32",
                pte::scalarTypeName(typeOf(method.outputs[0])))
        .at(method.name)
        .withRemedy("compile it with float outputs");
  }

  static Status checkDelegates(const pte::Method& method) {
    for (const pte::Delegate& delegate : method.delegates) {
      if (delegate.id == delivery::kTosaBackend) {
        return fail(Code::UnsupportedProgram,
                    "NPU parts of the program are TOSA graphs, which firmware cannot compile")
            .withRemedy(
                "compile them for the NPU: carina compile PROGRAM.pte --target TARGET -o COMPILED.pte");
      }
      if (delegate.id != pte::kEthosUBackend) {
        return fail(Code::UnsupportedProgram,
                    "the program needs the backend {}, which this firmware does not have", delegate.id)
            .withRemedy("compile the network for an Ethos-U target");
      }
    }
    return {};
  }

  Status chooseNpu() {
    plan_.target = "cpu";
    bool delegated = false;
    for (const MethodPlan& plan : plan_.methods) {
      CARINA_RETURN_IF_ERROR(checkDelegates(methodOf(plan)));
      delegated = delegated || !methodOf(plan).delegates.empty();
    }
    if (!delegated) return {};
    CARINA_TRY(const device::Compiled compiled, device::compiledFor(program_));
    CARINA_TRY(plan_.machine, device::machineFor(compiled.settings));
    if (const auto other = device::substitution(compiled.settings, *plan_.machine))
      plan_.notes.push_back(other->message);
    const npu::Target& target = *plan_.machine->target;
    plan_.target = std::string(target.name);
    if (plan_.platform != nullptr && !plan_.platform->carries(target.family)) {
      std::vector<std::string_view> families;
      for (npu::Family family : plan_.platform->families) families.push_back(npu::familyName(family));
      return fail(Code::OtherNpu, "the program was compiled for {}, but {} has {}", target.name,
                  plan_.platform->name, fmt::join(families, " or "))
          .withRemedy(fmt::format("choose --platform {}, or compile for another target",
                                  target.isU85() ? "corstone-320" : "corstone-300"));
    }
    if (options_.npuMacs != 0 && options_.npuMacs != target.macs) {
      return fail(
                 Code::OtherNpu,
                 "the program was compiled for {}, but the platform's NPU has {} MACs per cycle (--npu-macs)",
                 target.name, options_.npuMacs)
          .withRemedy(fmt::format("compile again for that NPU, or give --npu-macs {}", target.macs));
    }
    plan_.fastScratchBytes = device::fastScratchBytes(*plan_.machine);
    return {};
  }

  Status listKernels() {
    std::optional<Error> missing;
    for (const MethodPlan& plan : plan_.methods) {
      for (const pte::Operator& op : methodOf(plan).operators) {
        const std::string name = op.str();
        if (std::find(plan_.kernels.begin(), plan_.kernels.end(), name) != plan_.kernels.end()) continue;
        plan_.kernels.push_back(name);
        if (rt::hasKernel(rt::Text(op.name.data(), op.name.size()),
                          rt::Text(op.overload.data(), op.overload.size())))
          continue;
        Error error =
            fail(Code::MissingKernel, "the program calls {}, for which the runtime has no kernel", name)
                .withRemedy("change the network so that the operator is delegated");
        if (missing)
          missing->append(std::move(error));
        else
          missing = std::move(error);
      }
    }
    if (missing) return std::move(*missing);
    const bool small = std::all_of(plan_.kernels.begin(), plan_.kernels.end(), [](const std::string& name) {
      return name.find("quantize_per_") != std::string::npos;
    });
    plan_.stackBytes = aligned(options_.stackBytes != 0 ? options_.stackBytes
                               : small                  ? kStack
                                                        : kStackOfKernels);
    return {};
  }

  /// Asks the runtime for the memory that the program needs.
  Status measure() {
    bytes_ = device::AlignedBuffer(file_.size());
    std::copy(file_.begin(), file_.end(), reinterpret_cast<std::byte*>(bytes_.data()));
    rt::Program program;
    rt::EthosUDelegate delegate(nullptr);
    rt::Backend* const backends[] = {&delegate};
    rt::Environment environment;
    environment.backends = rt::Span<rt::Backend* const>(backends);
    rt::Status status = rt::Program::load(bytes_.span(), &program);
    for (MethodPlan& plan : plan_.methods) {
      rt::Requirements needs;
      if (status.ok()) status = rt::Method::require(program, plan.index, environment, &needs);
      plan_.temporaryBytes = std::max(plan_.temporaryBytes, static_cast<int64_t>(needs.temporaryBytes));
      for (uint32_t i = 0; i < needs.poolCount && status.ok(); ++i) {
        size_t bytes = 0;
        status = rt::Method::poolBytes(program, plan.index, i, &bytes);
        plan.poolBytes.push_back(static_cast<int64_t>(bytes));
      }
      plan.values = methodOf(plan).values.size();
      plan.operators = methodOf(plan).operators.size();
      plan.delegates = methodOf(plan).delegates.size();
    }
    if (status.ok()) {
      shareState();
      return {};
    }
    char text[256];
    rt::statusText(status, text, sizeof(text));
    return fail(Code::UnsupportedProgram, "{}", text);
  }

  /// Sets the state pools of all methods to the size of the largest.
  void shareState() {
    int64_t most = 0;
    for (const MethodPlan& plan : plan_.methods) {
      if (plan.poolBytes.size() > kStatePool) most = std::max(most, plan.poolBytes[kStatePool]);
    }
    for (MethodPlan& plan : plan_.methods) {
      if (plan.poolBytes.size() > kStatePool) plan.poolBytes[kStatePool] = most;
    }
  }

  Result<const pte::Tensor*> boundary(const MethodPlan& plan, std::string_view kind,
                                      const std::vector<int32_t>& ids, size_t i) const {
    const auto* tensor = std::get_if<pte::Tensor>(&methodOf(plan).values[static_cast<size_t>(ids[i])]);
    if (tensor == nullptr) {
      return fail(Code::UnsupportedProgram, "{} {} is not a tensor", kind, i)
          .withRemedy("export it as a tensor: an image cannot hold scalar inputs and outputs");
    }
    return tensor;
  }

  Status countUnplanned() {
    for (MethodPlan& plan : plan_.methods) {
      const pte::Method& method = methodOf(plan);
      for (const auto& [kind, ids] :
           {std::pair<std::string_view, const std::vector<int32_t>&>{"input", method.inputs},
            {"output", method.outputs}}) {
        for (size_t i = 0; i < ids.size(); ++i) {
          CARINA_TRY(const pte::Tensor* tensor, boundary(plan, kind, ids, i));
          if (!tensor->allocation && tensor->dataIndex == 0)
            plan.ioBytes += aligned(pte::tensorBytes(*tensor).value_or(0));
        }
      }
    }
    return {};
  }

  static Result<pipeline::Port> portOf(const pte::Tensor& tensor, std::string name) {
    const auto dtype = pte::toDType(tensor.type);
    if (!dtype)
      return fail(Code::UnsupportedProgram, "{} has type {}", name, pte::scalarTypeName(tensor.type));
    return pipeline::Port{std::move(name), {*dtype, Shape(tensor.sizes.begin(), tensor.sizes.end())}};
  }

  /// Appends `tensor` as it is in the target's memory: in the dimension order of the program.
  static void appendBytes(const Tensor& tensor, const pte::Tensor& as, std::string* to) {
    const size_t begin = to->size();
    to->resize(begin + tensor.bytes().size());
    rt::Tensor view{to->data() + begin,
                    as.sizes.data(),
                    tensor.bytes().size(),
                    as.dimOrder.data(),
                    as.type,
                    static_cast<uint8_t>(as.sizes.size()),
                    false,
                    true};
    device::copyIn(tensor, view);
  }

  /// Packs arrays `prefix`0, `prefix`1, ... for the program's inputs or outputs.
  Status pack(const NamedTensors& arrays, std::string_view prefix, std::string_view kind,
              const std::vector<int32_t>& ids, std::vector<std::string>* packed, uint32_t* samples) const {
    NamedTensors renamed;
    for (size_t i = 0; i < ids.size(); ++i) {
      const Tensor* tensor = findTensor(arrays, fmt::format("{}{}", prefix, i));
      if (tensor == nullptr && i == 0 && arrays.size() == 1) tensor = findTensor(arrays, "");
      if (tensor == nullptr) {
        return fail(Code::InputMismatch, "array '{}{}' is missing", prefix, i)
            .withRemedy(describeArrays(arrays, fmt::format("{}{}", prefix, i), {}));
      }
      renamed.emplace_back(fmt::format("in{}", i), *tensor);
    }
    std::vector<pipeline::Port> ports;
    for (size_t i = 0; i < ids.size(); ++i) {
      CARINA_TRY(const pte::Tensor* tensor, boundary(plan_.methods[0], kind, ids, i));
      CARINA_TRY(pipeline::Port port, portOf(*tensor, fmt::format("{} {}", kind, i)));
      ports.push_back(std::move(port));
    }
    CARINA_TRY(const pipeline::Batch batch, pipeline::makeBatch(renamed, ports));
    packed->resize(ids.size());
    for (const std::vector<Tensor>& sample : batch.samples) {
      for (size_t i = 0; i < ids.size(); ++i) {
        CARINA_TRY(const pte::Tensor* tensor, boundary(plan_.methods[0], kind, ids, i));
        appendBytes(sample[i], *tensor, &(*packed)[i]);
      }
    }
    *samples = static_cast<uint32_t>(batch.samples.size());
    return {};
  }

  Status packArrays() {
    const pte::Method& method = methodOf(plan_.methods[0]);
    if (!options_.inputs.empty()) {
      auto packed = pack(options_.inputs, "in", "input", method.inputs, &plan_.inputs, &plan_.samples);
      if (!packed.ok()) return std::move(packed).error().inFile(options_.inputsFile);
    }
    if (options_.expected.empty()) return {};
    uint32_t samples = 0;
    auto packed = pack(options_.expected, "out", "output", method.outputs, &plan_.expected, &samples);
    if (!packed.ok()) return std::move(packed).error().inFile(options_.expectedFile);
    if (samples == plan_.samples) return {};
    return fail(Code::InputMismatch, "the expected outputs hold {} samples, but the inputs hold {}", samples,
                plan_.samples)
        .inFile(options_.expectedFile)
        .withRemedy("give one for each sample of --input");
  }

  /// Places blocks in the order of their priority for fast memory, starting with those that must be there.
  /// The program and the CPU's own pools come last; they can do without it.
  Status place() {
    const PlatformInfo& platform = *plan_.platform;
    const bool slowArena = plan_.machine && plan_.machine->memory.spilling();
    const bool fastProgram =
        plan_.machine && plan_.machine->timing(npu::Area::Constants).kind == npu::MemoryKind::Sram;
    const int64_t prompt =
        plan_.text ? aligned(plan_.text->lineBytes) +
                         aligned(plan_.text->pieces * static_cast<int64_t>(sizeof(rt::TokenPiece)))
                   : 0;
    const int64_t pools = plan_.poolBytes() + plan_.methodBytes() + prompt;
    int64_t arrays = 0;
    for (const auto& list : {plan_.inputs, plan_.expected}) {
      for (const std::string& bytes : list) arrays += aligned(static_cast<int64_t>(bytes.size()));
    }
    CARINA_RETURN_IF_ERROR(
        put("fast scratch", platform.fast, plan_.fastScratchBytes, "memory mode with a smaller cache"));
    CARINA_RETURN_IF_ERROR(put("arena", slowArena ? platform.bulk : platform.fast, plan_.temporaryBytes,
                               slowArena ? "smaller network" : "Dedicated_Sram memory mode"));
    const bool programFits = free(platform.fast) >= aligned(plan_.programBytes);
    if (fastProgram && !programFits) {
      plan_.notes.push_back(
          fmt::format("the program ({} bytes) does not fit into {} together with the arena and is placed in "
                      "{}; {} assumes the faster memory",
                      plan_.programBytes, platform.fast, platform.bulk, plan_.machine->memory.name));
    }
    CARINA_RETURN_IF_ERROR(put("program", fastProgram && programFits ? platform.fast : platform.bulk,
                               plan_.programBytes, "smaller network"));
    CARINA_RETURN_IF_ERROR(
        put("pools", free(platform.fast) >= pools ? platform.fast : platform.bulk, pools, "smaller network"));
    if (plan_.text)
      CARINA_RETURN_IF_ERROR(put("tokenizer", platform.bulk, static_cast<int64_t>(plan_.text->table.size()),
                                 "tokenizer with fewer tokens"));
    return put("samples", platform.bulk, arrays, "file with fewer samples");
  }

  int64_t free(std::string_view region) const {
    int64_t used = 0;
    for (const Placement& placement : plan_.placements)
      used += placement.region == region ? placement.bytes : 0;
    return plan_.platform->region(region).bytes - used;
  }

  Status put(std::string_view what, std::string_view region, int64_t bytes, std::string_view instead) {
    bytes = aligned(bytes);
    if (bytes > free(region)) {
      return fail(Code::DoesNotFit, "{} bytes for the {} do not fit: {} of {} has {} bytes free of {}", bytes,
                  what, region, plan_.platform->name, free(region), plan_.platform->region(region).bytes)
          .withRemedy(fmt::format("use a {}", instead));
    }
    plan_.placements.push_back({what, region, bytes});
    return {};
  }

  ByteSpan file_;
  const PlanOptions& options_;
  pte::Program program_;
  device::AlignedBuffer bytes_;
  Plan plan_;
};

}  // namespace

int64_t MethodPlan::methodBytes() const {
  return aligned(static_cast<int64_t>(rt::Method::memoryBytes(values, operators, delegates, 0) +
                                      delegates * rt::EthosUDelegate::kStateBytes));
}

int64_t Plan::methodBytes() const {
  int64_t bytes = 0;
  for (const MethodPlan& method : methods) bytes += method.methodBytes();
  return bytes;
}

bool Plan::isShared(size_t method, size_t pool) const {
  return method > 0 && pool == kStatePool && methods[0].poolBytes.size() > kStatePool;
}

int64_t Plan::poolBytes() const {
  int64_t bytes = 0;
  for (size_t m = 0; m < methods.size(); ++m) {
    bytes += methods[m].ioBytes;
    for (size_t i = 0; i < methods[m].poolBytes.size(); ++i) {
      if (!isShared(m, i)) bytes += aligned(methods[m].poolBytes[i]);
    }
  }
  return bytes;
}

std::string_view Plan::regionOf(std::string_view what) const {
  for (const Placement& placement : placements) {
    if (placement.what == what) return placement.region;
  }
  CARINA_CHECK(false, "a block without a place");
}

Result<Plan> makePlan(ByteSpan program, const PlanOptions& options) {
  return Planner(program, options).run();
}

Result<Plan> measureProgram(ByteSpan program, const std::string& method) {
  PlanOptions options;
  options.method = method;
  return Planner(program, options).measureOnly();
}

}  // namespace carina::firmware
