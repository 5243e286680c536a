#include "cli/spectrum_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "cli/eval.h"
#include "cli/find.h"
#include "cli/output.h"
#include "experiments/betas.h"
#include "text/generated_text.h"

namespace lrnn::cli {
namespace {

using experiments::Betas;
using experiments::BetaShare;

constexpr int64_t kRareToken = 20;  // readings of it by heads; fewer say little
constexpr size_t kTokensShown = 12;

// The tokens at which most of the betas lie above 1.
std::vector<std::pair<int64_t, BetaShare>> reflecting(const Betas& seen) {
  std::vector<std::pair<int64_t, BetaShare>> out;
  for (const auto& [token, share] : seen.by_token)
    if (share.count >= kRareToken) out.emplace_back(token, share);
  std::stable_sort(out.begin(), out.end(),
                   [](auto& a, auto& b) { return a.second.share() > b.second.share(); });
  if (out.size() > kTokensShown) out.resize(kTokensShown);
  return out;
}

// Positions from 2^n - 1 on, and up to the next: where a curve over a text changes.
struct Stretch {
  size_t from, to;  // tokens read before: 0 .. 14, 15 .. 30, 31 .. 62, …
  BetaShare share;
};
std::vector<Stretch> stretches(const Betas& seen) {
  constexpr size_t kFirst = 15;  // the shortest ones together
  std::vector<Stretch> out;
  for (size_t from = 0, end = kFirst; from < seen.by_position.size();
       from = end, end = 2 * end + 1) {
    out.push_back({from, std::min(end, seen.by_position.size()) - 1, {}});
    for (size_t i = from; i <= out.back().to; ++i) out.back().share.add(seen.by_position[i]);
  }
  return out;
}

// What stands there: the token between brackets, some before and some behind it.
std::string passage(const experiments::Run& run, const Betas::Place& place) {
  constexpr int64_t kAround = 8;
  const auto tokens =
      run.task->sample(uint64_t(run.config.seed), lrnn::tasks::Split::kEval, uint64_t(place.window))
          .input;
  const auto text = [&](int64_t from, int64_t to) {
    lrnn::tasks::Example some;
    for (int64_t i = std::max<int64_t>(from, 0); i < std::min(to, int64_t(tokens.size())); ++i)
      some.input.push_back(tokens[size_t(i)]);
    return run.task->text(some);
  };
  const int64_t at = place.position;
  const std::string before = text(at - kAround, at), with = text(at - kAround, at + 1),
                    all = text(at - kAround, at + kAround);
  return before + "[" + with.substr(before.size()) + "]" + all.substr(with.size());
}

Json share_json(const BetaShare& s) {
  return {{"above_one", s.share()},
          {"mean", s.mean()},
          {"largest", s.largest},
          {"saturated", s.count ? double(s.ends) / double(s.count) : 0}};
}

Json betas_json(const experiments::Run& run, const Betas& seen) {
  Json heads = Json::array(), tokens = Json::array();
  for (const auto& head : seen.heads) {
    Json one{{"layer", head.layer}, {"head", head.head}};
    one.update(share_json(head.share));
    heads.push_back(one);
  }
  for (const auto& [token, share] : reflecting(seen)) {
    Json one{{"token", token}, {"word", run.task->word(token)}};
    one.update(share_json(share));
    tokens.push_back(one);
  }
  Json out{
      {"run", run.folder}, {"step", run.step}, {"damaged", run.damaged}, {"tokens", seen.tokens}};
  out.update(share_json(seen.all));
  Json positions = Json::array(), places = Json::array();
  for (const auto& stretch : stretches(seen)) {
    positions.push_back({{"from", stretch.from}, {"to", stretch.to}});
    positions.back().update(share_json(stretch.share));
  }
  for (const auto& place : seen.places) {
    places.push_back({{"window", place.window},
                      {"position", place.position},
                      {"text", text::whole_characters(passage(run, place))}});
    places.back().update(share_json(place.share));
  }
  out["heads"] = heads, out["at_tokens"] = tokens;
  out["by_position"] = positions, out["places"] = places;
  return out;
}

void print_betas(const experiments::Run& run, const Betas& seen) {
  figures::Table table({"layer", "head", "above 1", "mean", "largest", "near 2"});
  const auto row = [&](const std::string& layer, const std::string& head, const BetaShare& s) {
    table.row({layer, head, fmt::format("{:.2f} %", 100 * s.share()), decimals(s.mean(), 3),
               decimals(s.largest, 3),
               fmt::format("{:.2f} %", s.count ? 100 * double(s.ends) / double(s.count) : 0)});
  };
  for (const auto& head : seen.heads)
    row(std::to_string(head.layer), std::to_string(head.head), head.share);
  row("all", "", seen.all);
  std::cout << table.text() << "\nbeta above 1: the eigenvalue 1 - beta is negative. Over "
            << thousands(seen.tokens) << " held-out tokens (step " << thousands(run.step) << ")\n";
  if (seen.all.above == 0) return;
  std::cout << "most often at:";
  for (const auto& [token, share] : reflecting(seen))
    std::cout << fmt::format(
        " {} ({:.0f} %)",
        Json(run.task->word(token)).dump(-1, ' ', false, Json::error_handler_t::replace),
        100 * share.share());
  std::cout << "\nby position:";
  for (const auto& stretch : stretches(seen))
    std::cout << fmt::format(" {} to {} ({:.1f} %)", thousands(int64_t(stretch.from)),
                             thousands(int64_t(stretch.to)), 100 * stretch.share.share());
  std::cout << "\nmost of all at the token in brackets:\n";
  for (const auto& place : seen.places)
    std::cout << fmt::format(
        "  {:3.0f} %  {}\n", 100 * place.share.share(),
        Json(passage(run, place)).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

bool show_betas(const std::vector<std::string>& runs, int64_t samples, bool json) {
  if (!std::all_of(runs.begin(), runs.end(), is_language_model)) return false;
  Json list = Json::array();
  for (const auto& name : runs) {
    auto run = open_run(name);
    const auto seen = experiments::betas(*run.model, *run.task, uint64_t(run.config.seed), samples);
    if (seen.heads.empty()) return false;
    if (json)
      list.push_back(betas_json(run, seen));
    else
      print_betas(run, seen);
  }
  if (json) print_json(list.size() == 1 ? list[0] : Json{{"runs", list}});
  return true;
}

}  // namespace lrnn::cli
