#pragma once
#include <map>
#include <memory>
#include <string>

#include "compile/group_layer.h"
#include "compile/plan/plan.h"

// One component of a plan as layers: for each level of its cascade a group layer, where a class has
// a group, and a flip-flop layer.
namespace lrnn::compile {

// A way to be in a block of the component: all of these forms are 1, and then the block is that.
struct Alternative {
  std::vector<Form> literals;
  int64_t block;
};

class ComponentNet {
 public:
  // Builds everything but the gates of the last layer that name the answer.
  ComponentNet(Network& net, const Component& component, const std::string& name);

  int64_t layers() const { return layers_; }
  // Exactly one of them holds after each letter, once layer layers()-1 has been read.
  const std::vector<Alternative>& alternatives() const { return alternatives_; }
  // Of components that are one group whose elements are the states: how many there are; 0
  // otherwise.
  size_t states_told_apart() const { return element_.size(); }
  // Reads them without a gate: the likeness of the state is the largest.
  struct Likeness {
    std::vector<Form> of_state;
    double lead, reach;
  };
  Likeness read_likeness();

  // What certificates look at: the features of a level.
  struct Level {
    int64_t layer = 0;                       // of its flip-flop, or of its group
    bool group = false;                      // a group layer comes before
    std::map<Cascade::Triple, int64_t> act;  // 1 for the triple above the level
    std::vector<int64_t> x, xw;              // what the flip-flop holds and writes
    std::map<int64_t, std::vector<std::vector<int64_t>>> goes;  // class -> [y][r]: g(y) = r
    std::map<int64_t, GroupReading> readings;                   // class -> its group
  };
  const std::vector<Level>& levels() const { return levels_; }
  const Component& component() const { return component_; }

 private:
  using Triple = Cascade::Triple;
  void group_layer(int64_t d, int64_t at);
  void write_tables(int64_t d, int64_t at, const GroupReading& g, int64_t type);
  void flip_flop_layer(int64_t d, int64_t at);
  void next_level(int64_t d, int64_t at);
  void next_of(int64_t d, int64_t at, const Triple& t, int64_t family);
  void answers(int64_t d);
  void group_answers(const GroupReading& g);

  // Every (y, r) with g(y) = r possible in the class, and the literal for it; none without a group.
  struct Image {
    int64_t y, r;
    std::vector<Form> literal;
  };
  std::vector<Image> images(int64_t d, int64_t type) const;

  Network& net_;
  const Component& component_;
  std::string name_;
  Cascade::Reachable reachable_;
  std::vector<Level> levels_;
  std::vector<Alternative> alternatives_;
  std::vector<int64_t> element_;  // of each state
  int64_t layers_ = 0;
};

}  // namespace lrnn::compile
