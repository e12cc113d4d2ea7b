// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/output_path.hpp"

namespace carina::app {
namespace {

DiagnosticsFormat diagnosticsFormat = DiagnosticsFormat::Text;

}  // namespace

void setDiagnosticsFormat(DiagnosticsFormat format) {
  diagnosticsFormat = format;
}

std::string diagnosticText(std::string_view severity, const Diagnostic& diagnostic) {
  const std::string id = codeId(diagnostic.code);
  if (diagnosticsFormat == DiagnosticsFormat::Text) {
    return fmt::format("carina: {}{}: {}\n", severity, id.empty() ? "" : fmt::format("[{}]", id),
                       diagnostic.str());
  }
  const nlohmann::ordered_json line{{"severity", severity},          {"code", id},
                                    {"message", diagnostic.message}, {"file", diagnostic.file},
                                    {"place", diagnostic.place},     {"remedy", diagnostic.remedy}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void reserveStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free is this one. What is open the wrong way refuses like what is closed.
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) std::abort();
  }
}

int closeStandardOutput(int status) {
  const Status flushed = flush(stdout, "standard output");
  return flushed.ok() ? status : report(flushed.error());
}

int report(const Error& error) {
  std::fflush(stdout);  // in order, where both go to one place
  for (const Diagnostic& diagnostic : error.diagnostics())
    fmt::print(stderr, "{}", diagnosticText("error", diagnostic));
  return 1;
}

int report(const Error& error, const std::filesystem::path& input) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.file.empty() && !diagnostic.place.starts_with("--")) diagnostic.file = input.string();
  }
  return report(Error(std::move(diagnostics)));
}

void warn(std::span<const Diagnostic> warnings) {
  std::fflush(stdout);
  for (const Diagnostic& warning : warnings) fmt::print(stderr, "{}", diagnosticText("warning", warning));
}

Status checkOutputs(std::initializer_list<std::filesystem::path> outputs) {
  for (const std::filesystem::path& output : outputs) {
    if (!output.empty()) CARINA_RETURN_IF_ERROR(checkOutputPath(output));
  }
  return {};
}

std::function<void(size_t, size_t)> progressBar(std::string label) {
  if (isatty(STDERR_FILENO) == 0) return [](size_t, size_t) {};
  return [label = std::move(label)](size_t done, size_t total) {
    constexpr size_t kWidth = 32;
    if (total < 2) return;
    const size_t filled = done * kWidth / total;
    fmt::print(stderr, "\r{} [{:=<{}}{: <{}}] {}/{}", label, "", filled, "", kWidth - filled, done, total);
    if (done == total) fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  };
}

}  // namespace carina::app
