// SPDX-License-Identifier: Apache-2.0
#include "firmware/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device/npu_setup.hpp"
#include "npu/targets/recorded_memories.hpp"

namespace carina::firmware {
namespace {

/// The text as a C string literal or as an assembler string.
std::string literal(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      result += fmt::format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string driverText(const Plan& plan, const SourceOptions& options) {
  const rt::DriverOptions driver = device::driverOptions(*plan.machine);
  const rt::RegionAttributes& attributes = driver.attributes;
  return fmt::format(
      "{{true, true, {}, {}, {{{}, {{{}}}}}, {}}}",
      options.timeoutMilliseconds == 0 ? "Device::kForever" : fmt::format("{}", options.timeoutMilliseconds),
      driver.hasAttributes, attributes.queue, fmt::join(attributes.region, ", "),
      options.validate ? "validateStream" : "nullptr");
}

std::string timingText(const Plan& plan, size_t port) {
  const TimingAdapterValues t = timingAdapter(*plan.machine, port);
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}}}", t.maxReads, t.maxWrites, t.maxBoth, t.readLatency,
                     t.writeLatency, t.pulseOn, t.pulseOff, t.bandwidth);
}

std::string arrayNames(std::string_view prefix, const std::vector<std::string>& arrays) {
  std::string text;
  for (size_t i = 0; i < arrays.size(); ++i)
    text += fmt::format("    {{{}{}, {}}},\n", prefix, i, arrays[i].size());
  return text;
}

/// A block that is not cleared at startup; `name` is an array, so that the compiler knows its size.
std::string block(std::string_view name, std::string_view section, std::string_view bytes) {
  return fmt::format("alignas(16) [[gnu::section(\".bss.carina.{}\")]] uint8_t {}[{}];\n", section, name,
                     bytes);
}

/// Appends the blocks of method `m` to `text`; returns its row of kMethods.
std::string methodText(const Plan& plan, size_t m, std::string_view temporary, std::string* text) {
  const MethodPlan& method = plan.methods[m];
  const auto own = [m](std::string_view name) {
    return m == 0 ? std::string(name) : fmt::format("{}Of{}", name, m);
  };
  *text +=
      block(own("methodMemory"), "pools",
            fmt::format("Method::memoryBytes({}, {}, {}, {} * ((EthosUDelegate::kStateBytes + 7) / 8 * 8))",
                        method.values, method.operators, method.delegates, method.delegates));
  std::string pools;
  for (size_t i = 0; i < method.poolBytes.size(); ++i) {
    const std::string pool = fmt::format("pool{}", i + 1);
    const std::string name = plan.isShared(m, i) ? pool : own(pool);
    if (method.poolBytes[i] > 0 && !plan.isShared(m, i))
      *text += block(name, "pools", fmt::format("{}", method.poolBytes[i]));
    pools += method.poolBytes[i] > 0 ? fmt::format("    MutableBytes({}),\n", name) : "    MutableBytes(),\n";
  }
  if (!pools.empty()) *text += fmt::format("MutableBytes {}[] = {{\n{}}};\n", own("pools"), pools);
  std::string io = "{}";
  if (method.ioBytes > 0) {
    *text += block(own("ioMemory"), "pools", fmt::format("{}", method.ioBytes));
    io = fmt::format("MutableBytes({})", own("ioMemory"));
  }
  *text += fmt::format("OperatorTime {}[{}];\n", own("times"), method.operators + method.delegates + 1);
  return fmt::format("    {{{}, {{MutableBytes({}), {}, {}}}, {}, Span<OperatorTime>({})}},\n", method.index,
                     own("methodMemory"),
                     pools.empty() ? "{}" : fmt::format("Span<MutableBytes>({})", own("pools")), temporary,
                     io, own("times"));
}

/// The setup for text generation: `kText`.
std::string textSetup(const TextPlan& plan) {
  const std::string prompt =
      plan.prompt.empty() ? "{}" : fmt::format("Text({}, {})", literal(plan.prompt), plan.prompt.size());
  std::string text, line = "{}";
  if (plan.prompt.empty()) {
    text += fmt::format("[[gnu::section(\".bss.carina.pools\")]] char line[{}];\n", plan.lineBytes);
    line = "Span<char>(line)";
  }
  return text + fmt::format(
                    "[[gnu::section(\".bss.carina.pools\")]] TokenPiece pieces[{}];\n"
                    "constexpr TextSetup kText = {{Bytes(appTokenizer, {}), {}, {}, {}, {}, "
                    "Span<TokenPiece>(pieces)}};\n",
                    plan.pieces, plan.table.size(), prompt, plan.context, plan.tokens, line);
}

