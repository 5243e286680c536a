#pragma once
#include <string>
#include <vector>

#include "cli/output.h"
#include "compile/compile.h"

namespace lrnn::cli {

// What a page needs to follow any word, letter by letter: where the automaton is, and what each
// letter does to the state matrices of the model.
//
// The matrices themselves are too many to list, for a flip-flop never forgets quite all of what it
// held. But a letter changes them in few ways, H <- A H + B, and which way depends on little: the
// letter, what groups hold, and which value is the largest in each flip-flop. Those places are
// listed, each with the A and B that the model applied there.
struct Stepping {
  struct Action {
    std::vector<double> a, b;  // rows x rows; rows x cols, or empty: nothing is written
  };
  struct Head {
    int64_t layer = 0, head = 0, rows = 0, cols = 0;  // layers and heads from 1
    std::string about;
    std::vector<double> start;  // H before the first letter
    std::vector<double> query;  // H^T query names the element, of heads that hold a group
    std::vector<Action> actions;
  };
  struct Place {
    int64_t state = 0;
    std::string coordinates;     // of a plan that is one cascade
    std::vector<int64_t> next;   // one per symbol: a place
    std::vector<int64_t> moves;  // one per symbol: one of `moves` below
  };
  std::vector<Place> places;                // the first is before the first letter
  std::vector<Head> heads;                  // empty when `without` says why
  std::vector<std::vector<int64_t>> moves;  // one action for each head
  std::string without;
};

// Follows the model from place to place, and then along words to see that it does what was noted.
Stepping stepping(const compile::Compiled& compiled, model::Model& model);
Json to_json(const Stepping& stepping, const compile::Compiled& compiled);

}  // namespace lrnn::cli
