// SPDX-License-Identifier: Apache-2.0
// Contents of EngineRecord::counts:
//   Classify: 1, top-1, top-5
//   Segment: pixels, correct pixels, then per class: both, label, prediction
//   Tokens: positions, correct positions
//   Boxes: matched, of the label, found
#include "evaluate/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace carina::evaluate {
namespace {

/// Positions with this label are ignored, as in PyTorch's losses.
constexpr int64_t kIgnored = -100;
/// Also ignored, in segmentation: data sets label borders with it.
constexpr int64_t kVoid = 255;

Shape withoutOnes(const Shape& shape) {
  Shape result;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(result),
               [](int64_t size) { return size != 1; });
  return result;
}

/// Where the classes of an output are: element (position, class) is at position * positionStride + class *
/// classStride.
struct Scores {
  int64_t positions = 1, classes = 1, positionStride = 1, classStride = 1;
};

/// [1, C, H, W] or [1, H, W, C] for a label of shape [H, W].
std::optional<Scores> pixelScores(const Shape& output, const Shape& label) {
  if (output.size() != 4 || output[0] != 1 || label.size() != 2) return std::nullopt;
  const int64_t pixels = label[0] * label[1];
  if (output[2] == label[0] && output[3] == label[1]) return Scores{pixels, output[1], 1, pixels};
  if (output[1] == label[0] && output[2] == label[1]) return Scores{pixels, output[3], output[3], 1};
  return std::nullopt;
}

/// [1, T, V] or [T, V] for a label of T positions.
std::optional<Scores> tokenScores(const Shape& output, int64_t positions) {
  if (output.size() < 2 || output.size() > 3 || (output.size() == 3 && output[0] != 1)) return std::nullopt;
  if (output[output.size() - 2] != positions) return std::nullopt;
  return Scores{positions, output.back(), output.back(), 1};
}

Result<int64_t> largest(const Tensor& output, const Scores& scores, int64_t position) {
  int64_t best = 0;
  double bestValue = -std::numeric_limits<double>::infinity();
  for (int64_t c = 0; c < scores.classes; ++c) {
    const double value = output.realAt(position * scores.positionStride + c * scores.classStride);
    if (std::isnan(value)) return fail(Code::InputMismatch, "the output is NaN at class {}", c);
    if (value > bestValue) {
      bestValue = value;
      best = c;
    }
  }
  return best;
}

Status checkLabel(int64_t label, int64_t classes) {
  if (label >= 0 && label < classes) return {};
  return fail(Code::InputMismatch, "the label {} is out of range: the output has {} classes", label, classes)
      .withRemedy("labels are 0 to the number of classes - 1");
}

Result<EngineRecord> classify(const Tensor& output, const Tensor& label) {
  const Scores scores{1, output.numElements(), 0, 1};
  const int64_t wanted = label.integerAt(0);
  CARINA_RETURN_IF_ERROR(checkLabel(wanted, scores.classes));
  EngineRecord record;
  CARINA_TRY(record.prediction, largest(output, scores, 0));
  // Ties go to the first, as in the prediction.
  int64_t before = 0;
  const double value = output.realAt(wanted);
  for (int64_t c = 0; c < scores.classes; ++c) {
    const double other = output.realAt(c);
    before += other > value || (other == value && c < wanted);
  }
  record.counts = {1, before < 1, before < 5};
  return record;
}

Result<EngineRecord> segment(const Tensor& output, const Tensor& label) {
  const auto scores = pixelScores(output.shape(), withoutOnes(label.shape()));
  if (!scores)
    return fail(Code::InputMismatch, "labels of shape {} do not fit the output", shapeText(label.shape()));
  EngineRecord record;
  record.counts.assign(2 + 3 * static_cast<size_t>(scores->classes), 0);
  for (int64_t i = 0; i < scores->positions; ++i) {
    const int64_t wanted = label.integerAt(i);
    if (wanted == kIgnored || (wanted == kVoid && wanted >= scores->classes)) continue;
    CARINA_RETURN_IF_ERROR(checkLabel(wanted, scores->classes));
    CARINA_TRY(const int64_t found, largest(output, *scores, i));
    ++record.counts[0];
    record.counts[1] += found == wanted;
    const auto at = [&](int64_t c, size_t what) -> int64_t& {
      return record.counts[2 + 3 * static_cast<size_t>(c) + what];
    };
    if (found == wanted) ++at(wanted, 0);
    ++at(wanted, 1);
    ++at(found, 2);
  }
  return record;
}

