#include "automata/learn/tree.h"

#include "base/error.h"

namespace lrnn::automata {

DiscriminationTree::DiscriminationTree(Oracle& oracle, int64_t most_states)
    : oracle_(oracle), symbols_(oracle.symbols()), most_(most_states) {
  check(most_ >= 1, "an automaton has at least one state, and ", most_, " are allowed");
  suffixes_ = {{}};
  nodes_.emplace_back();
  const size_t leaf = add_state({}, oracle_.empty());
  nodes_[0].children.emplace(oracle_.empty(), leaf);
}

size_t DiscriminationTree::add_state(Word access, int64_t answer) {
  nodes_.push_back({.state = states(), .suffix = 0, .children = {}, .answer = answer});
  access_.push_back(std::move(access));
  leaf_.push_back(nodes_.size() - 1);
  place_.resize(at(states() * symbols_), 0);
  return nodes_.size() - 1;
}

size_t DiscriminationTree::some_leaf(size_t node) const {
  while (nodes_[node].state < 0) node = nodes_[node].children.begin()->second;
  return node;
}

size_t DiscriminationTree::below(size_t node, int64_t answer, int64_t state, int64_t letter) {
  if (const auto found = nodes_[node].children.find(answer); found != nodes_[node].children.end())
    return found->second;
  if (states() >= most_) return full_ = true, some_leaf(node);
  Word access = access_[at(state)];
  access.push_back(letter);
  const size_t leaf = add_state(std::move(access), node == 0 ? answer : nodes_[node].answer);
  nodes_[node].children.emplace(answer, leaf);
  return leaf;
}

void DiscriminationTree::close() {
  for (;;) {
    std::vector<int64_t> moving;
    std::vector<Question> questions;
    for (size_t i = 0; i < place_.size(); ++i) {
      const auto& node = nodes_[place_[i]];
      if (node.state >= 0) continue;
      const auto& suffix = suffixes_[node.suffix];
      Word after = {int64_t(i) % symbols_};
      after.insert(after.end(), suffix.begin(), suffix.end());
      questions.push_back({access_[i / at(symbols_)], std::move(after)});
      moving.push_back(int64_t(i));
    }
    if (moving.empty()) return;
    const auto answers = oracle_.last(questions);
    for (size_t j = 0; j < moving.size(); ++j) {
      const int64_t i = moving[j];
      // The call may move place_ elsewhere.
      const size_t to = below(place_[at(i)], answers[j], i / symbols_, i % symbols_);
      place_[at(i)] = to;
    }
  }
}

int64_t DiscriminationTree::ask(const Word& before, Word after) {
  return oracle_.last({{before, std::move(after)}})[0];
}

// Let s_i be the state after i letters, and a_i the answer to its word with the other letters
// behind it. The last of these is what the hypothesis says and the first is not; where they change,
// one letter leads elsewhere than the hypothesis thinks.
bool DiscriminationTree::refine(const Word& word) {
  const auto h = hypothesis();
  std::vector<int64_t> state = {h.automaton.start};
  for (const int64_t x : word) state.push_back(h.automaton.step(state.back(), x));
  const int64_t said = h.answer[at(state.back())];
  const auto rest = [&](size_t i) { return Word(word.begin() + int64_t(i), word.end()); };
  size_t low = 0, high = word.size();
  int64_t differs = ask(access_[at(state[0])], rest(0)), agrees = said;
  if (differs == said) return false;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    const int64_t answer = ask(access_[at(state[middle])], rest(middle));
    if (answer == said)
      high = middle, agrees = answer;
    else
      low = middle, differs = answer;
  }
  // The last letter was asked about when its transition was led to a state: it says otherwise now.
  if (high == word.size()) return false;
  if (states() >= most_) return full_ = true;
  Word access = access_[at(state[low])];
  access.push_back(word[low]);
  split(state[high], rest(high), agrees, std::move(access), differs);
  return true;
}

void DiscriminationTree::split(int64_t state, const Word& suffix, int64_t answer, Word access,
                               int64_t other) {
  const size_t node = leaf_[at(state)];
  const int64_t inherited = nodes_[node].answer;
  suffixes_.push_back(suffix);
  nodes_.push_back({.state = state, .suffix = 0, .children = {}, .answer = inherited});
  leaf_[at(state)] = nodes_.size() - 1;
  const size_t fresh = add_state(std::move(access), inherited);
  nodes_[node].state = -1;
  nodes_[node].suffix = suffixes_.size() - 1;
  nodes_[node].children = {{answer, leaf_[at(state)]}, {other, fresh}};
}

Moore DiscriminationTree::hypothesis() const {
  Moore out;
  out.automaton = Automaton::from(states(), symbols_, [&](int64_t s, int64_t x) {
    return nodes_[some_leaf(place_[at(s * symbols_ + x)])].state;
  });
  for (const size_t leaf : leaf_) out.answer.push_back(nodes_[leaf].answer);
  return out;
}

}  // namespace lrnn::automata
