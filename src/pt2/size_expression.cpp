// SPDX-License-Identifier: Apache-2.0
#include "pt2/size_expression.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace carina::pt2 {
namespace {

/// A parsed expression.
struct Term {
  enum class Kind : uint8_t {
    Number,
    Symbol,  // text
    Size,    // of input `text`, dimension `number`
    Call,    // op over the arguments from left to right: Add(a, b, c)
  };
  Kind kind = Kind::Number;
  SizeNumber number = {};
  std::string text = {};
  SizeOp op = SizeOp::Pos;
  std::vector<Term> arguments = {};
};

struct Named {
  std::string_view name;
  SizeOp op;
};
/// Functions of sympy and torch.
constexpr Named kFunctions[] = {
    {"Add", SizeOp::Add},
    {"Mul", SizeOp::Mul},
    {"Pow", SizeOp::Pow},
    {"PowByNatural", SizeOp::Pow},
    {"FloatPow", SizeOp::Pow},
    {"FloorDiv", SizeOp::FloorDiv},
    {"CleanDiv", SizeOp::FloorDiv},
    {"CeilDiv", SizeOp::CeilDiv},
    {"IntTrueDiv", SizeOp::TrueDiv},
    {"FloatTrueDiv", SizeOp::TrueDiv},
    {"Mod", SizeOp::Mod},
    {"PythonMod", SizeOp::Mod},
    {"Min", SizeOp::Min},
    {"Max", SizeOp::Max},
    {"Equality", SizeOp::Equal},
    {"Eq", SizeOp::Equal},
    {"Unequality", SizeOp::NotEqual},
    {"Ne", SizeOp::NotEqual},
    {"StrictLessThan", SizeOp::Less},
    {"LessThan", SizeOp::LessEqual},
    {"StrictGreaterThan", SizeOp::Greater},
    {"GreaterThan", SizeOp::GreaterEqual},
    {"And", SizeOp::And},
    {"Or", SizeOp::Or},
    {"Not", SizeOp::Not},
    {"Abs", SizeOp::Abs},
    {"floor", SizeOp::Floor},
    {"FloorToInt", SizeOp::Floor},
    {"ceiling", SizeOp::Ceil},
    {"CeilToInt", SizeOp::Ceil},
    {"TruncToInt", SizeOp::Trunc},
    {"ToFloat", SizeOp::ToReal},
    {"OpaqueUnaryFn_sqrt", SizeOp::Sqrt},
};
constexpr Named kComparisons[] = {{"==", SizeOp::Equal},     {"!=", SizeOp::NotEqual},
                                  {"<=", SizeOp::LessEqual}, {">=", SizeOp::GreaterEqual},
                                  {"<", SizeOp::Less},       {">", SizeOp::Greater}};
constexpr Named kSums[] = {{"+", SizeOp::Add}, {"-", SizeOp::Sub}};
constexpr Named kProducts[] = {
    {"//", SizeOp::FloorDiv}, {"*", SizeOp::Mul}, {"/", SizeOp::TrueDiv}, {"%", SizeOp::Mod}};

/// Recursive descent by Python's precedences; sympy's calls are primaries of the same grammar.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Term> run() {
    CARINA_TRY(Term term, disjunction());
    if (!isSmall()) return fail(Code::Excessive, "a size expression has more than {} operations", kMaxCalls);
    skipSpace();
    if (at_ != text_.size()) return unexpected();
    return term;
  }

 private:
  // The text comes from a file, and its terms are visited recursively.
  static constexpr int kMaxNested = 200, kMaxCalls = 1000;

  Error unexpected() const {
    return fail(Code::UnsupportedForm, "'{}' is not a supported size expression", text_);
  }

  void skipSpace() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view rest() const { return text_.substr(at_); }
  bool takes(std::string_view token) {
    skipSpace();
    if (!rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool takesWord(std::string_view word) {
    skipSpace();
    if (!rest().starts_with(word) || (rest().size() > word.size() && isName(rest()[word.size()])))
      return false;
    at_ += word.size();
    return true;
  }
  bool isSmall() const { return calls_ <= kMaxCalls; }
  static bool isName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  Term call(SizeOp op, std::vector<Term> arguments) {
    ++calls_;
    Term term;
    term.kind = Term::Kind::Call;
    term.op = op;
    term.arguments = std::move(arguments);
    return term;
  }

  Term single(SizeOp op, Term of) {
    std::vector<Term> arguments;
    arguments.push_back(std::move(of));
    return call(op, std::move(arguments));
  }
  Term pair(SizeOp op, Term left, Term right) {
    std::vector<Term> arguments;
    arguments.push_back(std::move(left));
    arguments.push_back(std::move(right));
    return call(op, std::move(arguments));
  }

  template <size_t N>
  const Named* anyOf(const Named (&operators)[N]) {
    for (const Named& candidate : operators) {
      skipSpace();
      if (candidate.name == "*" && rest().starts_with("**")) continue;
      if (takes(candidate.name)) return &candidate;
    }
    return nullptr;
  }

  Result<Term> disjunction() {
    CARINA_TRY(Term term, conjunction());
    while (isSmall() && takesWord("or")) {
      CARINA_TRY(Term next, conjunction());
      term = pair(SizeOp::Or, std::move(term), std::move(next));
    }
    return term;
  }

  Result<Term> conjunction() {
    CARINA_TRY(Term term, negation());
    while (isSmall() && takesWord("and")) {
      CARINA_TRY(Term next, negation());
      term = pair(SizeOp::And, std::move(term), std::move(next));
    }
    return term;
  }

  Result<Term> negation() {
    if (!takesWord("not")) return comparison();
    CARINA_TRY(Term term, comparison());
    return single(SizeOp::Not, std::move(term));
  }

  Result<Term> comparison() {
    CARINA_TRY(Term term, sum());
    if (const Named* op = anyOf(kComparisons)) {
      CARINA_TRY(Term right, sum());
      term = pair(op->op, std::move(term), std::move(right));
    }
    return term;
  }

  Result<Term> sum() {
    CARINA_TRY(Term term, product());
    while (const Named* op = isSmall() ? anyOf(kSums) : nullptr) {
      CARINA_TRY(Term right, product());
      term = pair(op->op, std::move(term), std::move(right));
    }
    return term;
  }

  Result<Term> product() {
    CARINA_TRY(Term term, unary());
    while (const Named* op = isSmall() ? anyOf(kProducts) : nullptr) {
      CARINA_TRY(Term right, unary());
      term = pair(op->op, std::move(term), std::move(right));
    }
    return term;
  }

  Result<Term> unary() {
    if (nested_ >= kMaxNested) return fail(Code::Excessive, "a size expression is nested too deeply");
    ++nested_;
    auto term = signedPower();
    --nested_;
    return term;
  }

  Result<Term> signedPower() {
    if (takes("-")) {
      CARINA_TRY(Term term, unary());
      return single(SizeOp::Neg, std::move(term));
    }
    CARINA_TRY(Term term, primary());
    if (takes("**")) {
      CARINA_TRY(Term exponent, unary());
      term = pair(SizeOp::Pow, std::move(term), std::move(exponent));
    }
    return term;
  }

  Result<Term> primary() {
    skipSpace();
    if (at_ == text_.size()) return unexpected();
    if (takes("(")) {
      CARINA_TRY(Term term, disjunction());
      if (!takes(")")) return unexpected();
      return term;
    }
    if (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return number();
    if (rest().starts_with("L['")) return inputSize();
    const size_t start = at_;
    while (at_ < text_.size() && isName(text_[at_])) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) return unexpected();
    if (takes("(")) return named(name);
    Term term;
    if (name == "True" || name == "False") {
      term.number = SizeNumber::whole(name == "True" ? 1 : 0);
      return term;
    }
    term.kind = Term::Kind::Symbol;
    term.text = name;
    return term;
  }

  Result<Term> number() {
    Term term;
    const char* const first = text_.data() + at_;
    const char* const last = text_.data() + text_.size();
    int64_t whole = 0;
    auto [end, error] = std::from_chars(first, last, whole);
    if (error == std::errc() && end != last && (*end == '.' || *end == 'e')) {
      double real = 0;
      const auto parsed = std::from_chars(first, last, real);
      end = parsed.ptr;
      error = parsed.ec;
      term.number = SizeNumber::ofReal(real);
    } else {
      term.number = SizeNumber::whole(whole);
    }
    if (error != std::errc()) return unexpected();
    at_ += static_cast<size_t>(end - first);
    return term;
  }

  /// L['x'].size()[1]
  Result<Term> inputSize() {
    at_ += 3;
    const size_t end = text_.find("']", at_);
    if (end == std::string_view::npos) return unexpected();
    Term term;
    term.kind = Term::Kind::Size;
    term.text = text_.substr(at_, end - at_);
    at_ = end + 2;
    if (!takes(".size()[")) return unexpected();
    CARINA_TRY(const Term dimension, number());
    term.number = dimension.number;
    if (!takes("]")) return unexpected();
    return term;
  }

  /// After NAME(.
  Result<Term> named(std::string_view name) {
    if (name == "Symbol" || name == "Float") return quoted(name);
    std::vector<Term> arguments;
    while (!takes(")")) {
      if (!arguments.empty() && !takes(",")) return unexpected();
      CARINA_TRY(Term argument, disjunction());
      arguments.push_back(std::move(argument));
    }
    if (name == "Integer" && arguments.size() == 1) return std::move(arguments[0]);
    if (name == "Rational" && arguments.size() == 2) return rational(arguments);
    const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const Named& candidate) { return candidate.name == name; });
    if (function == std::end(kFunctions)) {
      return fail(Code::UnsupportedForm, "the size '{}' is computed by {}, which is not supported", text_,
                  name);
    }
    const bool fits = takesTwo(function->op) ? arguments.size() >= 2 : arguments.size() == 1;
    if (!fits) return unexpected();
    return call(function->op, std::move(arguments));
  }

  /// ('s77', positive=True, integer=True) or ('0.5', precision=53), after the opening parenthesis.
  Result<Term> quoted(std::string_view name) {
    const size_t close = text_.find(')', at_);
    if (!takes("'") || close == std::string_view::npos) return unexpected();
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos || end == at_ || end > close) return unexpected();
    Term term;
    term.text = text_.substr(at_, end - at_);
    at_ = close + 1;
    if (name == "Symbol") {
      term.kind = Term::Kind::Symbol;
      return term;
    }
    double real = 0;
    const char* const last = term.text.data() + term.text.size();
    const auto [stop, error] = std::from_chars(term.text.data(), last, real);
    if (error != std::errc() || stop != last) return unexpected();
    term.number = SizeNumber::ofReal(real);
    return term;
  }

  Result<Term> rational(const std::vector<Term>& arguments) {
    // Rational(-1, 2): the sign is an operator.
    const bool negative = arguments[0].kind == Term::Kind::Call && arguments[0].op == SizeOp::Neg;
    const Term& above = negative ? arguments[0].arguments[0] : arguments[0];
    const auto value = fraction(above.number.numerator, arguments[1].number.numerator);
    const bool numbers = above.kind == Term::Kind::Number && arguments[1].kind == Term::Kind::Number;
    if (!numbers || !value) return unexpected();
    Term term;
    term.number = *value;
    if (negative) return single(SizeOp::Neg, std::move(term));
    return term;
  }

  std::string_view text_;
  size_t at_ = 0;
  int nested_ = 0, calls_ = 0;
};

