// SPDX-License-Identifier: Apache-2.0
#include "evaluate/ranks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#ifdef CARINA_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace carina::evaluate {
namespace {

/// How many processes a launcher says that it started; 0: none says so.
long startedBy(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

/// Several processes that do not know of each other would all do the whole, over each other's files.
Error notTogether(long processes, std::string_view why) {
  return fail(Code::BadOption, "{} processes were started together, and {}", processes, why)
      .withRemedy(
          "install MPI (Debian: libopenmpi-dev) and build carina with it, or give each a --shard and merge "
          "them");
}

}  // namespace

#ifdef CARINA_MPI

Result<Ranks> Ranks::join() {
  Ranks ranks;
  const long processes = std::max(startedBy("OMPI_COMM_WORLD_SIZE"), startedBy("PMI_SIZE"));
  const bool slurm = std::getenv("PMIX_NAMESPACE") != nullptr;
  // Starting MPI takes a tenth of a second: alone it is not needed.
  if (processes < 2 && !slurm) return ranks;
  int level = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
    return notTogether(processes, "MPI does not start");
  ranks.joined_ = true;
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (processes > 0 && size != processes)
    return notTogether(processes, "their mpirun is of another MPI than this carina is built with");
  ranks.rank_ = static_cast<size_t>(rank);
  ranks.size_ = static_cast<size_t>(size);
  return ranks;
}

Ranks::~Ranks() {
  if (joined_) MPI_Finalize();
}

int Ranks::largest(int mine) const {
  int result = mine;
  if (joined_) MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return result;
}

std::vector<std::string> Ranks::gather(const std::string& mine) const {
  // A message has at most 2^31 bytes.
  constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;
  const auto inPieces = [&](uint64_t bytes, const auto& transfer) {
    for (uint64_t at = 0; at < bytes; at += kMostAtOnce)
      transfer(at, static_cast<int>(std::min(kMostAtOnce, bytes - at)));
  };
  if (!first()) {
    const uint64_t bytes = mine.size();
    MPI_Send(&bytes, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
    inPieces(bytes, [&](uint64_t at, int count) {
      MPI_Send(mine.data() + at, count, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    });
    return {};
  }
  std::vector<std::string> texts{mine};
  for (size_t from = 1; from < size_; ++from) {
    const int source = static_cast<int>(from);
    uint64_t bytes = 0;
    MPI_Recv(&bytes, 1, MPI_UINT64_T, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::string& text = texts.emplace_back(bytes, '\0');
    inPieces(bytes, [&](uint64_t at, int count) {
      MPI_Recv(text.data() + at, count, MPI_CHAR, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
  }
  return texts;
}

#else

Result<Ranks> Ranks::join() {
  const long processes = std::max(startedBy("OMPI_COMM_WORLD_SIZE"), startedBy("PMI_SIZE"));
  if (processes > 1) return notTogether(processes, "this carina was built without MPI");
  return Ranks();
}

Ranks::~Ranks() = default;

int Ranks::largest(int mine) const {
  return mine;
}

std::vector<std::string> Ranks::gather(const std::string& mine) const {
  return {mine};
}

#endif

Ranks::Ranks(Ranks&& other) noexcept
    : rank_(other.rank_), size_(other.size_), joined_(std::exchange(other.joined_, false)) {}

bool Ranks::any(bool mine) const {
  return largest(mine ? 1 : 0) != 0;
}

}  // namespace carina::evaluate
