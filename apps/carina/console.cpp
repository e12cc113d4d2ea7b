// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/output_path.hpp"
#include "progress_line.hpp"

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
    // The lowest free descriptor is this one. A stream opened in the wrong direction fails like a closed one.
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) std::abort();
  }
}

int closeStandardOutput(int status) {
  const Status flushed = flush(stdout, "standard output");
  return flushed.ok() ? status : report(flushed.error());
}

int report(const Error& error) {
  std::fflush(stdout);  // preserves the order if both go to the same place
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

int exitStatus(const Result<int>& outcome, const std::filesystem::path& input) {
  return outcome.ok() ? *outcome : report(outcome.error(), input);
}
int exitStatus(Status outcome, const std::filesystem::path& input) {
  return outcome.ok() ? 0 : report(outcome.error(), input);
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

std::string progressLine(std::string_view label, size_t done, size_t total, size_t fresh, double seconds) {
  constexpr size_t kWidth = 32;
  const size_t filled = total > 0 ? std::min(done, total) * kWidth / total : kWidth;
  std::string line =
      fmt::format("{} [{:=<{}}{: <{}}] {}/{}", label, "", filled, "", kWidth - filled, done, total);
  if (fresh == 0 || done >= total || seconds < 1) return line;
  const double rate = static_cast<double>(fresh) / seconds;
  const auto left = static_cast<int64_t>(std::ceil(static_cast<double>(total - done) / rate));
  line += rate >= 1 ? fmt::format(", {:.1f}/s", rate) : fmt::format(", {:.1f} s each", 1 / rate);
  return line + (left < 60 ? fmt::format(", {} s left", left)
                           : fmt::format(", {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60));
}

std::function<void(size_t, size_t)> progressBar(std::string label) {
  if (isatty(STDERR_FILENO) == 0) return [](size_t, size_t) {};
  const auto began = std::chrono::steady_clock::now();
  return
      [label = std::move(label), began, before = std::optional<size_t>()](size_t done, size_t total) mutable {
        if (total < 2) return;
        if (!before)
          before = done > 1 ? done - 1 : 0;  // items of an earlier run must not affect the rate of this one
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
        fmt::print(stderr, "\r{}\033[K", progressLine(label, done, total, done - *before, passed.count()));
        if (done == total) fmt::print(stderr, "\r\033[K");
        std::fflush(stderr);
      };
}

}  // namespace carina::app
