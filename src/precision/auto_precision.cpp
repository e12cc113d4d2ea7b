// SPDX-License-Identifier: Apache-2.0
#include "precision/auto_precision.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/file.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/float_network.hpp"
#include "precision/candidates.hpp"
#include "precision/model.hpp"

namespace carina::precision {
namespace {

/// The effort spent on a network: what is cheap to run is examined more closely. The same network always gets
/// the same.
struct Budget {
  size_t judged = 8;     // samples on which candidates are compared
  size_t simulated = 4;  // samples on which units are measured
  size_t units = 160;
  bool allSettings = true;  // observers and weight scales, not only equalization
  size_t between = 4;       // candidates between int8 and 16x8, for the table
  size_t rounds = 10;       // candidates for the goal
  bool followers = true;    // also types of operators that take their precision from others
};

/// Operators with weights or products, by prefix of their names.
constexpr std::array<std::string_view, 7> kHeavy{"conv", "linear", "matmul", "bmm", "mm", "lstm", "gru"};

Budget budgetFor(const ir::Graph& graph) {
  constexpr int64_t kMedium = int64_t{1} << 20, kLarge = int64_t{1} << 22;
  int64_t elements = 0;
  for (const ir::Node* node : graph.nodes()) {
    for (const ir::Value* result : node->results()) elements += result->numElements();
  }
  if (elements > kLarge) return {4, 1, 80, true, 3, 5, false};
  if (elements > kMedium) return {8, 2, 120, true, 4, 8};
  return {};
}

Status checkNetwork(const pipeline::Options& options) {
  CARINA_TRY(const auto file, MappedFile::open(options.model));
  if (pipeline::fileKind(file->bytes(), options.model) != pipeline::FileKind::Archive) {
    return fail(Code::OptionDoesNotApply, "the network is already quantized: there is no precision to choose")
        .inFile(options.model.string())
        .at("--auto-precision")
        .withRemedy("export the float network with torch.export.save, or leave the option out");
  }
  return {};
}

/// "conv2d" for "aten.conv2d.default": the name in a rule by operator type; other dialects keep their prefix.
std::string typeName(std::string_view op) {
  const std::string_view name = op.substr(0, op.rfind('.'));
  constexpr std::string_view kAten = "aten.";
  return std::string(name.starts_with(kAten) ? name.substr(kAten.size()) : name);
}

std::string countText(size_t raised, size_t units) {
  return fmt::format("{} of {} layers", raised, units);
}

class Chooser {
 public:
  Chooser(const pipeline::Options& options, const Goal& goal, const quantize::Progress& progress)
      : options_(options), goal_(goal), progress_(progress) {}

  Result<AutoPrecision> run() {
    CARINA_RETURN_IF_ERROR(open());
    CARINA_RETURN_IF_ERROR(makeEnds());
    if (narrowIsEnough()) CARINA_RETURN_IF_ERROR(trials_->runProgram(made_[narrow_].candidate));
    if (!narrowIsEnough()) {
      CARINA_RETURN_IF_ERROR(chooseSettings());
      CARINA_RETURN_IF_ERROR(measure());
      if (model_) CARINA_RETURN_IF_ERROR(search());
      CARINA_RETURN_IF_ERROR(prove());
    }
    return finish();
  }

 private:
  /// The largest number of programs built.
  size_t steps() const { return 3 + budget_.between + budget_.rounds; }
  void step() {
    if (progress_) progress_(std::min(++done_, steps() - 1), steps());
  }

  struct Made {
    Candidate candidate;
    std::string name;
    std::optional<double> gap;
    bool byType = false;  // for a rule by operator type: in the table only if nothing dominates it
  };

