#pragma once
#include <string>
#include <vector>

namespace lrnn::figures {

// A table with one heading per column, for people (text, markdown), programs (csv) and pages
// (html). Columns whose cells are all numbers are aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void row(std::vector<std::string> cells);  // as many as there are headings
  bool empty() const { return rows_.empty(); }

  std::string text() const;
  std::string markdown() const;
  std::string csv() const;
  std::string html() const;

 private:
  std::vector<bool> numeric() const;
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lrnn::figures