void collect(const Term& term, std::vector<std::string>& symbols) {
  if (term.kind == Term::Kind::Symbol &&
      std::find(symbols.begin(), symbols.end(), term.text) == symbols.end())
    symbols.push_back(term.text);
  for (const Term& argument : term.arguments) collect(argument, symbols);
}

std::string print(const Term& term);

/// In parentheses if it is an operation.
std::string factor(const Term& term) {
  return term.kind == Term::Kind::Call ? "(" + print(term) + ")" : print(term);
}

std::string print(const Term& term) {
  switch (term.kind) {
    case Term::Kind::Number:
      if (!term.number.exact) return fmt::format("{}", term.number.real);
      return term.number.denominator == 1
                 ? std::to_string(term.number.numerator)
                 : fmt::format("{}/{}", term.number.numerator, term.number.denominator);
    case Term::Kind::Symbol:
      return term.text;
    case Term::Kind::Size:
      return fmt::format("{}.size({})", term.text, term.number.numerator);
    case Term::Kind::Call:
      break;
  }
  const auto joined = [&](std::string_view separator, auto text) {
    std::string all;
    for (const Term& argument : term.arguments)
      all += (all.empty() ? "" : std::string(separator)) + text(argument);
    return all;
  };
  if (term.op == SizeOp::Neg) return "-" + factor(term.arguments[0]);
  if (term.op == SizeOp::Mul) return joined("*", factor);
  if (term.op == SizeOp::Add) {
    return joined(" + ", [](const Term& part) {
      return part.kind == Term::Kind::Call && part.op != SizeOp::Mul ? factor(part) : print(part);
    });
  }
  for (const auto* operators : {std::begin(kSums), std::begin(kProducts), std::begin(kComparisons)}) {
    const size_t count = operators == std::begin(kSums)       ? std::size(kSums)
                         : operators == std::begin(kProducts) ? std::size(kProducts)
                                                              : std::size(kComparisons);
    for (size_t i = 0; i < count; ++i) {
      if (operators[i].op == term.op) return joined(fmt::format(" {} ", operators[i].name), factor);
    }
  }
  const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                      [&](const Named& candidate) { return candidate.op == term.op; });
  return fmt::format("{}({})", function == std::end(kFunctions) ? "+" : function->name, joined(", ", print));
}