  Status open() {
    CARINA_RETURN_IF_ERROR(checkNetwork(options_));
    if (!options_.quantizeConfig.empty()) {
      CARINA_TRY(base_, quantize::readRules(options_.quantizeConfig));
    }
    std::vector<pipeline::StageTime> times;
    CARINA_TRY(network_, pipeline::readFloatNetwork(options_, times));
    if (!network_.quantizes) {
      return fail(Code::OptionDoesNotApply,
                  "the network is already quantized: there is no precision to choose")
          .inFile(options_.model.string())
          .at("--auto-precision")
          .withRemedy("export the float network, or leave the option out");
    }
    // What the options say is written to the file as well, which makes it self-contained.
    const quantize::Options& quantizer = network_.quantizer;
    base_.global.precision = quantize::Precision::Int8;
    base_.global.perChannelWeights = quantizer.perChannelWeights;
    if (quantizer.weightBits != quantize::kMaxWeightBits) base_.global.weightBits = quantizer.weightBits;
    base_.global.observer = quantizer.observer;
    base_.equalize = quantizer.equalize;
    base_.fitWeights = quantizer.fitWeights;
    base_.correctBiases = quantizer.correctBiases;
    budget_ = budgetFor(network_.graph);
    if (goal_.minTop1) {
      if (!network_.front.state.empty()) {
        return fail(Code::UnsupportedForm, "the network keeps state, but the samples of --data have none")
            .inFile(options_.model.string())
            .at("--min-top1")
            .withRemedy("set a goal in decibels with --min-sqnr");
      }
      CARINA_TRY(labelled_, Labelled::open(goal_.data, network_.graph));
    }
    CARINA_TRY(trials_,
               Trials::create(options_, network_, budget_.judged, labelled_ ? &*labelled_ : nullptr));
    return {};
  }

  /// int8 and 16x8 throughout. 16x8 may be impossible; int8 must be possible.
  Status makeEnds() {
    auto narrow = trials_->make(base_);
    if (!narrow) return std::move(narrow).error();
    if (narrow->noise.empty()) {
      return fail(Code::NoResult, "no float output of the network shows how accurate it is")
          .inFile(options_.model.string())
          .at("--auto-precision")
          .withRemedy("let forward() return nonzero values, or choose the precision by rules");
    }
    step();
    narrow_ = made_.size();
    made_.push_back({std::move(*narrow), "int8" + settingsText(), std::nullopt});
    quantize::RulesFile wideRules = base_;
    wideRules.global.precision = quantize::Precision::Int16x8;
    if (wideRules.global.scheme == quantize::Scheme::Affine) wideRules.global.scheme.reset();
    auto wide = trials_->make(std::move(wideRules));
    step();
    wide_.reset();
    if (!wide || !accepts(*wide)) return {};
    wide_ = made_.size();
    made_.push_back({std::move(*wide), "16x8" + settingsText(), std::nullopt});
    return {};
  }

  std::string settingsText() const {
    std::string text;
    for (const std::string& setting : settings_) text += ", " + setting;
    return text;
  }

  /// A program that moves work from the NPU to the CPU is not cheaper, whatever its NPU cycles.
  bool accepts(const Candidate& candidate) const {
    return candidate.build->partitioned.wholly || !made_[narrow_].candidate.build->partitioned.wholly;
  }

  bool keepsCycles(const Candidate& candidate) const {
    return !goal_.maxCycles || candidate.cycles() <= *goal_.maxCycles;
  }
  bool isAccurate(const Candidate& candidate) const {
    return (!goal_.minSqnr || candidate.surest() >= *goal_.minSqnr) &&
           (!goal_.minTop1 || candidate.top1.value_or(0) >= *goal_.minTop1);
  }
  bool asksForAccuracy() const { return goal_.minSqnr || goal_.minTop1; }

  bool narrowIsEnough() const {
    if (!wide_ && asksForAccuracy() && isAccurate(made_[narrow_].candidate)) return true;
    const Candidate& narrow = made_[narrow_].candidate;
    if (asksForAccuracy()) return isAccurate(narrow) || !keepsCycles(narrow);
    return !keepsCycles(narrow);
  }

