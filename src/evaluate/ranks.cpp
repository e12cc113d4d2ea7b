// SPDX-License-Identifier: Apache-2.0
#include "evaluate/ranks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#ifdef CARINA_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#endif

namespace carina::evaluate {
namespace {

/// The number of processes that a launcher says it started; 0: none.
long startedBy(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

/// Independent processes would each do the whole, overwriting each other's files.
Error notTogether(long processes, std::string_view why) {
  return fail(Code::BadOption, "{} processes were started together, but {}", processes, why)
      .withRemedy(
          "install MPI (Debian: libopenmpi-dev) and build carina with it, or give each a --shard and merge "
          "them");
}

}  // namespace

#ifdef CARINA_MPI

namespace {

/// MPI's functions and constants, from its library, which is loaded only if mpirun started this process.
class Mpi {
 public:
  static const Mpi& get() {
    static const Mpi mpi;
    return mpi;
  }
  bool loaded() const {
    return library_ != nullptr && init && rank && size && reduce && send && receive && finalize;
  }

 private:
  // Never closed, and global: it loads plugins that look up its symbols.
  void* library_ = dlopen(CARINA_MPI, RTLD_NOW | RTLD_GLOBAL);

  template <typename Function>
  Function* function(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library_, name));
  }
#ifdef OPEN_MPI
  /// Open MPI's constants are addresses of its variables.
  template <typename Handle>
  Handle constant(const char* name) const {
    return library_ == nullptr ? Handle() : reinterpret_cast<Handle>(dlsym(library_, name));
  }
#define CARINA_MPI_CONSTANT(type, name, variable) type name = constant<type>(variable)
#else
#define CARINA_MPI_CONSTANT(type, name, variable) type name = name##Constant
  static constexpr auto worldConstant = MPI_COMM_WORLD;
  static constexpr auto integersConstant = MPI_INT, sizesConstant = MPI_UINT64_T, bytesConstant = MPI_CHAR;
  static constexpr auto largestConstant = MPI_MAX;
#endif

 public:
  decltype(MPI_Init_thread)* init = function<decltype(MPI_Init_thread)>("MPI_Init_thread");
  decltype(MPI_Comm_rank)* rank = function<decltype(MPI_Comm_rank)>("MPI_Comm_rank");
  decltype(MPI_Comm_size)* size = function<decltype(MPI_Comm_size)>("MPI_Comm_size");
  decltype(MPI_Allreduce)* reduce = function<decltype(MPI_Allreduce)>("MPI_Allreduce");
  decltype(MPI_Send)* send = function<decltype(MPI_Send)>("MPI_Send");
  decltype(MPI_Recv)* receive = function<decltype(MPI_Recv)>("MPI_Recv");
  decltype(MPI_Finalize)* finalize = function<decltype(MPI_Finalize)>("MPI_Finalize");
  CARINA_MPI_CONSTANT(MPI_Comm, world, "ompi_mpi_comm_world");
  CARINA_MPI_CONSTANT(MPI_Datatype, integers, "ompi_mpi_int");
  CARINA_MPI_CONSTANT(MPI_Datatype, sizes, "ompi_mpi_uint64_t");
  CARINA_MPI_CONSTANT(MPI_Datatype, bytes, "ompi_mpi_char");
  CARINA_MPI_CONSTANT(MPI_Op, largest, "ompi_mpi_op_max");
};

}  // namespace

Result<Ranks> Ranks::join() {
  Ranks ranks;
  const long processes = std::max(startedBy("OMPI_COMM_WORLD_SIZE"), startedBy("PMI_SIZE"));
  const bool slurm = std::getenv("PMIX_NAMESPACE") != nullptr;
  // Starting MPI takes a tenth of a second, and a single process does not need it.
  if (processes < 2 && !slurm) return ranks;
  const Mpi& mpi = Mpi::get();
  if (!mpi.loaded()) return notTogether(processes, "MPI's library " CARINA_MPI " is missing");
  int level = 0;
  if (mpi.init(nullptr, nullptr, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
    return notTogether(processes, "MPI does not start");
  ranks.joined_ = true;
  int rank = 0, size = 1;
  mpi.rank(mpi.world, &rank);
  mpi.size(mpi.world, &size);
  if (processes > 0 && size != processes)
    return notTogether(processes,
                       "their mpirun belongs to another MPI than the one this carina was built with");
  ranks.rank_ = static_cast<size_t>(rank);
  ranks.size_ = static_cast<size_t>(size);
  return ranks;
}

Ranks::~Ranks() {
  if (joined_) Mpi::get().finalize();
}

int Ranks::largest(int mine) const {
  if (!joined_) return mine;
  int result = mine;
  const Mpi& mpi = Mpi::get();
  mpi.reduce(&mine, &result, 1, mpi.integers, mpi.largest, mpi.world);
  return result;
}

std::vector<std::string> Ranks::gather(const std::string& mine) const {
  if (!joined_) return {mine};
  const Mpi& mpi = Mpi::get();
  // A message has at most 2^31 bytes.
  constexpr uint64_t kMaxAtOnce = uint64_t{1} << 30;
  const auto inPieces = [&](uint64_t bytes, const auto& transfer) {
    for (uint64_t at = 0; at < bytes; at += kMaxAtOnce)
      transfer(at, static_cast<int>(std::min(kMaxAtOnce, bytes - at)));
  };
  if (!first()) {
    const uint64_t bytes = mine.size();
    mpi.send(&bytes, 1, mpi.sizes, 0, 0, mpi.world);
    inPieces(bytes,
             [&](uint64_t at, int count) { mpi.send(mine.data() + at, count, mpi.bytes, 0, 0, mpi.world); });
    return {};
  }
  std::vector<std::string> texts{mine};
  for (size_t from = 1; from < size_; ++from) {
    const int source = static_cast<int>(from);
    uint64_t bytes = 0;
    mpi.receive(&bytes, 1, mpi.sizes, source, 0, mpi.world, MPI_STATUS_IGNORE);
    std::string& text = texts.emplace_back(bytes, '\0');
    inPieces(bytes, [&](uint64_t at, int count) {
      mpi.receive(text.data() + at, count, mpi.bytes, source, 0, mpi.world, MPI_STATUS_IGNORE);
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
