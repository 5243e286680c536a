#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "base/atomic_file.h"
#include "cli/command.h"
#include "cli/eval.h"
#include "cli/find.h"
#include "cli/output.h"
#include "experiments/text_run.h"
#include "ops/torch.h"
#include "text/question.h"
#include "training/precision.h"
#include "training/token_losses.h"

namespace lrnn::cli {
namespace {

using text::Question;
using text::Request;

struct Likelihood {
  double sum = 0;      // log
  bool greedy = true;  // every token is the argmax
};

// Scores requests, many in one forward.
class Judge {
 public:
  Judge(model::Model& model, const std::string& logits) : model_(model), logits_(logits) {}

  std::vector<Likelihood> of(const std::vector<Request>& requests) const {
    std::vector<lrnn::tasks::Example> examples;
    for (const auto& request : requests) {
      lrnn::tasks::Example e;
      e.input.assign(request.ids.begin(), request.ids.end() - 1);
      e.target.assign(e.input.size(), -1);
      for (size_t i = 0; i < request.scored; ++i)
        e.target[e.target.size() - 1 - i] = request.ids[request.ids.size() - 1 - i];
      examples.push_back(std::move(e));
    }
    const auto said = training::token_losses(model_, examples.data(), int64_t(examples.size()), {},
                                             logits_ == "bfloat16");
    std::vector<Likelihood> out(requests.size());
    for (size_t i = 0; i < requests.size(); ++i)
      for (size_t t = 0; t < examples[i].target.size(); ++t) {
        if (examples[i].target[t] < 0) continue;
        out[i].sum -= double(said[i].loss[t]);
        out[i].greedy = out[i].greedy && said[i].right[t];
      }
    return out;
  }

 private:
  model::Model& model_;
  std::string logits_;
};

// What all questions of a file come to.
struct TaskScore {
  std::string name;
  Question::Kind kind = Question::kChoice;
  int64_t documents = 0, right = 0, right_norm = 0, words = 0, bytes = 0;
  double sum = 0;
  bool swapped = false;  // several contexts: no lengths to divide by

  double share(int64_t n) const { return double(n) / double(documents); }
  // The sample's standard deviation / sqrt(n).
  double error() const {
    const double p = share(right);
    return documents > 1 ? std::sqrt(p * (1 - p) / double(documents - 1)) : std::nan("");
  }
  double perplexity() const {
    return std::exp(-sum / double(kind == Question::kRolling ? words : documents));
  }
  double bits() const { return -sum / (std::log(2) * double(bytes)); }

  Json json() const {
    const auto finite = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
    Json out{{"name", name}, {"documents", documents}};
    if (kind != Question::kRolling) out["acc"] = share(right);
    if (kind == Question::kChoice && !swapped) out["acc_norm"] = share(right_norm);
    if (kind != Question::kChoice) out["ppl"] = finite(perplexity());
    if (kind == Question::kRolling) out["bits_per_byte"] = finite(bits());
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
  line["gold"] = q.gold, line["best"] = best(sums), line["best_norm"] = best(norms);
  return line;
}

TaskScore score_file(const std::string& file, const EvalArguments& a, const Judge& judge,
                     text::Encoder& encoder, const text::Asking& how, std::string& lines) {
  const auto questions = text::read_questions(file, a.format);
  TaskScore out;
  out.name = std::filesystem::path(file).stem().string(), out.kind = questions[0].kind;
  constexpr size_t kAtOnce = 64;
  for (size_t first = 0; first < questions.size(); first += kAtOnce) {
    if (interrupted()) throw Error("interrupted");
    const size_t end = std::min(questions.size(), first + kAtOnce);
    std::vector<Request> requests;
    std::vector<size_t> begin;
    for (size_t i = first; i < end; ++i) {
      const auto& q = questions[i];
      begin.push_back(requests.size());
      try {
        if (q.kind == Question::kRolling) {
          text::Ids ids;
          encoder.encode(q.text, ids);
          for (auto& r : text::rolling_requests(ids, how)) requests.push_back(std::move(r));
        }
        for (const auto& pair : q.pairs) requests.push_back(request_of(pair, encoder, how));
      } catch (const Error& e) {
        throw Error(cat(q.where, ": ", e.what()), e.hint());
      }
    }
    begin.push_back(requests.size());
    const auto said = judge.of(requests);
    for (size_t i = first; i < end; ++i) {
      const auto& q = questions[i];
      out.swapped = q.pairs.size() > 1 && q.pairs[0].context != q.pairs[1].context;
      lines += count(q,
                     {said.begin() + ptrdiff_t(begin[i - first]),
                      said.begin() + ptrdiff_t(begin[i - first + 1])},
                     out)
                   .dump() +
               "\n";
    }
  }
  return out;
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
                         .longest = a.max_length};
  if (how.bos && how.prefix < 0)
    throw Error("--bos always needs a tokenizer with BOS", "leave it at never");
  const torch::InferenceMode no_gradients;
  const training::Precision precision(
      a.precision.empty() ? run.config.train.precision : a.precision, run.model->device().type());
  const Judge judge(*run.model, a.logits);
  Json list = Json::array();
  std::string lines;
  figures::Table table({"task", "documents", "acc", "acc_norm", "ppl", "bits per byte", "stderr"});
  for (const auto& file : a.tasks) {
    const auto json = score_file(file, a, judge, *encoder, how, lines).json();
    list.push_back(json);
    const auto cell = [&](const char* key) {
      return json.contains(key) && json[key].is_number() ? decimals(json[key].get<double>(), 4)
                                                         : std::string("–");
    };
    table.row({json["name"].get<std::string>(), std::to_string(json["documents"].get<int64_t>()),
               cell("acc"), cell("acc_norm"), cell("ppl"), cell("bits_per_byte"), cell("stderr")});
  }
  if (!a.out.empty()) write_file(a.out, lines);
  if (a.json)
    return print_json({{"run", folder},
                       {"step", run.step},
                       {"bos", a.bos},
                       {"max_length", a.max_length},
                       {"tasks", list}}),
           kDone;
  std::cout << table.text() << "BOS " << a.bos << ", at most " << a.max_length << " tokens\n";
  return kDone;
}

}  // namespace lrnn::cli
