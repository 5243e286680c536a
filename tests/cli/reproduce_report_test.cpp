#include "cli/reproduce_report.h"

#include <gtest/gtest.h>

#include "figures/style.h"

namespace lrnn::cli {
namespace {

using experiments::Summary;

ReproduceReport report_with(double scale) {
  ReproduceReport out;
  out.suite = {"x", "about", "a paper", "scaled accuracy", {}};
  out.options.scale = scale;
  out.options.seeds = 2;
  experiments::CellOutcome cell;
  cell.cell.task = "parity", cell.cell.model = "A [0,1]";
  cell.cell.published = {1, 0.99, 0.01};
  cell.cell.curve = {{10, 1}, {100, 0.5}};
  cell.ours = {0.7, 0.6, 0.1};
  cell.trained_to = 40, cell.seconds = 90;
  experiments::Outcome run;
  run.done = true, run.score = 0.6;
  run.lengths = {{10, 1}, {100, 0.2}}, run.training = {{10, 0.8}, {20, 0.6}};
  run.validation = {{10, 0.75}, {20, 0.5}}, run.chosen = {10, 0.75, 0.8};
  cell.chosen = {0.8, 0.8, 0};
  cell.runs = {run, {}};
  out.cells = {cell};
  cell = {};
  cell.cell.task = "S5", cell.cell.model = "B", cell.cell.says = "solved", cell.prefix = true;
  cell.runs = {{}, {}};
  out.cells.push_back(cell);
  out.failures = {"S5, B, seed 1: why"};
  return out;
}

std::vector<std::string> forms(const ReproduceReport& report) {
  return {reproduce_table(report).csv(), reproduce_markdown(report), reproduce_json(report).dump(),
          reproduce_page(report)};
}

bool holds_any_case(std::string text, const std::string& word) {
  for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
  return text.find(word) != std::string::npos;
}

TEST(ReproduceReport, MarksWhatIsShortenedInEveryForm) {
  for (const auto& form : forms(report_with(0.05))) EXPECT_TRUE(holds_any_case(form, "shortened"));
  const auto whole = forms(report_with(1));
  for (size_t i : {0, 1, 3}) EXPECT_FALSE(holds_any_case(whole[i], "shortened")) << whole[i];
  EXPECT_NE(whole[2].find("\"shortened\":false"), std::string::npos);
  auto changed = report_with(1);
  changed.options.keys = {"model.width=32"};
  for (const auto& form : forms(changed)) EXPECT_TRUE(holds_any_case(form, "changed"));
}

TEST(ReproduceReport, ShowsOursBesideThePublished) {
  EXPECT_EQ(reproduce_table(report_with(1)).csv(),
            "task,model,published best,published median ± MAD,last step best,"
            "last step median ± MAD,chosen best,chosen median ± MAD,seeds,wall time,remark\n"
            "parity,\"A [0,1]\",1.000,0.990 ± 0.010,0.700,0.600 ± 0.100,0.800,0.800 ± 0.000,1 of 2,"
            "1 min 30 s,lower by 0.390\n"
            "S5,B,solved,–,–,–,–,–,0 of 2,–,\n");
  auto grid = report_with(1);
  grid.options.lr_grid = true;
  grid.cells[0].lr = 5e-4;
  EXPECT_NE(reproduce_table(grid).csv().find(",0.0005,1 of 2,"), std::string::npos);
}

TEST(ReproduceReport, SaysWhereThereWasNothingToChooseBy) {
  auto report = report_with(1);
  report.cells[0].chosen = {};
  report.cells[0].runs[0].chosen.reset();
  EXPECT_NE(reproduce_table(report).csv().find("0.600 ± 0.100,no validation,–,"),
            std::string::npos);
  EXPECT_TRUE(reproduce_json(report)["cells"][0]["chosen"]["best"].is_null());
  EXPECT_TRUE(reproduce_json(report)["cells"][0]["runs"][0]["chosen"].is_null());
  EXPECT_EQ(cell_curves(report.cells[0]).find("chosen"), std::string::npos);
}

TEST(ReproduceReport, EveryCellHasItsCurves) {
  const auto report = report_with(1);
  const auto figure = cell_curves(report.cells[0]);
  for (const char* name : {"seed 0", "chosen on the validation set", "published: 1.000"})
    EXPECT_NE(figure.find(name), std::string::npos) << name;
  EXPECT_EQ(cell_curves(report.cells[1]), "") << "nothing was evaluated";
  EXPECT_EQ(reproduce_json(report)["cells"][0]["runs"][0]["chosen"]["step"], 10);
}

TEST(ReproduceReport, ThePageHasTheCurvesAndNeedsNothingElse) {
  const auto page = reproduce_page(report_with(1));
  size_t figures = 0;
  for (size_t at = 0; (at = page.find("<figure>", at)) != std::string::npos; ++at) ++figures;
  EXPECT_EQ(figures, 4u) << "by length, as published, while training, every seed";
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("href="), std::string::npos);
  EXPECT_NE(page.find("S5, B, seed 1: why"), std::string::npos);
}

// One model, one colour in every figure, whatever stands beside it; the published curve is thin.
TEST(ReproduceReport, AModelHasOneColourOnThePage) {
  auto report = report_with(1);
  auto& cell = report.cells[0];
  cell.key = "mamba [0,1]";
  auto other = cell;  // published only, and first: colours by place would shift
  other.cell.model = "B", other.key = "attention", other.runs.clear();
  report.cells.insert(report.cells.begin(), other);
  const auto page = reproduce_page(report);
  const auto count = [&](const std::string& what) {
    size_t out = 0;
    for (size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++out;
    return out;
  };
  const std::string line = "fill=\"none\" stroke=\"", mamba = figures::style_of("mamba").colour,
                    transformer = figures::style_of("attention").colour;
  EXPECT_EQ(count(line + mamba + "\" stroke-width=\"2\""), 6u) << "three figures, three legends";
  EXPECT_EQ(count(line + mamba + "\" stroke-width=\"1.2\""), 2u) << "as published";
  EXPECT_EQ(count(line + transformer + "\" stroke-width=\"1.2\""), 2u);
  EXPECT_EQ(count(line + transformer + "\" stroke-width=\"2\""), 0u);
}

TEST(ReproduceReport, JsonHasNullWhereNothingIsKnown) {
  const auto json = reproduce_json(report_with(1));
  EXPECT_TRUE(json["cells"][1]["published"]["best"].is_null());
  EXPECT_TRUE(json["cells"][1]["ours"]["median"].is_null());
  EXPECT_EQ(json["cells"][0]["published"]["median"], 0.99);
  EXPECT_EQ(json["cells"][0]["remark"], "lower by 0.390");
}

}  // namespace
}  // namespace lrnn::cli
