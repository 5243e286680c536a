#include "figures/table.h"

#include <algorithm>

#include "base/error.h"
#include "figures/svg.h"

namespace lrnn::figures {
namespace {

bool is_number(const std::string& cell) {
  if (cell.empty()) return true;
  const bool digit = cell.find_first_of("0123456789") != std::string::npos;
  const bool dashes = cell == "-" || cell == "–";
  return dashes || (digit && letters(cell) <= 24 &&
                    cell.find_first_not_of("0123456789.,+-–[]%e ") == std::string::npos);
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  check(cells.size() == head_.size(), "a table of ", head_.size(), " columns was given a row of ",
        cells.size());
  rows_.push_back(std::move(cells));
}

std::vector<bool> Table::numeric() const {
  std::vector<bool> out(head_.size(), true);
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) out[i] = out[i] && is_number(row[i]);
  return out;
}

std::string Table::text() const {
  const auto right = numeric();
  std::vector<size_t> width;
  for (const auto& cell : head_) width.push_back(letters(cell));
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], letters(row[i]));

  const auto print = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string pad(width[i] - letters(cells[i]), ' ');
      line += (i ? "  " : "") + (right[i] ? pad + cells[i] : cells[i] + pad);
    }
    return line.erase(line.find_last_not_of(' ') + 1) + "\n";
  };
  std::string rule;
  for (size_t i = 0; i < width.size(); ++i) {
    rule += i ? "  " : "";
    for (size_t j = 0; j < width[i]; ++j) rule += "─";
  }
  std::string out = print(head_) + rule + "\n";
  for (const auto& row : rows_) out += print(row);
  return out;
}

std::string Table::markdown() const {
  const auto right = numeric();
  const auto print = [](const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const auto& cell : cells) {
      line += ' ';
      for (const char c : cell) line += c == '|' ? std::string("\\|") : std::string(1, c);
      line += " |";
    }
    return line + "\n";
  };
  std::string out = print(head_) + "|";
  for (const bool number : right) out += number ? " ---: |" : " --- |";
  out += "\n";
  for (const auto& row : rows_) out += print(row);
  return out;
}

std::string Table::csv() const {
  const auto print = [](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) line += (i ? "," : "") + quoted(cells[i]);
    return line + "\n";
  };
  std::string out = print(head_);
  for (const auto& row : rows_) out += print(row);
  return out;
}

std::string Table::html() const {
  const auto right = numeric();
  const auto print = [&](const std::vector<std::string>& cells, const char* tag) {
    std::string line = "<tr>";
    for (size_t i = 0; i < cells.size(); ++i)
      line +=
          cat("<", tag, right[i] ? " class=\"number\">" : ">", escape(cells[i]), "</", tag, ">");
    return line + "</tr>\n";
  };
  std::string out = "<table>\n<thead>" + print(head_, "th") + "</thead>\n<tbody>\n";
  for (const auto& row : rows_) out += print(row, "td");
  return out + "</tbody>\n</table>\n";
}

}  // namespace lrnn::figures