std::string description(const Plan& plan, const SourceOptions& options) {
  std::string text = fmt::format("// Made by `carina firmware` from {} for {}.\n",
                                 literal(options.programName), plan.platform->name);
  text +=
      "#include \"carina/ethosu_validator.hpp\"\n#include \"carina/kernel_list.hpp\"\n"
      "#include \"firmware/app.hpp\"\n\n"
      "using namespace carina::firmware;\nusing namespace carina::rt;\n\nextern \"C\" {\n";
  if (!plan.programByFile) text += "extern const uint8_t appProgram[];\n";
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    text += fmt::format("extern const uint8_t appInput{}[];\n", i);
  for (size_t i = 0; i < plan.expected.size(); ++i)
    text += fmt::format("extern const uint8_t appExpected{}[];\n", i);
  if (plan.text) text += "extern const uint8_t appTokenizer[];\n";
  text += "}\n\nnamespace {\n\n";

  const auto optional = [&](std::string_view name, std::string_view section, int64_t bytes) -> std::string {
    if (bytes == 0) return "{}";
    text += block(name, section, fmt::format("{}", bytes));
    return fmt::format("MutableBytes({})", name);
  };
  const std::string temporary = optional("temporaryMemory", "arena", plan.temporaryBytes);
  const std::string fast = optional("fastScratch", "fast", plan.fastScratchBytes);
  const std::string programMemory =
      optional("programMemory", "program", plan.programByFile ? plan.programBytes : 0);
  std::string methods;
  for (size_t m = 0; m < plan.methods.size(); ++m) methods += methodText(plan, m, temporary, &text);
  text += fmt::format("const MethodSetup kMethods[] = {{\n{}}};\n", methods);
  if (plan.text) text += textSetup(*plan.text);

  if (!plan.kernels.empty()) {
    text += "constexpr Kernel kKernels[] = {\n";
    for (const std::string& kernel : plan.kernels)
      text += fmt::format("    {{{0}, kernelFunction({0})}},\n", literal(kernel));
    text += "};\n";
  }
  if (!plan.inputs.empty())
    text += "constexpr Bytes kInputs[] = {\n" + arrayNames("appInput", plan.inputs) + "};\n";
  if (!plan.expected.empty())
    text += "constexpr Bytes kExpected[] = {\n" + arrayNames("appExpected", plan.expected) + "};\n";
  if (plan.machine) {
    text +=
        fmt::format("// {}, {}\nconst NpuSetup kNpu = {{\n    {},\n    {},\n    {{{}, {}}},\n    {},\n}};\n",
                    plan.machine->system.name, plan.machine->memory.name, driverText(plan, options), fast,
                    timingText(plan, 0), timingText(plan, 1), options.poll);
  }
  const auto some = [](bool present, std::string value) {
    return present ? std::move(value) : std::string("{}");
  };
  text += "\n}  // namespace\n\nconst App carina::firmware::kApp = {\n";
  const auto field = [&](const std::string& value, std::string_view comment) {
    text += fmt::format("    {},{}{}\n", value, comment.empty() ? "" : "  // ", comment);
  };
  field(std::string(plan.platform->constant), "");
  field(literal(options.programName), "");
  field(literal(plan.target), "");
  field("Span<const MethodSetup>(kMethods)", "methods");
  field(some(!plan.programByFile, fmt::format("Bytes(appProgram, {})", plan.programBytes)), "program");
  field(programMemory, "memory for a program that is read");
  field(some(!plan.kernels.empty(), "KernelTable(kKernels)"), "kernels");
  field(plan.machine ? "&kNpu" : "nullptr", "");
  field(plan.machine ? "openNpu" : "nullptr", "");
  field(fmt::format("{}", plan.samples), "samples");
  field(some(!plan.inputs.empty(), "Span<const Bytes>(kInputs)"), "inputs");
  field(some(!plan.expected.empty(), "Span<const Bytes>(kExpected)"), "expected");
  field(fmt::format("{}f", fmt::format("{:#.9g}", options.tolerance)), "tolerance");
  field(fmt::format("{}", options.printed), "printed elements");
  field(plan.text ? "&kText" : "nullptr", "");
  field(plan.text ? "runLanguage" : plan.semihosted ? "runSemihosted" : "runLinked", "");
  return text + "};\n";
}