  /// Observers, equalization and weight scales: whatever makes int8 and 16x8 together clearly better.
  Status chooseSettings() {
    struct Setting {
      const char* name;
      bool cheap;
      void (*apply)(quantize::RulesFile&);
    };
    static constexpr std::array<Setting, 4> kSettings{{
        {"equalize", true, [](quantize::RulesFile& rules) { rules.equalize = true; }},
        {"observer minmax", false,
         [](quantize::RulesFile& rules) { rules.global.observer = quantize::ObserverKind::MinMax; }},
        {"observer percentile", false,
         [](quantize::RulesFile& rules) { rules.global.observer = quantize::ObserverKind::Percentile; }},
        {"weights per tensor", false,
         [](quantize::RulesFile& rules) { rules.global.perChannelWeights = false; }},
    }};
    constexpr double kWorthwhile = 1, kTolerated = 0.3;  // dB
    const bool heldOut = trials_->numSamples() >= 4;
    quantize::RulesFile before = base_;
    std::optional<std::pair<double, double>> now;
    for (const Setting& setting : kSettings) {
      if (!setting.cheap && (!budget_.allSettings || !heldOut)) continue;
      if (!now) {
        CARINA_TRY(now, decibelsWith(base_, heldOut));
      }
      quantize::RulesFile changed = base_;
      setting.apply(changed);
      CARINA_TRY(const auto then, decibelsWith(changed, heldOut));
      const double narrow = then.first - now->first, wide = then.second - now->second;
      if (!(narrow + wide >= kWorthwhile) || narrow < -kTolerated || wide < -kTolerated) continue;
      base_ = std::move(changed);
      now = then;
      if (setting.apply == kSettings[2].apply) std::erase(settings_, kSettings[1].name);
      settings_.emplace_back(setting.name);
    }
    return settings_.empty() ? Status() : keepIfBetter(std::move(before));
  }

  /// Builds the programs with the settings found; drops the settings if they gain nothing.
  Status keepIfBetter(quantize::RulesFile before) {
    const size_t narrow = narrow_;
    const std::optional<size_t> wide = wide_;
    CARINA_RETURN_IF_ERROR(makeEnds());
    const auto sum = [&](size_t low, size_t high) {
      return made_[low].candidate.decibels + made_[high].candidate.decibels;
    };
    if (wide_ && (!wide || sum(narrow_, *wide_) > sum(narrow, *wide))) return {};
    base_ = std::move(before);
    settings_.clear();
    narrow_ = narrow;
    wide_ = wide;
    return {};
  }

  /// In int8 and in 16x8, capped so that differences are meaningful.
  Result<std::pair<double, double>> decibelsWith(const quantize::RulesFile& rules, bool heldOut) const {
    constexpr double kMost = 90;
    CARINA_TRY(const Noise narrow, trials_->noiseWith(rules, heldOut));
    quantize::RulesFile raised = rules;
    raised.global.precision = quantize::Precision::Int16x8;
    if (raised.global.scheme == quantize::Scheme::Affine) raised.global.scheme.reset();
    CARINA_TRY(const Noise wide, trials_->noiseWith(raised, heldOut));
    return std::pair(std::min(decibelsOf(narrow), kMost), std::min(decibelsOf(wide), kMost));
  }

  Status measure() {
    if (!wide_) return {};
    CARINA_TRY(
        quantize::SwitchedNetwork switched,
        quantize::switchedNetwork(network_.graph.clone(), pipeline::quantizerOf(options_, network_, base_),
                                  network_.samples, budget_.units));
    if (switched.units.empty()) return {};
    const auto& judged = trials_->judged();
    const size_t count = std::min(budget_.simulated, judged.size());
    std::vector<quantize::Sample> samples;
    for (size_t i = 0; i < count; ++i) samples.push_back(judged[i * judged.size() / count]);
    CARINA_TRY(Simulator simulator, Simulator::create(std::move(switched), std::move(samples)));
    Candidate& narrow = made_[narrow_].candidate;
    const Candidate& wide = made_[*wide_].candidate;
    narrow.raised.assign(simulator.network().units.size(), false);
    if (simulator.compared().size() != wide.noise.size() || narrow.noise.size() != wide.noise.size())
      return {};
    CARINA_TRY(model_, Model::create(std::move(simulator), narrow, wide));
    step();
    return {};
  }

  Status search() {
    const double low = made_[narrow_].candidate.decibels, high = made_[*wide_].candidate.decibels;
    for (size_t i = 1; i <= budget_.between && high > low; ++i) {
      const double decibels =
          low + (high - low) * static_cast<double>(i) / static_cast<double>(budget_.between + 1);
      CARINA_TRY(const auto proposal, model_->cheapest(decibels));
      if (!proposal) continue;
      CARINA_TRY([[maybe_unused]] const Candidate* made, take(*proposal));
    }
    if (goal_.minSqnr || goal_.maxCycles) makeByType();
    if (goal_.minTop1) CARINA_RETURN_IF_ERROR(searchTop1());
    if (goal_.minSqnr) CARINA_RETURN_IF_ERROR(searchDecibels());
    if (goal_.maxCycles && (!asksForAccuracy() || !reached())) CARINA_RETURN_IF_ERROR(searchCycles());
    return {};
  }

