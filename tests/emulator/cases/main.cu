#include <cstring>

#include "tests/emulator/cases/case.h"

// faults --list    a line per case: its name, a tab, the pattern of the error or nothing
// faults NAME..    runs them: 0 if all results are right
// Names of cases whose mistake is a race begin with race_ (faults.sh).
using namespace lrnn::emulator::cases;

int main(int count, char** words) {
  Cases all;
  for (const auto& some : {memory_cases(), copy_cases(), lane_cases(), barrier_cases(),
                           integer_cases(), float_cases(), hopper_cases(), race_cases()})
    all.insert(all.end(), some.begin(), some.end());
  if (count == 2 && !std::strcmp(words[1], "--list")) {
    for (const Case& c : all) std::printf("%s\t%s\n", c.name, c.error);
    return 0;
  }
  bool right = count > 1;
  for (int i = 1; i < count; ++i) {
    bool found = false;
    for (const Case& c : all)
      if (!std::strcmp(c.name, words[i])) {
        found = true;
        if (!c.run()) std::printf("%s: wrong\n", c.name), right = false;
      }
    if (!found) std::printf("%s: no such case\n", words[i]), right = false;
  }
  return right ? 0 : 1;
}
