#pragma once
#include <compare>
#include <map>
#include <string>
#include <vector>

#include "automata/learn/learn.h"
#include "cli/output.h"
#include "compile/compile.h"

namespace lrnn::figures {
class Page;
}

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

// Where the automaton is and, if the plan is one cascade, its coordinates.
struct Spot {
  int64_t state = 0;
  automata::Cascade::Coordinates tuple;
  auto operator<=>(const Spot&) const = default;
};

class Spots {
 public:
  Spots(const compile::Compiled& c, bool coordinates);
  Spot start() const;
  Spot step(const Spot& s, int64_t x) const;
  static std::string text(const Spot& s);  // "(1, 0)"; empty without coordinates

 private:
  const automata::Automaton& a_;
  const automata::Cascade* cascade_;
};

// Takes a model through all places and notes what each letter does to the state of each head.
class Follower {
 public:
  Follower(const compile::Compiled& c, model::Model& model);
  Stepping follow();

 private:
  using Matrix = std::vector<double>;
  using Held = std::vector<Matrix>;           // one per head
  using Layers = std::vector<torch::Tensor>;  // the states of a batch, [B,H,K,V] each
  // What a pass over tokens [B,T] applied, per layer: keys, values, step sizes and gates.
  struct Applied {
    torch::Tensor k, v, beta, gate;
  };

  Layers start();
  std::vector<Applied> read(const torch::Tensor& tokens, Layers& layers);
  static Layers wide(const Layers& layers);  // in float64 on the CPU
  Held held(const Layers& wide, int64_t b) const;
  std::vector<int64_t> decided(const Held& held) const;
  int64_t place_of(const Spot& spot, const Held& now, const Layers& layers, int64_t b);
  Stepping::Action action(const std::vector<Applied>& applied, size_t head, int64_t b,
                          int64_t t) const;
  int64_t number_of(Stepping::Action one, size_t head);
  int64_t move_of(const std::vector<Applied>& applied, int64_t b, int64_t t);
  Held after(const Held& before, int64_t move) const;
  void expand(size_t first, size_t last);
  void try_word(uint64_t seed);

  const compile::Compiled& c_;
  const compile::Network& net_;
  model::Model& model_;
  Spots spots_;
  int64_t symbols_;
  Stepping out_;
  std::vector<Spot> spot_;     // one per place
  std::vector<Layers> state_;  // the model's, with B = 1
  std::map<std::pair<Spot, std::vector<int64_t>>, int64_t> number_;
  std::vector<std::map<std::vector<int64_t>, int64_t>> known_;  // per head: rounded -> its action
  std::map<std::vector<int64_t>, int64_t> known_moves_;
  int64_t numbers_ = 0;  // in all actions
};

// The automaton, a word to step through with what every head holds, the cascade, and the
// eigenvalues of every head: one self-contained HTML page.
std::string explain_page(const compile::Compiled& compiled, model::Model& model);

// Of a trained model: the automaton that it follows beside that of its task, and how far they
// agree.
std::string explain_trained_page(experiments::Run& run, const automata::LearnOptions& options);

// Draws an automaton, or says that it is too large.
struct Shown {
  std::string title, what;  // of the picture, and what its caption begins with
  std::string more = {};    // goes on in the caption
  std::string ids = {};     // stands before the ids of states
};
void show_automaton(figures::Page& page, const automata::Automaton& a, const Shown& shown);

}  // namespace lrnn::cli
