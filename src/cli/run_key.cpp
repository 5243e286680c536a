#include <iostream>
#include <set>

#include "base/error.h"
#include "cli/output.h"
#include "cli/run.h"
#include "figures/table.h"

// `lrnn run --key`: a group's elements as numbers, cycles and in one line.
namespace lrnn::cli {

void print_key(const tasks::Task& task, bool json) {
  const auto elements = task.elements();
  if (!elements)
    throw Error("this model does not read a group, so there is no key to its elements",
                "--key is for models of groups, such as `lrnn compile --group S3`");
  const auto& group = elements->group;
  std::set<int64_t> letters;
  for (const int64_t t : task.letters()) letters.insert(elements->of_token[size_t(t)]);
  const bool permutations = !group.one_line(0).empty();
  std::vector<std::string> head = {"id", permutations ? "cycles" : "element"};
  if (permutations) head.emplace_back("one-line");
  head.emplace_back("is read");
  figures::Table table(head);
  Json list = Json::array();
  for (int64_t a = 0; a < group.order(); ++a) {
    const bool letter = letters.contains(a);
    std::vector<std::string> row = {std::to_string(a), group.element(a)};
    if (permutations) row.push_back(group.one_line(a));
    row.emplace_back(letter ? "yes" : "no");
    table.row(row);
    list.push_back({{"id", a}, {"element", group.element(a)}, {"letter", letter}});
    if (permutations) list.back()["one_line"] = group.one_line(a);
  }
  if (json) return print_json({{"group", group.name()}, {"elements", list}});
  std::cout << table.text();
  if (permutations)
    std::cout
        << "\nPoints count from 1; (12) swaps 1 and 2, and one-line notation says where 1, 2, "
           "… go.\n"
           "The answer to x1 x2 … is their product, of which the last factor acts first: "
           "(12) (23)\n"
           "takes 3 to 2 and then to 1. So it is in the papers, whose numbers the ids are.\n";
}

}  // namespace lrnn::cli