Result<EngineRecord> tokens(const Tensor& output, const Tensor& label) {
  const auto scores = tokenScores(output.shape(), label.numElements());
  if (!scores)
    return fail(Code::InputMismatch, "labels of shape {} do not fit the output", shapeText(label.shape()));
  EngineRecord record;
  record.counts = {0, 0};
  for (int64_t i = 0; i < scores->positions; ++i) {
    const int64_t wanted = label.integerAt(i);
    if (wanted == kIgnored) continue;
    CARINA_RETURN_IF_ERROR(checkLabel(wanted, scores->classes));
    CARINA_TRY(const int64_t found, largest(output, *scores, i));
    ++record.counts[0];
    record.counts[1] += found == wanted;
    const auto logit = [&](int64_t c) {
      return output.realAt(i * scores->positionStride + c * scores->classStride);
    };
    const double top = logit(found);
    double sum = 0;
    for (int64_t c = 0; c < scores->classes; ++c) sum += std::exp(logit(c) - top);
    record.loss += std::log(sum) + top - logit(wanted);
  }
  return record;
}

struct Box {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0, score = 1;
  int64_t kind = 0;
};

/// Rows of 6 (with score) or 5 (without); a class below 0 or a score of 0 is not a box.
Result<std::vector<Box>> boxesOf(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.empty() || (shape.back() != 6 && shape.back() != 5))
    return fail(Code::InputMismatch, "has shape {}, but boxes are rows of x1, y1, x2, y2, score, class",
                shapeText(shape));
  const int64_t columns = shape.back();
  std::vector<Box> boxes;
  for (int64_t i = 0; i + columns <= tensor.numElements(); i += columns) {
    Box box{tensor.realAt(i), tensor.realAt(i + 1), tensor.realAt(i + 2), tensor.realAt(i + 3), 1, 0};
    if (columns == 6) box.score = tensor.realAt(i + 4);
    const double kind = tensor.realAt(i + columns - 1);
    if (!std::isfinite(kind) || std::abs(kind) > 1e9 || std::isnan(box.score))
      return fail(Code::InputMismatch, "row {} is not a box", i / columns);
    box.kind = static_cast<int64_t>(std::llround(kind));
    if (box.kind >= 0 && box.score > 0) boxes.push_back(box);
  }
  return boxes;
}

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (!(width > 0) || !(height > 0)) return 0;
  const double both = width * height;
  const double either = (a.x2 - a.x1) * (a.y2 - a.y1) + (b.x2 - b.x1) * (b.y2 - b.y1) - both;
  return either > 0 ? both / either : 0;
}

/// Boxes found, most confident first, are each matched with the free wanted box of their class that they
/// overlap most.
Result<EngineRecord> matchBoxes(const Tensor& output, const Tensor& wantedTensor, double least) {
  CARINA_TRY(const std::vector<Box> wanted, boxesOf(wantedTensor));
  CARINA_TRY(std::vector<Box> found, boxesOf(output));
  std::stable_sort(found.begin(), found.end(), [](const Box& a, const Box& b) { return a.score > b.score; });
  std::vector<bool> taken(wanted.size(), false);
  int64_t matched = 0;
  for (const Box& box : found) {
    size_t best = wanted.size();
    double bestOverlap = least;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (taken[i] || wanted[i].kind != box.kind) continue;
      const double here = overlap(box, wanted[i]);
      if (here >= bestOverlap && (best == wanted.size() || here > bestOverlap)) {
        best = i;
        bestOverlap = here;
      }
    }
    if (best == wanted.size()) continue;
    taken[best] = true;
    ++matched;
  }
  EngineRecord record;
  record.counts = {matched, static_cast<int64_t>(wanted.size()), static_cast<int64_t>(found.size())};
  return record;
}

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole)
                   : std::numeric_limits<double>::quiet_NaN();
}

Figure proportion(std::string name, int64_t part, int64_t whole) {
  Figure figure{std::move(name), percent(part, whole), "%", std::nullopt};
  if (whole > 0) {
    const Interval interval = wilson(part, whole);
    figure.interval = {100 * interval.low, 100 * interval.high};
  }
  return figure;
}

