// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chosen_sizes.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "pipeline/file_kind.hpp"
#include "pt2/exported_program.hpp"

namespace carina::pipeline {
namespace {

constexpr const char* kOption = "--specialize";
constexpr size_t kMaxMethods = 64;

Result<std::vector<pt2::SizeSymbol>> symbolsOf(const MethodSource& source, const std::string& program) {
  CARINA_TRY(const FileKind kind, fileKindOf(source.model));
  if (kind == FileKind::Archive) return pt2::sizeSymbols(source.model, {.model = program});
  return fail(Code::OptionDoesNotApply, "the sizes of a {} are fixed", fileKindName(kind))
      .inFile(source.model.string())
      .at(kOption)
      .withRemedy("leave it out");
}

Status tooMany() {
  return fail(Code::TooLarge, "the sizes result in more than {} methods", kMaxMethods)
      .at(kOption)
      .withRemedy("choose fewer sizes");
}

/// `source` once for every combination of the choices.
Result<std::vector<MethodSource>> combinations(const MethodSource& source,
                                               std::span<const SizeChoice> choices) {
  std::vector<MethodSource> all{source};
  all[0].asked = source.name;
  for (const SizeChoice& choice : choices) {
    std::vector<MethodSource> next;
    for (const MethodSource& method : all) {
      for (int64_t value : choice.values) {
        MethodSource& made = next.emplace_back(method);
        made.sizes[choice.symbol] = value;
        made.name += fmt::format("_{}_{}", choice.symbol, value);
        if (next.size() > kMaxMethods) return tooMany().error();
      }
    }
    all = std::move(next);
  }
  if (all.size() == 1) all[0].name = source.name;
  return all;
}

}  // namespace

Result<SizeChoice> parseSizeChoice(const std::string& text) {
  const auto wrong = [&] {
    return fail(Code::BadOption, "'{}' is not SYMBOL=SIZE,SIZE,...", text)
        .withRemedy("for example s77=16,64,256");
  };
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return wrong();
  SizeChoice choice{text.substr(0, equals), {}};
  const char* at = text.data() + equals + 1;
  const char* const end = text.data() + text.size();
  while (true) {
    int64_t value = 0;
    const auto [last, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (last != end && *last != ',') || value < 1) return wrong();
    if (std::find(choice.values.begin(), choice.values.end(), value) != choice.values.end())
      return fail(Code::BadOption, "{}={} is given twice", choice.symbol, value).withRemedy("give it once");
    choice.values.push_back(value);
    if (last == end) return choice;
    at = last + 1;
  }
}

Result<std::vector<MethodSource>> methodsOfSizes(std::span<const MethodSource> sources,
                                                 const std::string& program,
                                                 std::span<const SizeChoice> choices) {
  std::vector<MethodSource> methods;
  std::vector<size_t> uses(choices.size());
  std::vector<std::string> known;
  for (const MethodSource& source : sources) {
    CARINA_TRY(const std::vector<pt2::SizeSymbol> symbols, symbolsOf(source, program));
    std::vector<SizeChoice> own;
    for (const pt2::SizeSymbol& symbol : symbols) {
      if (const std::string text = symbol.str(); std::find(known.begin(), known.end(), text) == known.end())
        known.push_back(text);
    }
    for (size_t i = 0; i < choices.size(); ++i) {
      const bool has = std::any_of(symbols.begin(), symbols.end(), [&](const pt2::SizeSymbol& symbol) {
        return symbol.name == choices[i].symbol;
      });
      if (!has) continue;
      ++uses[i];
      if (std::any_of(own.begin(), own.end(),
                      [&](const SizeChoice& c) { return c.symbol == choices[i].symbol; })) {
        return fail(Code::BadOption, "{} is chosen twice", choices[i].symbol)
            .at(kOption)
            .withRemedy("give all its values after one '=', separated by commas");
      }
      own.push_back(choices[i]);
    }
    CARINA_TRY(std::vector<MethodSource> made, combinations(source, own));
    methods.insert(methods.end(), std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
    if (methods.size() > kMaxMethods) return tooMany().error();
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    if (uses[i] > 0) continue;
    return fail(Code::UnknownName, "no input has the size '{}'", choices[i].symbol)
        .inFile(sources.size() == 1 ? sources[0].model.string() : "")
        .at(kOption)
        .withRemedy(known.empty() ? "all sizes are fixed: leave the option out"
                                  : fmt::format("the sizes to choose are {}", fmt::join(known, ", ")));
  }
  return methods;
}

}  // namespace carina::pipeline