  /// What a user would try by hand: 16 bits for one type of operators, and for all types without weights or
  /// products. If effects do not add up, the model may miss such a choice.
  void makeByType() {
    const quantize::SourceOps& ops = network_.quantizer.sourceOps;
    std::map<std::string, std::string> typeOf;  // by name of the source node
    for (const auto& [location, op] : ops) {
      if (location) typeOf[location->name] = typeName(op);
    }
    std::set<std::string> types, light;
    for (const quantize::PrecisionUnit& unit : model_->network().units) {
      for (const std::string& node : unit.nodes) types.insert(typeOf[node]);
      if (!budget_.followers) continue;
      for (const std::string& node : unit.followers) types.insert(typeOf[node]);
    }
    types.erase("");
    std::copy_if(types.begin(), types.end(), std::inserter(light, light.end()), [](const std::string& type) {
      return std::none_of(kHeavy.begin(), kHeavy.end(),
                          [&](std::string_view heavy) { return type.starts_with(heavy); });
    });
    for (const std::string& type : types) makeWith({type}, typeOf);
    if (light.size() > 1) makeWith(light, typeOf);
  }

  /// Builds a program with these types in 16 bits, with lower precedence than the user's own rules. Skipped
  /// if it cannot be built.
  void makeWith(const std::set<std::string>& types, const std::map<std::string, std::string>& typeOf) {
    quantize::RulesFile rules = base_;
    for (const std::string& type : types) {
      quantize::Rule rule;
      rule.pattern = type;
      rule.overrides.precision = quantize::Precision::Int16x8;
      rules.rules.insert(rules.rules.begin(), std::move(rule));
    }
    auto candidate = trials_->make(std::move(rules));
    step();
    if (!candidate || !accepts(*candidate)) return;
    const auto& units = model_->network().units;
    for (const quantize::PrecisionUnit& unit : units) {
      const bool raised = std::any_of(unit.nodes.begin(), unit.nodes.end(), [&](const std::string& node) {
        const auto type = typeOf.find(node);
        return type != typeOf.end() && types.count(type->second) > 0;
      });
      candidate->raised.push_back(raised);
      candidate->raisedUnits += raised ? 1 : 0;
    }
    const std::string name = fmt::format("{} (16x8: {})", countText(candidate->raisedUnits, units.size()),
                                         types.size() == 1 ? *types.begin() : "all without weights");
    made_.push_back({std::move(*candidate), name + settingsText(), std::nullopt, true});
  }

  bool reached() const {
    return std::any_of(made_.begin(), made_.end(), [&](const Made& made) {
      return isAccurate(made.candidate) && keepsCycles(made.candidate);
    });
  }

  /// Builds the program of a proposal. Null if it was built before, or cannot be built.
  Result<const Candidate*> take(const Proposal& proposal) {
    const auto same = [&](const Made& made) { return made.candidate.raised == proposal.raised; };
    if (std::any_of(made_.begin(), made_.end(), same)) return nullptr;
    auto candidate = trials_->make(rulesFor(base_, model_->network(), proposal.raised));
    step();
    if (!candidate || !accepts(*candidate)) return nullptr;
    candidate->raised = proposal.raised;
    candidate->raisedUnits =
        static_cast<size_t>(std::count(proposal.raised.begin(), proposal.raised.end(), true));
    CARINA_RETURN_IF_ERROR(model_->learn(proposal, *candidate));
    const std::string name = countText(candidate->raisedUnits, proposal.raised.size()) + settingsText();
    made_.push_back({std::move(*candidate), name, proposal.gap});
    return &made_.back().candidate;
  }

  /// The program of a choice; null if it was not built.
  const Candidate* madeAs(const Raised& raised) const {
    const auto found = std::find_if(made_.begin(), made_.end(),
                                    [&](const Made& made) { return made.candidate.raised == raised; });
    return found == made_.end() ? nullptr : &found->candidate;
  }

