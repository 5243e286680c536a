#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lrnn::figures {

// States in circles, arrows with their letters. Nodes carry the ids state-0, state-1, … so that a
// script can point at one.
struct Graph {
  struct Node {
    std::string label;
    bool doubled = false;  // accepting
  };
  struct Edge {
    size_t from, to;
    std::string label;
  };
  std::string title;
  std::vector<Node> nodes;
  std::vector<Edge> edges;  // at most one per pair
  size_t start = 0;
};
std::string draw(const Graph& graph);

}  // namespace lrnn::figures
