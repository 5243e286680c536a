#pragma once
#include <memory>
#include <string>

#include "automata/algebra/group.h"

namespace lrnn::automata {

// The group of permutations such as "(123)(45),(12)": see Group.
std::shared_ptr<const Group::Law> generated_law(const std::string& name);

}  // namespace lrnn::automata
