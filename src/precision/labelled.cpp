// SPDX-License-Identifier: Apache-2.0
#include "precision/labelled.hpp"

#include <algorithm>

#include "aten/executor.hpp"
#include "base/parallel.hpp"
#include "evaluate/data_set.hpp"
#include "evaluate/metrics.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::precision {
namespace {

/// All samples are kept in memory, because every candidate is judged by them.
constexpr int64_t kMostBytes = int64_t{1} << 30;

}  // namespace

Result<Labelled> Labelled::open(const std::filesystem::path& data, const ir::Graph& network) {
  const std::vector<pipeline::Port> ports = pipeline::inputPorts(network);
  CARINA_TRY(const evaluate::DataSet set, evaluate::DataSet::open(data, ports, {}));
  const ir::Type& output = network.outputs().front()->type;
  Labelled result;
  int64_t bytes = 0;
  for (size_t i = 0; i < set.size(); ++i) {
    CARINA_TRY(evaluate::DataSample sample, set.sample(i));
    if (!sample.label) return fail(Code::InputMismatch, "has no label").inFile(data.string()).at(sample.name);
    auto task = evaluate::taskOf(&*sample.label, output.shape);
    if (!task) return std::move(task).error().inFile(data.string());
    if (*task != evaluate::Task::Classify) {
      return fail(Code::InputMismatch, "labels for '{}' have no top-1", evaluate::taskName(*task))
          .inFile(data.string())
          .withRemedy("give one class per sample, or set a goal in decibels with --min-sqnr");
    }
    for (const Tensor& input : sample.inputs) bytes += input.numBytes();
    if (bytes > kMostBytes) {
      return fail(Code::TooLarge, "holds more than {} MiB of inputs", kMostBytes >> 20)
          .inFile(data.string())
          .withRemedy("give fewer samples: 'carina evaluate' can measure the result on all of them");
    }
    result.samples_.push_back(std::move(sample.inputs));
    result.labels_.push_back(std::move(*sample.label));
  }
  return result;
}

Result<double> Labelled::top1(const ir::Graph& network) const {
  CARINA_TRY(const aten::Executor executor, aten::Executor::create(network));
  std::vector<Status> states(samples_.size());
  std::vector<char> right(samples_.size(), 0);
  parallelFor(samples_.size(), [&](size_t i) {
    const auto judged = [&]() -> Result<bool> {
      CARINA_TRY(const std::vector<Tensor> outputs, executor.run(samples_[i]));
      CARINA_TRY(const evaluate::EngineRecord record,
                 evaluate::judge(evaluate::Task::Classify, outputs.front(), &labels_[i], nullptr, 0));
      return record.counts[1] > 0;
    }();
    if (judged)
      right[i] = *judged ? 1 : 0;
    else
      states[i] = Error(judged.error());
  });
  for (Status& state : states) CARINA_RETURN_IF_ERROR(std::move(state));
  const auto count = std::count(right.begin(), right.end(), 1);
  return 100.0 * static_cast<double>(count) / static_cast<double>(std::max<size_t>(samples_.size(), 1));
}

}  // namespace carina::precision
