// SPDX-License-Identifier: Apache-2.0
// random_networks [-v] [FIRST [COUNT]]: runs networks with the seeds FIRST, FIRST + 1, ... through compiler
// and NPU model (networks/oracle.hpp). Prints each defect with its seed; the exit status is 1 if there is
// one. -v: prints the outcome of each network.
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "ir/printer.hpp"
#include "networks/generator.hpp"
#include "networks/oracle.hpp"

namespace {

constexpr rlim_t kSecondsEach = 60;  // of processor time: networks that take longer count as hangs

char current[64] = "";  // "seed N", for the handler

/// Prints which network it was, then lets the signal end the process.
void nameSeed(int signal) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, current, std::strlen(current));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// Allows the process kSecondsEach more seconds of processor time.
void allowMoreTime() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  rlimit limit{};
  ::getrlimit(RLIMIT_CPU, &limit);
  limit.rlim_cur = static_cast<rlim_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + kSecondsEach;
  ::setrlimit(RLIMIT_CPU, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace carina;
  const bool verbose = argc > 1 && std::strcmp(argv[1], "-v") == 0;
  const int first = verbose ? 2 : 1;
  const uint64_t seed = argc > first ? std::strtoull(argv[first], nullptr, 10) : 1;
  const uint64_t count = argc > first + 1 ? std::strtoull(argv[first + 1], nullptr, 10) : 100;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGXCPU}) std::signal(signal, nameSeed);
  uint64_t served = 0, defects = 0;
  for (uint64_t s = seed; s < seed + count; ++s) {
    std::snprintf(current, sizeof current, "seed %llu\n", static_cast<unsigned long long>(s));
    allowMoreTime();
    fuzz::Choices choices(s);
    ir::Graph network = fuzz::makeNetwork(choices);
    const std::string text = ir::print(network);
    if (verbose) {
      std::printf("seed %llu\n%s", static_cast<unsigned long long>(s), text.c_str());
      std::fflush(stdout);
    }
    const std::clock_t begin = std::clock();
    const fuzz::Verdict verdict = fuzz::tryNetwork(std::move(network), choices);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    served += verdict.served ? 1 : 0;
    if (verbose) {
      std::printf("%s: %s, %.2f s\n", verdict.how.c_str(),
                  verdict.served ? "served" : verdict.refusal.c_str(), seconds);
    }
    if (verdict.defect.empty()) continue;
    ++defects;
    std::printf("DEFECT seed %llu, %s: %s\n%s\n", static_cast<unsigned long long>(s), verdict.how.c_str(),
                verdict.defect.c_str(), verbose ? "" : text.c_str());
    std::fflush(stdout);
  }
  std::printf("%llu networks, %llu served, %llu defects\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(served), static_cast<unsigned long long>(defects));
  return defects == 0 ? 0 : 1;
}
