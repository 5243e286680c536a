#pragma once
#include <string>
#include <vector>

#include "experiments/text_run.h"
#include "model/model.h"
#include "text/question.h"

namespace lrnn::cli {

struct Likelihood {
  double sum = 0;      // log
  bool greedy = true;  // every token is the argmax
};

// What a language model makes of questions. The caller sees to InferenceMode and Precision.
class Judge {
 public:
  // narrow: the softmax is that of bfloat16 logits.
  Judge(model::Model& model, std::string precision, bool narrow)
      : model_(model), precision_(std::move(precision)), narrow_(narrow) {}

  // Many in one forward.
  std::vector<Likelihood> of(const std::vector<text::Request>& requests) const;
  // The likeliest continuation, token by token, up to the end of its line.
  std::string complete(const text::Ids& prompt, const text::Tokenizer& tokenizer,
                       const experiments::TextRun& texts) const;

 private:
  model::Model& model_;
  std::string precision_;
  bool narrow_;
};

}  // namespace lrnn::cli