double decibels(const Energy& energy) {
  if (energy.error == 0)
    return energy.reference > 0 ? std::numeric_limits<double>::infinity()
                                : std::numeric_limits<double>::quiet_NaN();
  return 10 * std::log10(energy.reference / energy.error);
}

}  // namespace

const char* taskName(Task task) {
  constexpr std::array<const char*, 5> kNames{"compare", "classify", "segment", "tokens", "boxes"};
  return kNames[static_cast<size_t>(task)];
}

const char* engineName(Engine engine) {
  constexpr std::array<const char*, 4> kNames{"float", "simulation", "tosa", "npu"};
  return kNames[static_cast<size_t>(engine)];
}

bool operator==(const EngineRecord& a, const EngineRecord& b) {
  const auto same = [](const Energy& x, const Energy& y) {
    return x.reference == y.reference && x.error == y.error && x.found == y.found && x.product == y.product;
  };
  return a.counts == b.counts && a.loss == b.loss && a.prediction == b.prediction &&
         std::equal(a.energies.begin(), a.energies.end(), b.energies.begin(), b.energies.end(), same);
}

Result<Task> taskOf(const Tensor* label, const Shape& output) {
  if (label == nullptr) return Task::Compare;
  const Shape shape = withoutOnes(label->shape());
  if (isFloat(label->dtype())) {
    const bool boxes = !label->shape().empty() && (label->shape().back() == 5 || label->shape().back() == 6);
    if (boxes && !output.empty() && output.back() == 6) return Task::Boxes;
  } else if (label->numElements() == 1) {
    // A single position of many classes is a class.
    return Task::Classify;
  } else if (pixelScores(output, shape)) {
    return Task::Segment;
  } else if (shape.size() == 1 && tokenScores(output, shape[0])) {
    return Task::Tokens;
  }
  return fail(Code::InputMismatch, "labels of type {} and shape {} do not fit the first output of shape {}",
              dtypeName(label->dtype()), shapeText(label->shape()), shapeText(output))
      .at("labels")
      .withRemedy(
          "a class per sample; [H, W] for [1, C, H, W]; [T] for [1, T, V]; rows x1, y1, x2, y2, class for "
          "boxes");
}

Result<EngineRecord> judge(Task task, const Tensor& output, const Tensor* label, const Tensor* reference,
                           double boxIou) {
  if (task != Task::Compare && task != Task::Boxes && label != nullptr && !isInteger(label->dtype())) {
    return fail(Code::InputMismatch, "labels of type {} do not name a class", dtypeName(label->dtype()));
  }
  if (task == Task::Classify && (label->numElements() != 1 || output.numElements() < 1))
    return fail(Code::InputMismatch, "labels of shape {} are not one class", shapeText(label->shape()));
  switch (task) {
    case Task::Compare:
      return EngineRecord{};
    case Task::Classify:
      return classify(output, *label);
    case Task::Segment:
      return segment(output, *label);
    case Task::Tokens:
      return tokens(output, *label);
    case Task::Boxes:
      break;
  }
  if (label != nullptr) return matchBoxes(output, *label, boxIou);
  if (reference == nullptr)
    return fail(Code::InputMismatch, "boxes have neither labels nor a float result to compare with");
  return matchBoxes(output, *reference, boxIou);
}

void addEnergies(EngineRecord& record, std::span<const Tensor> outputs, std::span<const Tensor> references) {
  for (size_t i = 0; i < std::min(outputs.size(), references.size()); ++i) {
    Energy energy;
    if (outputs[i].numElements() == references[i].numElements()) {
      for (int64_t k = 0; k < outputs[i].numElements(); ++k) {
        const double want = references[i].realAt(k), found = outputs[i].realAt(k);
        if (!std::isfinite(want) || !std::isfinite(found)) continue;
        energy.reference += want * want;
        energy.error += (found - want) * (found - want);
        energy.found += found * found;
        energy.product += found * want;
      }
    }
    record.energies.push_back(energy);
  }
}

Interval wilson(int64_t successes, int64_t trials) {
  if (trials <= 0) return {0, 1};
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(trials);
  const double p = static_cast<double>(successes) / n;
  const double centre = p + z * z / (2 * n), scale = 1 + z * z / n;
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {std::max(0.0, (centre - half) / scale), std::min(1.0, (centre + half) / scale)};
}

