#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <limits>

#include "cli/command.h"
#include "cli/eval.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "experiments/ranks.h"
#include "experiments/text_run.h"
#include "figures/draw.h"
#include "text/corpus.h"

// `lrnn eval --rank`: the effective rank of a language model's states along a text, by head.
namespace lrnn::cli {
namespace {

using experiments::DomainRanks;
using experiments::HeadRank;
using lrnn::tasks::Split;

constexpr int64_t kLength = 16384;  // as published

// A model and what its states came to.
struct Ranked {
  std::string folder;
  experiments::Run run;
  lrnn::tasks::TaskPtr task = {};
  experiments::RankOptions how = {};
  std::vector<DomainRanks> domains = {};

  std::string csv() const { return folder + "/eval/rank.csv"; }
  int64_t trained() const { return run.task->length(Split::kTrain).hi; }
  // The last look at or before that token.
  size_t look_at(const HeadRank& head, int64_t token) const {
    return std::min(head.rank.size() - 1, size_t(token / how.every * head.steps));
  }
};

// The longest window that the held-out part of every one of these folders fills; it may want the
// token behind it.
int64_t longest_window(const std::vector<std::string>& folders) {
  int64_t out = std::numeric_limits<int64_t>::max();
  for (const auto& folder : folders)
    if (const int64_t tokens = text::Corpus::open(folder).eval.tokens(); tokens > 0)
      out = std::min(out, tokens - 1);
  return out;
}

int64_t length_of(const EvalArguments& a, const experiments::Run& run) {
  if (a.length.given()) {
    if (!a.length.each.empty() || a.length.range.lo != a.length.range.hi)
      throw Error("--rank reads sequences of one length", "such as --lengths 16384");
    return a.length.range.hi;
  }
  const auto folders = a.data.empty() ? experiments::data_folders(run.config) : a.data;
  if (folders.empty()) return run.task->length(Split::kEval).hi;
  return std::min(kLength, longest_window(folders));
}

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / double(x.size());
}

figures::Table ranks_table(const Ranked& one) {
  const bool beyond = one.trained()<one.how.length, named = one.domains.size()> 1;
  std::vector<std::string> head = {"layer", "head", "of", "mean", "largest", "at the end"};
  if (beyond) head.insert(head.end() - 1, "at " + thousands(one.trained()));
  if (named) head.insert(head.begin(), "domain");
  figures::Table out(head);
  for (const auto& domain : one.domains)
    for (const auto& h : domain.heads) {
      std::vector<std::string> row = {std::to_string(h.layer),
                                      std::to_string(h.head),
                                      std::to_string(h.most),
                                      decimals(mean(h.rank), 2),
                                      decimals(*std::max_element(h.rank.begin(), h.rank.end()), 2),
                                      decimals(h.rank.back(), 2)};
      if (beyond) row.insert(row.end() - 1, decimals(h.rank[one.look_at(h, one.trained())], 2));
      if (named) row.insert(row.begin(), domain.name);
      out.row(row);
    }
  return out;
}

figures::Table ranks_csv(const Ranked& one) {
  figures::Table out({"domain", "layer", "head", "position", "step", "rank", "sequences"});
  for (const auto& domain : one.domains)
    for (const auto& h : domain.heads)
      for (size_t i = 0; i < h.rank.size(); ++i)
        out.row({domain.name, std::to_string(h.layer), std::to_string(h.head),
                 std::to_string(int64_t(i) / h.steps * one.how.every),
                 std::to_string(int64_t(i) % h.steps), decimals(h.rank[i], 5),
                 std::to_string(domain.sequences)});
  return out;
}

figures::Series rank_series(const Ranked& one, const HeadRank& h) {
  constexpr size_t kPoints = 600;  // more than a reader can see
  figures::Series out{fmt::format("head {}", h.head), {}};
  const size_t stride = std::max<size_t>(1, h.rank.size() / kPoints);
  for (size_t i = 0; i < h.rank.size(); i += stride) {
    const double x = double(i) * double(one.how.every) / double(h.steps);
    out.points.push_back({x, h.rank[i], h.rank[i], h.rank[i]});
  }
  return out;
}

// A chart for each layer, a line for each head; beginnings of documents are rules without a name.
std::string rank_figure(const Ranked& one) {
  constexpr size_t kBeginnings = 40;
  std::vector<std::string> charts;
  for (const auto& domain : one.domains)
    for (auto first = domain.heads.begin(); first != domain.heads.end();) {
      const auto end = std::find_if(first, domain.heads.end(),
                                    [&](const auto& h) { return h.layer != first->layer; });
      figures::LineChart chart{
          .title = fmt::format("{}Layer {}", domain.name.empty() ? "" : domain.name + ": ",
                               first->layer),
          .x_label = "tokens read",
          .y_label = fmt::format("effective rank, of {}", first->most),
          .y = {{0, 1}}};
      for (; first != end; ++first) chart.series.push_back(rank_series(one, *first));
      if (one.trained() <= one.how.length)
        chart.markers.push_back({double(one.trained()), "length in training"});
      if (domain.beginnings.size() <= kBeginnings)
        for (const int64_t t : domain.beginnings) chart.markers.push_back({double(t), ""});
      charts.push_back(draw(chart));
    }
  return figures::stack(charts, "Effective rank of the states");
}

Json ranks_json(const Ranked& one, const std::string& figure) {
  Json domains = Json::array();
  for (const auto& domain : one.domains) {
    Json heads = Json::array();
    for (const auto& h : domain.heads) {
      heads.push_back({{"layer", h.layer},
                       {"head", h.head},
                       {"most", h.most},
                       {"steps", h.steps},
                       {"mean", mean(h.rank)},
                       {"largest", *std::max_element(h.rank.begin(), h.rank.end())}});
      if (one.trained() < one.how.length)
        heads.back()["at_training_length"] = h.rank[one.look_at(h, one.trained())];
      heads.back()["end"] = h.rank.back();
    }
    domains.push_back({{"name", domain.name}, {"sequences", domain.sequences}, {"heads", heads}});
  }
  return {{"run", one.folder},        {"step", one.run.step},   {"damaged", one.run.damaged},
          {"length", one.how.length}, {"every", one.how.every}, {"training_length", one.trained()},
          {"domains", domains},       {"csv", one.csv()},       {"figure", figure}};
}

void measure_ranks(Ranked& one, const EvalArguments& a) {
  one.task = a.data.empty() ? one.run.task : with_data(one.run, a.data);
  one.task->verify(false);
  one.how = {.length = length_of(a, one.run),
             .every = a.every,
             .samples = a.samples,
             .seed = a.seed < 0 ? uint64_t(one.run.config.seed) : uint64_t(a.seed),
             .precision = a.precision.empty() ? one.run.config.train.precision : a.precision,
             .accuracy = a.accuracies.empty() ? "" : a.accuracies[0]};
  ProgressBar bar(a.json);
  one.domains = experiments::ranks(*one.run.model, *one.task, one.how, [&](int64_t tokens) {
    bar.show(thousands(tokens) + " tokens");
  });
  const bool any = std::any_of(one.domains.begin(), one.domains.end(),
                               [](const auto& domain) { return !domain.heads.empty(); });
  if (!any)
    throw Error(cat("no layer of ", one.folder, " keeps a matrix whose rank could be taken"),
                "delta_product, gla, rwkv7 and mlstm have one; those of titans and ttt are not "
                "followed, attention keeps the tokens themselves, mamba and slstm "
                "numbers by channel");
}

}  // namespace

int evaluate_ranks(const EvalArguments& a, const std::string& device) {
  if (a.runs.size() != 1) throw Error("--rank looks at one model", "name one run");
  check(a.accuracies.size() < 2, "kernels are not compared by --rank: name one");
  Ranked one{find_run(a.runs[0]), open_run(a.runs[0])};
  one.run.model->to(torch::Device(device));
  measure_ranks(one, a);
  const std::string figure = a.out.empty() ? one.folder + "/figures/rank.svg" : a.out;
  write_file(one.csv(), ranks_csv(one).csv());
  write_file(figure, rank_figure(one));
  if (a.json) return print_json(ranks_json(one, figure)), kDone;
  std::cout << ranks_table(one).text()
            << fmt::format("effective rank of the states along {} of {} tokens (step {})\n",
                           one.domains[0].sequences == 1
                               ? std::string("a sequence")
                               : fmt::format("{} sequences", one.domains[0].sequences),
                           thousands(one.how.length), thousands(one.run.step))
            << "table: " << one.csv() << "\nfigure: " << figure << "\n";
  return kDone;
}

}  // namespace lrnn::cli