class Evaluator {
 public:
  Evaluator(std::string_view text, const SizeLookup& lookup) : text_(text), lookup_(lookup) {}

  Result<SizeNumber> of(const Term& term) const {
    switch (term.kind) {
      case Term::Kind::Number:
        return term.number;
      case Term::Kind::Symbol: {
        const auto value = lookup_.symbol ? lookup_.symbol(term.text) : std::nullopt;
        if (!value) return fail(Code::DependsOnValues, "the size '{}' has no value for {}", text_, term.text);
        return *value;
      }
      case Term::Kind::Size: {
        const auto value = lookup_.size ? lookup_.size(term.text, term.number.numerator) : std::nullopt;
        if (!value) return fail(Code::UnsupportedForm, "'{}' does not name a dimension of an input", text_);
        return *value;
      }
      case Term::Kind::Call:
        break;
    }
    CARINA_TRY(SizeNumber result, of(term.arguments[0]));
    std::optional<SizeNumber> next = result;
    if (!takesTwo(term.op)) next = compute(term.op, result);
    for (size_t i = 1; i < term.arguments.size() && next; ++i) {
      CARINA_TRY(const SizeNumber argument, of(term.arguments[i]));
      next = compute(term.op, *next, argument);
    }
    if (!next) return fail(Code::InvalidGraph, "the size '{}' does not fit 64 bits", text_);
    return *next;
  }

 private:
  std::string_view text_;
  const SizeLookup& lookup_;
};

}  // namespace

std::vector<std::string> symbolsIn(std::string_view expression) {
  std::vector<std::string> symbols;
  if (const auto term = Parser(expression).run()) collect(*term, symbols);
  return symbols;
}

std::string sizeText(std::string_view expression) {
  const auto term = Parser(expression).run();
  return term ? print(*term) : std::string(expression);
}

Result<SizeNumber> evaluate(std::string_view expression, const SizeLookup& lookup) {
  CARINA_TRY(const Term term, Parser(expression).run());
  return Evaluator(expression, lookup).of(term);
}

}  // namespace carina::pt2