std::string blobText(std::string_view section, std::string_view symbol, std::string_view file) {
  return fmt::format(
      ".section .carina.{0},\"a\",%progbits\n.balign 16\n.global {1}\n.type {1}, %object\n{1}:\n"
      ".incbin \"{2}\"\n.size {1}, . - {1}\n\n",
      section, symbol, file);
}

/// What the image is for, as an ELF note of zero-terminated strings that tools can find.
std::string noteText(const Plan& plan, const SourceOptions& options) {
  std::string text =
      ".section .note.carina,\"\",%note\n.balign 4\n.long 7\n.long noteEnd - noteBegin\n.long 1\n"
      ".asciz \"Carina\"\n.balign 4\nnoteBegin:\n";
  const std::string system = plan.machine ? plan.machine->system.name : "";
  const std::string mode = plan.machine ? plan.machine->memory.name : "";
  const std::string memories = plan.machine ? npu::describeMemories(*plan.machine) : "";
  for (std::string_view item :
       {plan.platform->name, std::string_view(options.core), std::string_view(plan.target),
        std::string_view(system), std::string_view(mode), std::string_view(memories)}) {
    text += fmt::format(".asciz {}\n", literal(item));
  }
  return text + "noteEnd:\n.balign 4\n";
}

std::string linkerScript(const Plan& plan) {
  const PlatformInfo& platform = *plan.platform;
  std::string text = fmt::format("/* {}; places from the program. */\nMEMORY\n{{\n", platform.name);
  for (const MemoryRegion& region : platform.regions)
    text += fmt::format("  {} (rwx) : ORIGIN = 0x{:08x}, LENGTH = {}\n", region.name, region.origin,
                        region.bytes);
  text += "}\n";
  for (const auto& [use, region] :
       {std::pair<std::string_view, std::string_view>{"VECTORS", platform.vectors},
        {"CODE", platform.code},
        {"DATA", platform.data},
        {"STACK", platform.stack},
        {"PROGRAM", plan.regionOf("program")},
        {"SAMPLES", plan.regionOf("samples")},
        {"ARENA", plan.regionOf("arena")},
        {"FAST", plan.regionOf("fast scratch")},
        {"POOLS", plan.regionOf("pools")}}) {
    text += fmt::format("REGION_ALIAS(\"{}\", {})\n", use, region);
  }
  return text + fmt::format("linkStackBytes = {};\nINCLUDE sections.ld\n", plan.stackBytes);
}

}  // namespace

TimingAdapterValues timingAdapter(const npu::Machine& machine, size_t port) {
  constexpr uint32_t kPeriod = 4000;
  const npu::MemoryTiming& timing = machine.system.ports[port];
  const double bytesPerCycle = machine.target->architecture().axiBytes * timing.ports * timing.clockScale;
  const auto field = [](double value, double most) {
    return static_cast<uint32_t>(std::clamp(value, 0.0, most));
  };
  return {field(timing.maxReads, 63),
          field(timing.maxWrites, 63),
          0,
          field(timing.readLatency, 4095),
          field(timing.writeLatency, 4095),
          kPeriod - 1,
          1,
          field(std::max(1.0, std::round(bytesPerCycle / 8 * kPeriod)), 65535)};
}

SourceFiles makeSources(const Plan& plan, ByteSpan program, const SourceOptions& options) {
  SourceFiles files;
  std::string data = fmt::format("@ Made by `carina firmware` from {}.\n", literal(options.programName));
  if (!plan.programByFile) {
    data += blobText("program", "appProgram", "program.pte");
    files.emplace_back("program.pte",
                       std::string(reinterpret_cast<const char*>(program.data()), program.size()));
  }
  for (const auto& [prefix, symbol, arrays] :
       {std::tuple<std::string_view, std::string_view, const std::vector<std::string>*>{"input", "appInput",
                                                                                        &plan.inputs},
        {"expected", "appExpected", &plan.expected}}) {
    for (size_t i = 0; i < arrays->size(); ++i) {
      const std::string file = fmt::format("{}{}.bin", prefix, i);
      data += blobText("samples", fmt::format("{}{}", symbol, i), file);
      files.emplace_back(file, (*arrays)[i]);
    }
  }
  if (plan.text) {
    data += blobText("samples", "appTokenizer", "tokenizer.bin");
    files.emplace_back("tokenizer.bin", plan.text->table);
  }
  files.emplace_back("app.cpp", description(plan, options));
  files.emplace_back("app.s", data + noteText(plan, options));
  files.emplace_back("app.ld", linkerScript(plan));
  return files;
}

}  // namespace carina::firmware
