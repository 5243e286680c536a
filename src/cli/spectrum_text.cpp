#include "cli/spectrum_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "cli/eval.h"
#include "cli/find.h"
#include "cli/output.h"
#include "experiments/betas.h"

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
  out["heads"] = heads, out["at_tokens"] = tokens;
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
  std::cout << "\n";
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
