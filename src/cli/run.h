#pragma once
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "compile/state_readout.h"
#include "experiments/run.h"
#include "tasks/letters.h"
#include "tasks/task.h"

namespace lrnn::cli {

struct RunOptions {
  bool every = false, json = false;
  bool states = false;  // of recognisers: the state instead of accept or reject
  bool ids = false;     // elements of a group by number
};

// What a model answers, and how people read it.
class Speaker {
 public:
  Speaker(experiments::Run& run, const RunOptions& options);

  // One answer per position that the context wants.
  std::vector<int64_t> ask(const torch::Tensor& in, model::State& state, mixers::Context context);
  // Whether answers are read off elsewhere than at the model's own head.
  bool reads_states() const { return readout_ != nullptr; }
  const std::string& name(int64_t answer) const { return names_[size_t(answer)]; }
  const std::string& empty() const { return empty_; }  // the answer to the empty word

 private:
  void name_states(const experiments::Run& run);
  void name_elements(const tasks::Task& task);

  experiments::Run& run_;
  std::unique_ptr<compile::Compiled> compiled_;
  std::unique_ptr<compile::StateReadout> readout_;
  std::vector<std::string> names_;
  std::string empty_;
};

// The answers to one word on one line: for people, or a JSON object for scripts.
class Line {
 public:
  Line(bool every, bool json) : every_(every), json_(json) {}

  void add(const std::string& answer);
  void end();
  // A word that cannot be read to its end: what was said of it is no whole line, and in JSON no
  // object, so that nobody takes it for one.
  void break_off();

 private:
  const char* opening() const { return every_ ? "{\"answers\":[" : "{\"answer\":"; }

  bool every_, json_, first_ = true;
};

// Short words go through the model together, long ones in pieces with the state carried along.
class Answers {
 public:
  Answers(experiments::Run& run, const RunOptions& options);

  void short_word(const std::vector<int64_t>& word);
  void flush();  // says all that is known
  void begin();  // of a long word
  void piece(const std::vector<int64_t>& tokens);
  void end();
  void break_off() { flush(), line_.break_off(); }

 private:
  bool every_;
  Speaker speaker_;
  Line line_;
  std::vector<int64_t> before_;
  std::vector<std::vector<int64_t>> words_;
  size_t size_ = 0;
  model::State state_;
  int64_t last_ = 0;
};

// Words on standard input, one per line: characters when every symbol is one, otherwise symbols
// separated by spaces. Elements of a group may have spaces inside their brackets: (1 2)(3 4). A
// word is handed out in pieces, so that its length does not matter.
class WordReader {
 public:
  explicit WordReader(const tasks::Task& task);

  // The next tokens, at most `most`. `ended`: the word is complete. False at the end of the input.
  bool read(std::vector<int64_t>& tokens, size_t most, bool& ended);
  const tasks::Letters& letters() const { return letters_; }
  // Whether more input is there already: if not, answers should not wait for it.
  bool more_is_waiting();

 private:
  int next();  // a byte, or -1
  bool symbol(std::string& text, bool& end_of_line);
  int64_t token(const std::string& text) const;
  [[noreturn]] void unknown(const std::string& text) const;

  tasks::Letters letters_;
  bool characters_, in_line_ = false;
  int64_t line_ = 1;
  std::vector<char> buffer_;
  size_t at_ = 0, filled_ = 0;
};

// The elements of the group that a task is about: number, name, and where points go.
void print_key(const tasks::Task& task, bool json);

}  // namespace lrnn::cli
