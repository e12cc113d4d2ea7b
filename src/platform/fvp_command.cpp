// SPDX-License-Identifier: Apache-2.0
#include "platform/fvp_command.hpp"

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/file.hpp"
#include "platform/hardware.hpp"
#include "platform/parse_number.hpp"

namespace carina::platform {
namespace {

template <typename Number>
std::optional<Number> decimalOrHex(std::string_view text) {
  const bool hex = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  return hex ? parseNumber<Number>(text.substr(2), 16) : parseNumber<Number>(text);
}

/// More than three hundred years.
constexpr double kMaxSeconds = 1e10;

std::optional<double> secondsOf(std::string_view text) {
  const auto value = parseNumber<double>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

/// Removes quotes that a shell script left around a value.
std::string unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

/// Parameters without effect here: terminals, visualisation, properties of the core, and stack and heap,
/// which the image defines.
bool isIgnored(std::string_view name) {
  constexpr std::string_view kParts[] = {"telnetterminal",
                                         "visualisation",
                                         "vis_hdlcd",
                                         "unbuffered_output",
                                         "semihosting-stack_base",
                                         "semihosting-stack_limit",
                                         "semihosting-heap_limit",
                                         "semihosting-heap_base",
                                         "semihosting-Thumb_SVC",
                                         "cpu0.CFGITCMSZ",
                                         "cpu0.CFGDTCMSZ",
                                         "DISABLE_GATING",
                                         "cpu0.MVE",
                                         "cpu0.FPU"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

/// Parameters of the core with the value that it has: 16 MPU regions in both worlds, 8 SAU regions, three
/// priority bits, no trace, nothing locked, and the standard semihosting codes.
bool isAsItIs(std::string_view name, std::string_view value) {
  constexpr std::pair<std::string_view, uint64_t> kFixed[] = {
      {"MPU_S", 16},
      {"MPU_NS", 16},
      {"SAU", 8},
      {"SECEXT", 1},
      {"DSP", 1},
      {"BIGENDINIT", 0},
      {"IRQLVL", 3},
      {"ITM", 0},
      {"LOCK_S_MPU", 0},
      {"LOCK_NS_MPU", 0},
      {"LOCK_SAU", 0},
      {"SAU_CTRL.ENABLE", 0},
      {"vfp-present", 1},
      {"SAU_CTRL.ALLNS", 0},
      {"semihosting-hlt-enable", 0},
      {"cpi_div", 1},
      {"semihosting-Thumb_HLT", 0x3c},
      {"ase-present", 1},
      {"INITNSVTOR", 0},
  };
  constexpr std::string_view kCore = "cpu0.";
  const size_t at = name.rfind(kCore);
  if (at == std::string_view::npos) return false;
  name.remove_prefix(at + kCore.size());
  const auto fixed = std::find_if(std::begin(kFixed), std::end(kFixed),
                                  [&](const auto& entry) { return entry.first == name; });
  return fixed != std::end(kFixed) && decimalOrHex<uint64_t>(value) == fixed->second;
}

/// The board with the number after "SSE-".
std::string platformOf(std::string_view program) {
  for (const Board& board : allBoards()) {
    const std::string number(board.name.substr(board.name.find('-') + 1));
    if (program.find("SSE-" + number) != std::string_view::npos) return std::string(board.name);
  }
  return "corstone-300";
}

class Parser {
 public:
  Parser(FvpCommand& command, std::string platform) : command_(command), platform_(std::move(platform)) {
    command_.options.semihosting = false;
    command_.options.stopAtEot = false;
    command_.options.exitTag.clear();
    command_.options.timingAdapters = true;
  }

  Status parse(std::span<const std::string> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      const auto value = [&]() -> Result<std::string> {
        if (const size_t equals = argument.find('=');
            argument.rfind("--", 0) == 0 && equals != std::string::npos)
          return argument.substr(equals + 1);
        if (i + 1 == arguments.size()) return fail(Code::BadOption, "a value is missing").at(argument);
        return arguments[++i];
      };
      const std::string name =
          argument.substr(0, argument.rfind("--", 0) == 0 ? argument.find('=') : std::string::npos);
      if (name == "-C" || name == "--parameter") {
        CARINA_TRY(const std::string text, value());
        CARINA_RETURN_IF_ERROR(parameter(text));
      } else if (name == "-f" || name == "--config-file") {
        CARINA_TRY(const std::string text, value());
        CARINA_RETURN_IF_ERROR(parameterFile(text));
      } else if (name == "-Q" || name == "--quantum") {  // the core is never ahead of the devices
        CARINA_TRY(const std::string ignored, value());
      } else if (name == "-h" || name == "--help") {
        command_.asks = FvpCommand::Asks::Help;
        return {};
      } else if (name == "-l" || name == "--list-params") {
        command_.asks = FvpCommand::Asks::Parameters;
        return {};
      } else if (name == "--version") {
        command_.asks = FvpCommand::Asks::Version;
        return {};
      } else if (name == "-a" || name == "--application") {
        CARINA_TRY(const std::string text, value());
        command_.image = withoutCore(text);
      } else if (name == "--data") {
        CARINA_TRY(const std::string text, value());
        CARINA_RETURN_IF_ERROR(data(text));
      } else if (name == "--timelimit") {
        CARINA_TRY(const std::string text, value());
        const auto seconds = secondsOf(text);
        if (!seconds) return fail(Code::BadOption, "'{}' is not a number of seconds", text).at(name);
        command_.options.secondsLimit = *seconds;
      } else if (name == "--simlimit") {
        CARINA_TRY(const std::string text, value());
        const auto seconds = secondsOf(text);
        if (!seconds || *seconds > kMaxSeconds)
          return fail(Code::BadOption, "'{}' is not a number of seconds", text).at(name);
        command_.options.cyclesLimit = static_cast<uint64_t>(*seconds * kCoreHz);
      } else if (name == "--stat") {
        command_.statistics = true;
      } else if (name == "--plugin") {
        CARINA_TRY(const std::string ignored, value());
        command_.unknown.push_back(fmt::format("{} {}", name, ignored));
      } else if (name == "-q" || name == "--quiet") {
        continue;
      } else if (isOwn(name)) {
        CARINA_TRY(const std::string text, value());
        CARINA_RETURN_IF_ERROR(ownOption(name, text));
      } else if (argument.rfind('-', 0) == 0) {
        command_.unknown.push_back(argument);
      } else {
        command_.image = argument;
      }
    }
    if (command_.image.empty())
      return fail(Code::BadOption, "no image was given").withRemedy("pass it with -a APP.elf");
    return checkScripts();
  }

  int macs() const { return macs_; }
  const std::string& platform() const { return platform_; }

 private:
  /// Python scripts that virtual streams would call on the FVPs.
  Status checkScripts() const {
    if (scripts_.empty() || !command_.media.streams.empty() || !command_.media.streamOutputs.empty())
      return {};
    return fail(Code::BadOption, "the Python scripts of virtual streams in '{}' are not supported", scripts_)
        .at("v_path")
        .withRemedy(
            "pass the input of a stream with -C carina.vsi0=FILE (.wav, an image or any other data), its "
            "output with -C carina.vsi1_out=FILE; or leave v_path out");
  }

  /// Options of `carina run` that the FVPs do not have, or have under other names.
  static bool isOwn(std::string_view name) {
    constexpr std::string_view kNames[] = {"--coverage",  "--gdb",   "--pmu-trace",
                                           "--trace-cpu", "--trace", "--wait-states"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
  }
  Status ownOption(std::string_view name, const std::string& value) {
    if (name == "--coverage") {
      command_.coverage = value;
      command_.options.coverage = true;
    } else if (name == "--gdb") {
      command_.gdbPort = decimalOrHex<uint16_t>(value);
      if (!command_.gdbPort)
        return fail(Code::BadOption, "'{}' is not a port", value)
            .at(std::string(name))
            .withRemedy("choose a port from 0 to 65535");
    } else if (name == "--pmu-trace") {
      pmuTrace(value);
    } else if (name == "--trace-cpu") {
      command_.cpuTrace = value;
    } else if (name == "--trace") {
      command_.trace = value;
    } else {
      auto timing = parseMemoryTiming(value, board());
      if (!timing) return std::move(timing.error()).at(std::string(name));
      command_.options.memoryTiming = std::move(*timing);
    }
    return {};
  }
  void pmuTrace(const std::string& file) {
    command_.pmuTrace = file;
    command_.options.pmuInterval = PmuTrace::kUsualInterval;
  }

  /// Carina's own parameters: files that replace display, touch screen, sound and streams.
  bool mediaParameter(std::string_view name, const std::string& value) {
    constexpr std::string_view kBegin = "carina.", kStream = "vsi", kOut = "_out";
    if (name.substr(0, kBegin.size()) != kBegin) return false;
    name.remove_prefix(kBegin.size());
    MediaFiles& media = command_.media;
    for (const auto& [known, file] : {std::pair("lcd", &media.frames),
                                      {"events", &media.events},
                                      {"audio_in", &media.soundIn},
                                      {"audio_out", &media.soundOut}}) {
      if (name != known) continue;
      *file = value;
      return true;
    }
    if (name.size() < kStream.size() + 1 || name.substr(0, kStream.size()) != kStream) return false;
    const std::string_view behind = name.substr(kStream.size() + 1);
    if (!behind.empty() && behind != kOut) return false;
    if (value.empty()) return true;
    (behind.empty() ? media.streams : media.streamOutputs)
        .push_back(fmt::format("{}={}", name[kStream.size()], value));
    return true;
  }

  /// Removes the name of a core, as in "cpu0=FILE".
  static std::string withoutCore(const std::string& text) {
    const size_t equals = text.find('=');
    return equals == std::string::npos ? text : text.substr(equals + 1);
  }

  Status data(const std::string& text) {
    const std::string entry = withoutCore(text);
    const size_t at = entry.rfind('@');
    const auto address =
        at == std::string::npos ? std::nullopt : decimalOrHex<uint32_t>(entry.substr(at + 1));
    if (!address)
      return fail(Code::BadOption, "'{}' has no load address", text)
          .at("--data")
          .withRemedy("write FILE@0xADDRESS");
    command_.options.data.push_back({entry.substr(0, at), *address});
    return {};
  }

  /// Options of the FVPs' NPU model, passed in one parameter.
  void npuArguments(const std::string& name, const std::string& value) {
    std::istringstream words(value);
    bool isUnknown = false;  // the preceding option is unknown, and the word may be its value
    for (std::string word; words >> word;) {
      if (word == "--pmu-trace" && words >> word) {
        pmuTrace(word);
        isUnknown = false;
      } else if (word == "--fast" || word == "-F") {
        command_.options.timingAdapters = false;
        isUnknown = false;
      } else if (isUnknown && word.front() != '-') {
        command_.unknown.back() += " " + word;
      } else {
        command_.unknown.push_back(fmt::format("{} {}", name, word));
        isUnknown = true;
      }
    }
  }

  /// Lines NAME=VALUE; # starts a comment.
  Status parameterFile(const std::string& file) {
    CARINA_TRY(const auto mapped, MappedFile::open(file));
    const ByteSpan bytes = mapped->bytes();
    std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      line.resize(std::min(line.find('#'), line.size()));
      const size_t begin = line.find_first_not_of(" \t\r");
      if (begin == std::string::npos) continue;
      line = line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
      if (Status status = parameter(line, fmt::format("line {}", number)); !status.ok())
        return std::move(status).error().inFile(file);
    }
    return {};
  }

  /// n of "...uartn.PARAMETER".
  static std::optional<uint32_t> uartOf(std::string_view name) {
    constexpr std::string_view kName = "uart";
    const size_t dot = name.rfind('.'), at = dot == std::string_view::npos ? dot : name.rfind(kName, dot);
    if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.') || dot != at + kName.size() + 1)
      return std::nullopt;
    const uint32_t number = static_cast<uint32_t>(name[dot - 1]) - '0';
    return number < kUarts ? std::optional<uint32_t>(number) : std::nullopt;
  }

  Status parameter(const std::string& text, const std::string& where = "-C") {
    const size_t equals = text.find('=');
    if (equals == std::string::npos)
      return fail(Code::BadOption, "'{}' is not of the form name=value", text).at(where);
    const std::string name = text.substr(0, equals),
                      value = unquoted(std::string_view(text).substr(equals + 1));
    Options& options = command_.options;
    // Boards use different paths for the same part: the end of the name identifies it.
    const auto is = [&](std::string_view end) {
      return name.size() >= end.size() && std::string_view(name).substr(name.size() - end.size()) == end;
    };
    const bool on = value == "1" || value == "true";
    const bool asItIs =
        isAsItIs(name, value) || (is("cpu0.CFGPACBTI") && on && board().pipeline == cpu_m::Pipeline::M85);
    if (is("ethosu.num_macs")) {
      macs_ = value.empty() ? 0 : decimalOrHex<int>(value).value_or(-1);
      if (macs_ < 0 || (macs_ == 0 && !value.empty()))
        return fail(Code::BadOption, "'{}' is not a number of MACs", value).at(name);
    } else if (is("ethosu.extra_args")) {
      npuArguments(name, value);
    } else if (const auto uart = uartOf(name); uart && is("out_file")) {
      // Empty is the default of the FVPs: a terminal, here standard output, for UART 0.
      command_.uartFiles[*uart] = value == "-" ? "" : value;
      if (value.empty() && *uart != 0) command_.uartFiles[*uart].reset();
    } else if (is("uart0.in_file")) {
      command_.uartInput = value;
    } else if (is("uart0.shutdown_on_eot")) {
      options.stopAtEot = on;
    } else if (is("uart0.shutdown_tag")) {
      options.exitTag = value;
    } else if (is("DISABLE_GATING")) {
      options.gating = !on;
    } else if (is("cpu0.semihosting-enable")) {
      options.semihosting = on;
    } else if (is("cpu0.semihosting-cwd")) {
      options.semihostingFolder = value;
    } else if (is("cpu0.semihosting-cmd_line")) {
      options.commandLine = value;
    } else if (is("cpu0.INITSVTOR") || is("INITSVTOR_RST")) {
      options.vectorTable = decimalOrHex<uint32_t>(value);
      if (!options.vectorTable && !value.empty())
        return fail(Code::BadOption, "'{}' is not an address", value).at(name);
    } else if (is("v_path")) {
      scripts_ = value;
    } else if (!mediaParameter(name, value) && !asItIs && !isIgnored(name)) {
      command_.unknown.push_back(name);
    }
    return {};
  }

  FvpCommand& command_;
  const Board& board() const { return **findBoard(platform_); }

  std::string platform_;
  int macs_ = 0;
  std::string scripts_;
};

}  // namespace

std::string fvpHelp(std::string_view program) {
  return fmt::format(
      "{} [OPTIONS] [IMAGE]\n"
      "  -a, --application IMAGE       the firmware\n"
      "  -C, --parameter NAME=VALUE    a parameter; --list-params names them\n"
      "  -f, --config-file FILE        parameters, one per line; # starts a comment\n"
      "      --data FILE@ADDRESS       load a file unchanged at an address\n"
      "      --timelimit SECONDS       stop after this much wall-clock time\n"
      "      --simlimit SECONDS        stop after this much simulated time\n"
      "      --stat                    print cycles and instructions at the end\n"
      "  -q, --quiet, -Q, --quantum N  no effect\n"
      "  -l, --list-params, -h, --help, --version\n"
      "Options of carina run:\n"
      "      --trace FILE              device accesses, exceptions, semihosting calls\n"
      "      --trace-cpu FILE          every instruction with the registers and memory that it changed\n"
      "      --pmu-trace FILE          counters over time, as with ethosu.extra_args=--pmu-trace\n"
      "      --coverage FILE           executed source lines, for lcov's tools\n"
      "      --wait-states LIST        cycles that the core waits for memories: sram=1,ddr=30,cache=32\n"
      "      --gdb PORT                wait for GDB\n",
      program);
}

std::string fvpParameters(std::string_view program) {
  const std::string platform = platformOf(program);
  const Board& board = **findBoard(platform);
  const bool mps4 = board.hdlcd != 0;
  const std::string boardName = mps4 ? "mps4_board." : "mps3_board.",
                    core = mps4 ? "mps4_board.subsystem." : "";
  struct Parameter {
    std::string name, usual, meaning;
  };
  std::vector<Parameter> list = {
      {core + "ethosu.num_macs", "", "MACs per cycle of the NPU; empty: as the image was built"},
      {core + "ethosu.extra_args", "", "--fast, --pmu-trace FILE"},
      {core + "cpu0.semihosting-enable", "0", "semihosting calls are answered"},
      {core + "cpu0.semihosting-cwd", "", "the folder with their files; empty: the current one"},
      {core + "cpu0.semihosting-cmd_line", "", "the firmware's command line"},
      {core + "cpu0.INITSVTOR", "", "address of the vector table; empty: found in the image"},
      {core + "cpu0.MPU_S", "16", "regions of the Secure MPU (fixed)"},
      {core + "cpu0.MPU_NS", "16", "regions of the Non-secure MPU (fixed)"},
      {boardName + "DISABLE_GATING", "0", "protection controllers allow everything"},
      {boardName + "uart0.in_file", "", "what UART 0 receives; -: standard input"},
      {boardName + "uart0.shutdown_on_eot", "0", "the byte 4 on UART 0 ends the run"},
      {boardName + "uart0.shutdown_tag", "", "text on UART 0 that ends the run"},
  };
  for (uint32_t uart = 0; uart < kUarts; ++uart)
    list.push_back({fmt::format("{}uart{}.out_file", boardName, uart), uart == 0 ? "-" : "",
                    "what this UART sends; -: standard output, empty: nowhere"});
  for (const auto& [name, meaning] :
       {std::pair("carina.lcd", "folder for what the display shows"),
        {"carina.events", "touches, pins, buttons and switches"},
        {"carina.audio_in", "what the audio interface receives (.wav)"},
        {"carina.audio_out", "what the audio interface sends (.wav)"},
        {"carina.vsi0", "what virtual stream 0 delivers, [DRIVER:]FILE; up to vsi7"},
        {"carina.vsi0_out", "what virtual stream 0 receives, [DRIVER:]FILE; up to vsi7_out"}})
    list.push_back({name, "", meaning});
  std::string text;
  for (const Parameter& parameter : list)
    text += fmt::format("{}={} # {}\n", parameter.name, parameter.usual, parameter.meaning);
  return text;
}

Result<FvpCommand> parseFvpCommand(std::string_view program, std::span<const std::string> arguments) {
  FvpCommand command;
  Parser parser(command, platformOf(program));
  CARINA_RETURN_IF_ERROR(parser.parse(arguments));
  if (command.asks != FvpCommand::Asks::Run) return command;
  // Like the FVPs: files of the current folder.
  if (command.options.semihosting && command.options.semihostingFolder.empty())
    command.options.semihostingFolder = ".";
  HardwareChoice choice;
  choice.platform = parser.platform();
  choice.macs = parser.macs();
  if (program.find("U65") != std::string_view::npos)
    choice.target = fmt::format("ethos-u65-{}", choice.macs == 0 ? 256 : choice.macs);
  CARINA_TRY(const Hardware hardware, chooseHardware(choice, command.image));
  command.options.board = hardware.board;
  command.options.machine = hardware.machine;
  return command;
}

}  // namespace carina::platform