  /// The search relies on simulated decibels, but the chosen program itself must satisfy the goal. If it does
  /// not, the search asks for as much more as is missing.
  Status prove() {
    constexpr size_t kMaxSearches = 3;
    for (size_t searches = 0;;) {
      Candidate& best = made_[chosen()].candidate;
      if (best.program) return {};
      CARINA_RETURN_IF_ERROR(trials_->runProgram(best));
      if (!best.program || !goal_.minSqnr || best.decibels < *goal_.minSqnr || isAccurate(best)) return {};
      shortfall_ = std::max(shortfall_, best.decibels - *best.program);
      if (model_ && searches++ < kMaxSearches) CARINA_RETURN_IF_ERROR(searchDecibels());
    }
  }

  Status searchDecibels() {
    constexpr double kNear = 0.1;
    const double goal = *goal_.minSqnr + shortfall_;
    double target = goal;
    for (size_t round = 0; round < budget_.rounds; ++round) {
      CARINA_TRY(const auto proposal, model_->cheapest(target));
      if (!proposal) return searchBetween(goal);
      const Candidate* known = madeAs(proposal->raised);
      const Candidate* made = known;
      if (!made) {
        CARINA_TRY(made, take(*proposal));
        if (!made) return {};
      }
      const double beyond = made->decibels - goal;
      if (beyond >= 0 && beyond < kNear) return {};
      if (known) target -= beyond < 0 ? beyond - kNear : beyond / 2;
    }
    return {};
  }

  /// Where the model knows no choice with these decibels: halves the cycles between the cheapest program that
  /// has them and the most expensive one below it that does not.
  Status searchBetween(double decibels) {
    constexpr size_t kMost = 8;
    constexpr double kNear = 0.03;  // of the cycles
    double missed = 0;              // cycles for which no choice has them
    for (size_t round = 0; round < kMost; ++round) {
      double low = missed, high = std::numeric_limits<double>::infinity();
      for (const Made& made : made_) {
        if (made.candidate.decibels >= decibels)
          high = std::min(high, static_cast<double>(made.candidate.cycles()));
      }
      for (const Made& made : made_) {
        const auto cycles = static_cast<double>(made.candidate.cycles());
        if (made.candidate.decibels < decibels && cycles < high) low = std::max(low, cycles);
      }
      if (!std::isfinite(high) || high - low < kNear * high) return {};
      const double middle = (low + high) / 2;
      CARINA_TRY(const auto proposal, model_->best(middle));
      const Candidate* made = nullptr;
      if (proposal && !madeAs(proposal->raised)) {
        CARINA_TRY(made, take(*proposal));
      }
      if (!made || made->decibels < decibels) missed = middle;
    }
    return {};
  }

  Status searchCycles() {
    auto target = static_cast<double>(*goal_.maxCycles);
    for (size_t round = 0; round < budget_.rounds; ++round) {
      CARINA_TRY(const auto proposal, model_->best(target));
      if (!proposal) return {};
      const Candidate* known = madeAs(proposal->raised);
      const Candidate* made = known;
      if (!made) {
        CARINA_TRY(made, take(*proposal));
        if (!made) return {};
      }
      const double found = static_cast<double>(made->cycles()), limit = static_cast<double>(*goal_.maxCycles);
      if (found <= limit && found > 0.99 * limit) return {};
      // A known choice again: move further away from it.
      if (found > limit)
        target -= found - limit;
      else if (known)
        target += (limit - found) / 2;
    }
    return {};
  }

  /// Top-1 changes in steps and fluctuates: the search uses decibels, between a choice that is not good
  /// enough and a more expensive one that is.
  Status searchTop1() {
    for (size_t round = 0; round < budget_.rounds; ++round) {
      double low = made_[narrow_].candidate.decibels, high = std::numeric_limits<double>::infinity();
      for (const Made& made : made_) {
        if (isAccurate(made.candidate)) high = std::min(high, made.candidate.decibels);
      }
      for (const Made& made : made_) {
        if (made.candidate.decibels < high) low = std::max(low, made.candidate.decibels);
      }
      if (!std::isfinite(high) || high - low < 0.5) return {};
      CARINA_TRY(const auto proposal, model_->cheapest((low + high) / 2));
      if (!proposal) return {};
      CARINA_TRY(const Candidate* made, take(*proposal));
      if (!made) return {};
    }
    return {};
  }

