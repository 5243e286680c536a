#pragma once
#include "automata/read/source.h"
#include "tasks/task.h"

namespace lrnn::tasks {

// What a config of the task `automaton` is about.
automata::Subject subject_of(const Section& at);

// The same as a config, with lengths for training and testing. Tokens are the symbols, then the
// answers, then `bos` tokens that stand before every word.
std::string automaton_config(const automata::Source& source, const automata::Subject& subject,
                             int64_t bos);

}  // namespace lrnn::tasks