void Summary::add(const SampleRecord& record) {
  ++samples_;
  differing_ += record.npuDiffersFromTosa;
  for (const Engine engine : engines_) {
    const auto& one = record.engines[static_cast<size_t>(engine)];
    if (!one) continue;
    Sums& sums = sums_[static_cast<size_t>(engine)];
    sums.counts.resize(std::max(sums.counts.size(), one->counts.size()));
    for (size_t i = 0; i < one->counts.size(); ++i) sums.counts[i] += one->counts[i];
    sums.loss += one->loss;
    sums.energies.resize(std::max(sums.energies.size(), one->energies.size()));
    sums.cosines.resize(sums.energies.size());
    if (!one->energies.empty()) ++sums.compared;
    for (size_t i = 0; i < one->energies.size(); ++i) {
      const Energy& energy = one->energies[i];
      sums.energies[i].reference += energy.reference;
      sums.energies[i].error += energy.error;
      const double length = std::sqrt(energy.reference) * std::sqrt(energy.found);
      // Two zero vectors have the same direction.
      sums.cosines[i] += length > 0 ? energy.product / length : energy.error == 0 ? 1.0 : 0.0;
    }
  }
  if (!record.flipped) return;
  ++flips_;
  constexpr size_t kMaxFlips = 100;
  if (firstFlips_.size() < kMaxFlips) {
    Flip flip{record.index, record.name, {}, record.firstBadLayer};
    for (const Engine engine : engines_) {
      const auto& one = record.engines[static_cast<size_t>(engine)];
      flip.predictions.push_back(one ? one->prediction : -1);
    }
    firstFlips_.push_back(std::move(flip));
  }
  const auto known = std::find_if(badLayers_.begin(), badLayers_.end(),
                                  [&](const auto& entry) { return entry.first == record.firstBadLayer; });
  if (known == badLayers_.end()) {
    badLayers_.emplace_back(record.firstBadLayer, 1);
  } else {
    ++known->second;
  }
}

std::vector<std::pair<std::string, size_t>> Summary::badLayers() const {
  auto sorted = badLayers_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::vector<EngineSummary> Summary::engines() const {
  std::vector<EngineSummary> result;
  for (const Engine engine : engines_) {
    const Sums& sums = sums_[static_cast<size_t>(engine)];
    EngineSummary summary;
    summary.engine = engine;
    const auto count = [&](size_t i) { return i < sums.counts.size() ? sums.counts[i] : 0; };
    switch (task_) {
      case Task::Compare:
        break;
      case Task::Classify:
        summary.figures.push_back(proportion("top-1", count(1), count(0)));
        summary.figures.push_back(proportion("top-5", count(2), count(0)));
        summary.top1 = summary.figures.front().value;
        break;
      case Task::Segment: {
        summary.figures.push_back(proportion("pixel accuracy", count(1), count(0)));
        double sum = 0;
        int64_t present = 0;
        for (size_t at = 2; at + 2 < sums.counts.size(); at += 3) {
          const int64_t either = count(at + 1) + count(at + 2) - count(at);
          if (either == 0) continue;
          sum += static_cast<double>(count(at)) / static_cast<double>(either);
          ++present;
        }
        summary.figures.push_back(
            {"mIoU", present > 0 ? 100 * sum / static_cast<double>(present) : NAN, "%", {}});
        break;
      }
      case Task::Tokens:
        summary.figures.push_back(proportion("token accuracy", count(1), count(0)));
        summary.figures.push_back(
            {"perplexity", count(0) > 0 ? std::exp(sums.loss / static_cast<double>(count(0))) : NAN, "", {}});
        break;
      case Task::Boxes:
        summary.figures.push_back(proportion("precision", count(0), count(2)));
        summary.figures.push_back(proportion("recall", count(0), count(1)));
        // F1: twice the matches over all boxes of both sides.
        summary.figures.push_back({"box agreement", percent(2 * count(0), count(1) + count(2)), "%", {}});
        break;
    }
    for (size_t i = 0; i < sums.energies.size(); ++i) {
      const double sqnr = decibels(sums.energies[i]);
      summary.figures.push_back({fmt::format("SQNR out{}", i), sqnr, "dB", {}});
      summary.figures.push_back(
          {fmt::format("cosine out{}", i), sums.cosines[i] / static_cast<double>(sums.compared), "", {}});
      if (!std::isnan(sqnr)) summary.worstSqnr = std::min(summary.worstSqnr.value_or(sqnr), sqnr);
    }
    result.push_back(std::move(summary));
  }
  return result;
}

}  // namespace carina::evaluate
