#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <span>

#include "base/atomic_file.h"
#include "cli/command.h"
#include "cli/eval.h"
#include "cli/find.h"
#include "cli/judge.h"
#include "cli/output.h"
#include "experiments/imported.h"
#include "experiments/text_run.h"
#include "ops/torch.h"
#include "text/python_text.h"
#include "text/question.h"
#include "training/precision.h"

// `lrnn eval --task`: the questions of language-model benchmarks, from files.
namespace lrnn::cli {
namespace {

constexpr int64_t kMostTokens = 2048;  // where no config says what a model was made for

using text::Question;
using text::Request;

// What all questions of a file come to.
struct TaskScore {
  std::string name;
  Question::Kind kind = Question::kChoice;
  int64_t documents = 0, right = 0, right_norm = 0, words = 0, bytes = 0;
  double sum = 0;
  bool swapped = false;  // several contexts to one continuation: no lengths to divide by

  double share(int64_t n) const { return double(n) / double(documents); }
  // The sample's standard deviation / sqrt(n).
  double error() const {
    const double p = share(right);
    return documents > 1 ? std::sqrt(p * (1 - p) / double(documents - 1)) : std::nan("");
  }
  double perplexity() const {
    return std::exp(-sum / double(kind == Question::kRolling ? words : documents));
  }
  double byte_perplexity() const { return std::exp(-sum / double(bytes)); }
  double bits() const { return -sum / (std::log(2) * double(bytes)); }