  /// Whether `a` serves the goal better than `b`.
  bool isBetter(const Candidate& a, const Candidate& b) const {
    const bool accurate = isAccurate(a), cheap = keepsCycles(a);
    if (cheap != keepsCycles(b)) return cheap;
    if (accurate != isAccurate(b)) return accurate;
    if (!cheap) return a.cycles() < b.cycles();
    if (accurate && asksForAccuracy())
      return std::pair(a.cycles(), -a.decibels) < std::pair(b.cycles(), -b.decibels);
    if (goal_.minTop1 && a.top1 != b.top1) return a.top1 > b.top1;
    return std::pair(-a.decibels, a.cycles()) < std::pair(-b.decibels, b.cycles());
  }

  size_t chosen() const {
    size_t best = 0;
    for (size_t i = 1; i < made_.size(); ++i) {
      if (isBetter(made_[i].candidate, made_[best].candidate)) best = i;
    }
    return best;
  }

  Result<AutoPrecision> finish() {
    const size_t chosen = this->chosen();
    AutoPrecision result;
    for (size_t i = 0; i < made_.size(); ++i) result.rows.push_back(rowOf(made_[i], i == chosen));
    markDominated(result.rows);
    size_t at = 0;
    std::erase_if(result.rows,
                  [&](const Row& row) { return made_[at++].byType && row.dominated && !row.chosen; });
    std::stable_sort(result.rows.begin(), result.rows.end(),
                     [](const Row& a, const Row& b) { return a.cycles < b.cycles; });
    Made& best = made_[chosen];
    if (model_) {
      const auto& units = model_->network().units;
      for (size_t u = 0; u < units.size(); ++u) {
        const Sensitivity& sensitivity = model_->sensitivities()[u];
        const bool raised =
            best.candidate.raised.empty() ? wide_ && chosen == *wide_ : best.candidate.raised[u];
        result.layers.push_back({units[u].nodes, units[u].modulePath, raised, sensitivity.alone,
                                 sensitivity.gained, sensitivity.cycles});
      }
    }
    result.settings = settings_;
    result.judged = trials_->judged().size();
    result.proving = trials_->proving();
    result.labelled = labelled_ ? labelled_->size() : 0;
    result.gap = best.gap;
    result.measured = best.candidate.measured;
    result.rules = best.candidate.rules;
    if (isAccurate(best.candidate) && keepsCycles(best.candidate)) {
      CARINA_RETURN_IF_ERROR(trials_->describe(best.candidate));
      result.build = std::move(best.candidate.build);
    }
    if (progress_) progress_(steps(), steps());
    return result;
  }

  static Row rowOf(const Made& made, bool chosen) {
    const Candidate& candidate = made.candidate;
    return {made.name,
            candidate.raisedUnits,
            candidate.decibels,
            candidate.program,
            candidate.top1,
            candidate.cycles(),
            candidate.measured.sram.value_or(0),
            candidate.measured.flash.value_or(0),
            chosen,
            false};
  }

  static void markDominated(std::vector<Row>& rows) {
    for (Row& row : rows) {
      row.dominated = std::any_of(rows.begin(), rows.end(), [&](const Row& other) {
        return other.cycles <= row.cycles && other.decibels >= row.decibels &&
               (other.cycles < row.cycles || other.decibels > row.decibels);
      });
    }
  }

  const pipeline::Options& options_;
  const Goal& goal_;
  const quantize::Progress& progress_;
  Budget budget_;
  quantize::RulesFile base_;
  std::vector<std::string> settings_;
  pipeline::FloatNetwork network_;
  std::optional<Labelled> labelled_;
  std::optional<Trials> trials_;
  std::optional<Model> model_;
  std::vector<Made> made_;
  size_t narrow_ = 0;           // index into made_
  std::optional<size_t> wide_;  // index into made_
  size_t done_ = 0;             // steps
  double shortfall_ = 0;        // dB by which a program fell short of its simulation
};

}  // namespace

Result<AutoPrecision> autoPrecision(const pipeline::Options& options, const Goal& goal,
                                    const quantize::Progress& progress) {
  return Chooser(options, goal, progress).run();
}

}  // namespace carina::precision
