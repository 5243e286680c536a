#include "cli/text_positions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/yaml_text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "experiments/by_position.h"
#include "experiments/identity.h"
#include "experiments/run.h"
#include "figures/draw.h"
#include "figures/table.h"

namespace lrnn::cli {
namespace {

using experiments::DomainCurve;

// Runs that differ in their seed alone are one model.
struct Seeds {
  std::string config;  // without the seed
  experiments::Identity identity;
  int64_t trained = 0;  // the length of training; 0: no language model
  std::vector<std::string> runs;
  std::vector<std::vector<DomainCurve>> curves;  // of each run
};

struct Spread {
  double mean = 0, lowest = 0, highest = 0;
};

// What a model loses at one position: the mean over its runs, and how far they lie apart.
struct SeedsPoint {
  int64_t position = 0;
  Spread smoothed;
};

Seeds read_one(const std::string& run) {
  if (!std::filesystem::exists(run + "/config.yaml"))
    throw Error(cat(run, " is not a run"), "give the folder that `lrnn train --out` wrote");
  const auto config = experiments::read_config(run + "/config.yaml", {});
  auto resolved = experiments::resolve(config);
  resolved.remove("seed");
  Seeds out{.config = YAML::Dump(resolved),
            .identity = experiments::identity(config.model),
            .runs = {run},
            .curves = {experiments::read_positions(run)}};
  if (config.task.text("name") == "text") {
    const YAML::Node length = resolved["task"]["train"]["length"];  // a number, or [low, high]
    out.trained = (length.IsSequence() ? length[length.size() - 1] : length).as<int64_t>();
  }
  return out;
}

std::vector<Seeds> read_all(const std::vector<std::string>& runs) {
  std::vector<Seeds> out;
  for (const auto& run : runs) {
    auto one = read_one(run);
    const auto same =
        std::find_if(out.begin(), out.end(), [&](auto& s) { return s.config == one.config; });
    if (same == out.end()) {
      out.push_back(std::move(one));
      continue;
    }
    same->runs.push_back(run);
    same->curves.push_back(std::move(one.curves[0]));
  }
  return out;
}

std::vector<std::string> domains_of(const std::vector<Seeds>& all) {
  std::vector<std::string> out;
  for (const auto& model : all)
    for (const auto& curves : model.curves)
      for (const auto& curve : curves)
        if (std::find(out.begin(), out.end(), curve.name) == out.end()) out.push_back(curve.name);
  return out;
}

std::vector<SeedsPoint> over_seeds(const Seeds& model, const std::string& domain, int64_t first) {
  std::vector<SeedsPoint> out;
  const DomainCurve* pattern = nullptr;
  for (size_t run = 0; run < model.curves.size(); ++run) {
    const auto& curves = model.curves[run];
    const auto found =
        std::find_if(curves.begin(), curves.end(), [&](auto& c) { return c.name == domain; });
    if (found == curves.end()) continue;
    if (pattern && found->rows.size() != pattern->rows.size())
      throw Error(cat(model.runs[run], " was evaluated at other positions than ", model.runs[0]),
                  "evaluate both with the same --data and --lengths");
    for (size_t i = 0; i < found->rows.size(); ++i) {
      const double x = found->rows[i].smoothed;
      if (!pattern) out.push_back({found->rows[i].position, {0, x, x}});
      auto& at = out[i].smoothed;
      at.mean += x, at.lowest = std::min(at.lowest, x), at.highest = std::max(at.highest, x);
    }
    pattern = &*found;
  }
  const auto count = double(std::count_if(model.curves.begin(), model.curves.end(), [&](auto& c) {
    return std::any_of(c.begin(), c.end(), [&](auto& d) { return d.name == domain; });
  }));
  for (auto& point : out) point.smoothed.mean /= count;
  std::erase_if(out, [&](const auto& point) { return point.position < first; });
  return out;
}

// Models of one name are told apart by their folders.
std::string name_of(const Seeds& model, const std::vector<Seeds>& all) {
  const auto same = std::count_if(all.begin(), all.end(), [&](auto& other) {
    return other.identity.name == model.identity.name;
  });
  return same == 1 ? model.identity.name : model.identity.name + ", " + model.runs[0];
}

std::string panel(const std::vector<Seeds>& all, const std::string& domain, int64_t first) {
  figures::LineChart chart{
      .title = "Loss by position: " + domain,
      .x_label = "tokens read; bands: lowest and highest of the seeds",
      .y_label = "loss (nats a token), smoothed",
      .log_x = true,
  };
  int64_t longest = 0;
  for (const auto& model : all) {
    figures::Series series{name_of(model, all), {}};
    if (all.size() > 1) series.style = figures::style_of(model.identity.key);
    double next = 0;
    const auto points = over_seeds(model, domain, first);
    for (const auto& p : points) {
      longest = std::max(longest, p.position);
      if (double(p.position) < next && &p != &points.back()) continue;
      series.points.push_back(
          {double(p.position), p.smoothed.mean, p.smoothed.lowest, p.smoothed.highest});
      next = double(p.position) * kNextPosition;
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  for (const auto& model : all) {
    const auto at = double(model.trained);
    if (model.trained > first && model.trained <= longest &&
        std::none_of(chart.markers.begin(), chart.markers.end(),
                     [&](auto& m) { return m.x == at; }))
      chart.markers.push_back({at, "length in training"});
  }
  return draw(chart);
}

figures::Table csv(const std::vector<Seeds>& all, const std::vector<std::string>& domains,
                   int64_t first) {
  figures::Table out({"model", "domain", "position", "mean", "lowest", "highest", "runs"});
  for (const auto& model : all)
    for (const auto& domain : domains)
      for (const auto& p : over_seeds(model, domain, first))
        out.row({name_of(model, all), domain, std::to_string(p.position),
                 decimals(p.smoothed.mean, 6), decimals(p.smoothed.lowest, 6),
                 decimals(p.smoothed.highest, 6), std::to_string(model.runs.size())});
  return out;
}

// The point that is nearest from below.
const SeedsPoint* at_position(const std::vector<SeedsPoint>& points, int64_t position) {
  const SeedsPoint* out = nullptr;
  for (const auto& p : points)
    if (p.position <= position) out = &p;
  return out;
}

void print(const std::vector<Seeds>& all, const std::vector<std::string>& domains, int64_t first) {
  constexpr int64_t kOctaves[] = {256, 1024, 4096, 8192, 16384, 32768};
  std::vector<std::string> head = {"model", "domain", "runs"};
  for (const int64_t position : kOctaves) head.push_back(thousands(position));
  figures::Table table(head);
  for (const auto& domain : domains)
    for (const auto& model : all) {
      const auto points = over_seeds(model, domain, first);
      std::vector<std::string> row = {name_of(model, all), domain,
                                      std::to_string(model.runs.size())};
      for (const int64_t position : kOctaves) {
        // The last of 32,768 tokens is the 32,767th that predicts.
        const auto* p = at_position(points, position);
        const bool there = p && double(p->position) * kNextPosition >= double(position - 1);
        row.push_back(there ? decimals(p->smoothed.mean, 4) : "–");
      }
      table.row(row);
    }
  std::cout << table.text();
}

}  // namespace

int show_positions(const std::vector<std::string>& runs, const PositionOptions& how) {
  const auto all = read_all(runs);
  auto domains = domains_of(all);
  if (!how.domain.empty()) {
    if (std::find(domains.begin(), domains.end(), how.domain) == domains.end())
      throw Error(cat("no run was evaluated on '", how.domain, "'"),
                  cat("there are ", fmt::format("{}", fmt::join(domains, ", "))));
    domains = {how.domain};
  }
  const std::string figure = how.out.empty() ? runs[0] + "/figures/positions.svg" : how.out;
  const auto table = std::filesystem::path(figure).replace_extension(".csv").string();
  check(table != figure, "-o names the figure, and ", figure, " is where its numbers would go");
  std::vector<std::string> panels;
  for (const auto& domain : domains) panels.push_back(panel(all, domain, how.first));
  write_file(figure, panels.size() == 1 ? panels[0] : figures::stack(panels, "Loss by position"));
  write_file(table, csv(all, domains, how.first).csv());
  if (how.json) {
    Json models = Json::array();
    for (const auto& model : all) {
      Json curves = Json::object();
      for (const auto& domain : domains)
        for (const auto& p : over_seeds(model, domain, how.first))
          curves[domain].push_back(
              {p.position, p.smoothed.mean, p.smoothed.lowest, p.smoothed.highest});
      models.push_back({{"name", name_of(model, all)}, {"runs", model.runs}, {"curves", curves}});
    }
    print_json({{"models", models}, {"figure", figure}, {"csv", table}});
    return kDone;
  }
  print(all, domains, how.first);
  std::cout << "table: " << table << "\nfigure: " << figure << "\n";
  return kDone;
}

}  // namespace lrnn::cli
