// Opens a run folder, trained by `lrnn train` or compiled by `lrnn compile`, and feeds it one letter at a
// time: a decoding step is a forward with T = 1 and the state that the last one left.
//
//   run_model RUN LETTER...        for example: run_model runs/abba a b b a
#include <iostream>
#include <string>

#include "base/error.h"
#include "experiments/run.h"

namespace {

int64_t token_of(const lrnn::tasks::Task& task, const std::string& letter) {
  for (const int64_t token : task.letters())
    if (task.word(token) == letter) return token;
  throw lrnn::Error("'" + letter + "' is not a letter of this model");
}

void follow(const std::string& folder, const std::vector<std::string>& letters) {
  const torch::InferenceMode no_gradients;
  const auto run = lrnn::experiments::open(folder);
  lrnn::model::State state;  // empty: the beginning of time
  const auto read = [&](int64_t token) {
    const auto logits = run.model->forward(torch::tensor({{token}}), state);  // [1,1,vocabulary]
    return logits.argmax(-1).item<int64_t>();
  };
  for (const int64_t token : run.task->before_word()) read(token);
  for (const auto& letter : letters)
    std::cout << letter << " " << run.task->word(read(token_of(*run.task, letter))) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: run_model RUN LETTER...\n", 2;
  try {
    follow(argv[1], {argv + 2, argv + argc});
  } catch (const lrnn::Error& e) {
    return std::cerr << e.what() << "\n", 2;
  }
  return 0;
}