  Json json() const {
    const auto finite = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
    Json out{{"name", name}, {"documents", documents}};
    if (kind != Question::kRolling) out["acc"] = share(right);
    if (kind == Question::kChoice && !swapped) out["acc_norm"] = share(right_norm);
    if (kind == Question::kCloze || kind == Question::kRolling) out["ppl"] = finite(perplexity());
    if (kind == Question::kRolling) {
      out["byte_ppl"] = finite(byte_perplexity());
      out["bits_per_byte"] = finite(bits());
    }
    if (kind != Question::kRolling) out["stderr"] = finite(error());
    return out;
  }
};

size_t best(const std::vector<double>& scores) {
  return size_t(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

Json count(const Question& q, const std::vector<Likelihood>& said, TaskScore& to) {
  ++to.documents;
  std::vector<double> sums, norms;
  Json line{{"task", to.name}, {"document", to.documents - 1}};
  for (size_t i = 0; i < said.size(); ++i) {
    sums.push_back(said[i].sum);
    if (q.kind == Question::kChoice) norms.push_back(said[i].sum / double(q.characters[i]));
  }
  if (q.kind == Question::kRolling) {
    double all = 0;
    for (const double x : sums) all += x;
    to.sum += all, to.words += q.words, to.bytes += q.bytes;
    line["loglikelihoods"] = {all}, line["words"] = q.words, line["bytes"] = q.bytes;
    return line;
  }
  line["loglikelihoods"] = sums;
  if (q.kind == Question::kCloze) {
    to.right += said[0].greedy, to.sum += sums[0];
    line["greedy"] = said[0].greedy;
    return line;
  }
  to.right += best(sums) == q.gold, to.right_norm += best(norms) == q.gold;
  line["gold"] = q.gold, line["best"] = best(sums);
  if (!q.swapped) line["best_norm"] = best(norms);
  return line;
}

// A model with its tokenizer, being asked.
struct Asked {
  const Judge& judge;
  const text::Tokenizer& tokenizer;
  text::Encoder& encoder;
  const experiments::TextRun& texts;
  text::Asking how;

  std::vector<Request> requests(const Question& q) const {
    if (q.kind == Question::kRolling) {
      text::Ids ids;
      encoder.encode(q.text, ids);
      return text::rolling_requests(ids, how);
    }
    std::vector<Request> out;
    for (const auto& pair : q.pairs) out.push_back(request_of(pair, encoder, how));
    return out;
  }
};

// What `work` does for a question; what goes wrong names its line.
template <class Work> auto at_line(const Question& q, Work work) {
  try {
    return work();
  } catch (const Error& e) {
    throw Error(cat(q.where, ": ", e.what()), e.hint());
  }
}

// Some questions in one go: a line for each.
std::string score_some(std::span<const Question> some, const Asked& asked, TaskScore& to) {
  std::vector<Request> requests;
  std::vector<size_t> begin;
  for (const auto& q : some) {
    begin.push_back(requests.size());
    auto more = at_line(q, [&] { return asked.requests(q); });
    std::move(more.begin(), more.end(), std::back_inserter(requests));
  }
  begin.push_back(requests.size());
  const auto said = asked.judge.of(requests);
  std::string lines;
  for (size_t i = 0; i < some.size(); ++i) {
    const std::vector<Likelihood> mine(said.begin() + ptrdiff_t(begin[i]),
                                       said.begin() + ptrdiff_t(begin[i + 1]));
    lines += count(some[i], mine, to).dump() + "\n";
  }
  return lines;
}

std::string score_completion(const Question& q, const Asked& asked, TaskScore& to) {
  const auto prompt = at_line(q, [&] { return prompt_of(q, asked.encoder, asked.how); });
  const auto said = asked.judge.complete(prompt, asked.tokenizer, asked.texts);
  const bool right = text::contains_in_any_case(said, q.wanted);
  const Json line{
      {"task", to.name}, {"document", to.documents}, {"text", said}, {"contains", right}};
  ++to.documents, to.right += right;
  return line.dump() + "\n";
}

TaskScore score_file(const std::string& file, const std::string& format, const Asked& asked,
                     std::string& lines) {
  const auto questions = text::read_questions(file, format);
  TaskScore out;
  out.name = std::filesystem::path(file).stem().string();
  out.kind = questions[0].kind, out.swapped = questions[0].swapped;
  const size_t at_once = out.kind == Question::kCompletion ? 1 : 64;
  for (size_t first = 0; first < questions.size(); first += at_once) {
    const auto some =
        std::span(questions).subspan(first, std::min(at_once, questions.size() - first));
    lines += out.kind == Question::kCompletion ? score_completion(some[0], asked, out)
                                               : score_some(some, asked, out);
  }
  return out;
}

// RUN/eval/tasks.json has the last score of every task; `lrnn reproduce lm --list` reads it. Those
// of another step, or asked otherwise, go.
void keep_scores(const std::string& folder, int64_t step, const std::string& bos, int64_t longest,
                 const Json& list) {
  if (model::is_published(folder)) return;  // somebody else's folder
  const std::string file = experiments::run_around(folder) + "/eval/tasks.json";
  Json all{{"step", step}, {"bos", bos}, {"max_length", longest}, {"tasks", list}};
  if (std::filesystem::exists(file)) {
    const auto before = Json::parse(read_file(file), nullptr, false);
    if (before.is_object() && before.value("step", int64_t(-1)) == step &&
        before.value("bos", "") == bos && before.value("max_length", int64_t(0)) == longest)
      for (const auto& one : before.at("tasks"))
        if (std::none_of(list.begin(), list.end(),
                         [&](const Json& now) { return now["name"] == one["name"]; }))
          all["tasks"].push_back(one);
  }
  write_file(file, all.dump(1) + "\n");
}

}  // namespace

int evaluate_tasks(const EvalArguments& a, const std::string& device) {
  if (a.runs.size() != 1) throw Error("--task asks one model", "name one run");
  const std::string folder = find_run(a.runs[0]);
  auto texts = experiments::text_run(folder);
  auto run = open_run(folder);
  run.model->to(torch::Device(device));
  const auto tokenizer = text::open_tokenizer(texts.tokenizer);
  texts.or_else(tokenizer->bos, tokenizer->eos);
  const auto encoder = tokenizer->encoder();
  const text::Asking how{.bos = a.bos == "always",
                         .prefix = texts.bos   ? *texts.bos
                                   : texts.eos ? *texts.eos
                                               : -1,
                         .longest = a.max_length    ? a.max_length
                                    : texts.longest ? *texts.longest
                                                    : kMostTokens};
  if (how.bos && how.prefix < 0)
    throw Error("--bos always needs a tokenizer with BOS", "leave it at never");
  const torch::InferenceMode no_gradients;
  const auto& precision = a.precision.empty() ? run.config.train.precision : a.precision;
  const training::Precision guard(precision, run.model->device().type());
  const Judge judge(*run.model, precision, a.logits == "bfloat16");
  const Asked asked{judge, *tokenizer, *encoder, texts, how};
  Json list = Json::array();
  std::string lines;
  figures::Table table({"task", "documents", "acc", "acc_norm", "ppl", "bits per byte", "stderr"});
  for (const auto& file : a.tasks) {
    const auto json = score_file(file, a.format, asked, lines).json();
    list.push_back(json);
    const auto cell = [&](const char* key) {
      return json.contains(key) && json[key].is_number() ? decimals(json[key].get<double>(), 4)
                                                         : std::string("–");
    };
    table.row({json["name"].get<std::string>(), std::to_string(json["documents"].get<int64_t>()),
               cell("acc"), cell("acc_norm"), cell("ppl"), cell("bits_per_byte"), cell("stderr")});
  }
  if (!a.out.empty()) write_file(a.out, lines);
  keep_scores(folder, run.step, a.bos, how.longest, list);
  if (a.json)
    return print_json({{"run", folder},
                       {"step", run.step},
                       {"bos", a.bos},
                       {"max_length", how.longest},
                       {"tasks", list}}),
           kDone;
  std::cout << table.text() << "BOS " << a.bos << ", at most " << how.longest << " tokens\n";
  return kDone;
}

}  // namespace lrnn::cli
