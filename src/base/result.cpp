// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <cstdio>
#include <cstdlib>

#include "base/failed_checks.hpp"

namespace carina {

namespace {
thread_local int thrownChecks = 0;  // number of FailedChecks of this thread
}  // namespace

FailedChecks::FailedChecks() {
  ++thrownChecks;
}
FailedChecks::~FailedChecks() {
  --thrownChecks;
}

void checkFailed(const char* expression, const char* file, int line, const char* why) {
  if (thrownChecks > 0)
    throw CheckFailure(fmt::format("internal error: {} ({}) at {}:{}", why, expression, file, line));
  std::fprintf(stderr,
               "carina: internal error: %s (%s) at %s:%d\n"
               "  This is a bug in Carina, not in your input; please report it with the command line.\n",
               why, expression, file, line);
  std::abort();
}

std::string Diagnostic::str() const {
  std::string text;
  for (const std::string* part : {&file, &place}) {
    if (!part->empty()) text += *part + ": ";
  }
  text += message;
  if (!remedy.empty()) text += "\n  " + remedy;
  return text;
}

Error::Error(Diagnostic diagnostic) : diagnostics_(new std::vector<Diagnostic>) {
  diagnostics_->push_back(std::move(diagnostic));
}

Error::Error(std::vector<Diagnostic> diagnostics)
    : diagnostics_(new std::vector<Diagnostic>(std::move(diagnostics))) {
  CARINA_CHECK(!diagnostics_->empty(), "an Error carries at least one diagnostic");
}

Error::Error(const Error& other)
    : diagnostics_(other.diagnostics_ ? new std::vector<Diagnostic>(*other.diagnostics_) : nullptr) {}

Error& Error::operator=(const Error& other) {
  return *this = Error(other);
}

void Error::Deleter::operator()(std::vector<Diagnostic>* diagnostics) const noexcept {
  delete diagnostics;
}

Error failFormatted(Code code, fmt::string_view format, fmt::format_args arguments) {
  return Error(Diagnostic{fmt::vformat(format, arguments), "", "", "", code});
}

std::string Error::str() const {
  std::string text;
  for (const Diagnostic& diagnostic : *diagnostics_) {
    if (!text.empty()) text += '\n';
    text += diagnostic.str();
  }
  return text;
}

Error&& Error::inFile(std::string_view file) && {
  for (Diagnostic& diagnostic : *diagnostics_) {
    if (diagnostic.file.empty()) diagnostic.file = file;
  }
  return std::move(*this);
}

Error&& Error::at(std::string_view place) && {
  for (Diagnostic& diagnostic : *diagnostics_) {
    if (diagnostic.place.empty()) diagnostic.place = place;
  }
  return std::move(*this);
}

Error&& Error::withRemedy(std::string_view remedy) && {
  for (Diagnostic& diagnostic : *diagnostics_) {
    if (diagnostic.remedy.empty()) diagnostic.remedy = remedy;
  }
  return std::move(*this);
}

void Error::append(Error other) {
  diagnostics_->insert(diagnostics_->end(), std::make_move_iterator(other.diagnostics_->begin()),
                       std::make_move_iterator(other.diagnostics_->end()));
}

}  // namespace carina
