#pragma once
#include <optional>
#include <utility>
#include <vector>

namespace lrnn::figures {

// A line in pixels, from left to right, in pieces where it has gaps.
using Piece = std::vector<std::pair<double, double>>;
using Line = std::vector<Piece>;

// The height of the line at x, if it runs there.
std::optional<double> height_at(const Line& line, double x);

// How far up or down each point of each line is moved so that lines that run level on the same
// spot, all at 1.0 for example, are seen side by side: a few pixels, the first line on top; nothing
// for points of lines that merely cross or that fall together.
std::vector<std::vector<std::vector<double>>> shifts(const std::vector<Line>& lines);

}  // namespace lrnn::figures
