#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/config.h"
#include "experiments/run.h"

namespace lrnn::compile {
struct Margin;
}

// What this program says: results, words for people, and lines for who watches it.
namespace lrnn::cli {

using Json = nlohmann::ordered_json;
using lrnn::to_json;

// The result, on stdout: one object on one line. Numbers that are not finite become null.
void print_json(const Json& json);
// Words for people that are not the result, on stderr.
void say(const std::string& text);
// Whether a person watches that stream (1: stdout, 2: stderr).
bool on_terminal(int stream);
// Columns of the terminal behind stderr; 80 when it does not say.
int terminal_width();
// Writes a file whole, or not at all, making its folder when there is none.
void write_file(const std::string& path, const std::string& text);

std::string decimals(double value, int count);  // "0.993"; "–" when it is not finite
std::string thousands(int64_t value);           // "529,856"
std::string bytes(double count);                // "1.2 GB", "640 MB"
std::string duration(double seconds);           // "8 s", "3 min 20 s", "2 h 5 min"

// --progress FILE: what this program tells another one that watches it, as lines of JSON
// (docs/training.md).
CLI::Option* add_progress(CLI::App& app);
void open_messages(const std::string& file);

// Nothing happens when nobody watches.
void tell(const experiments::Message& message);
// The same, and on stderr.
void warn(const std::string& sentence);

// "margin: every weight may move by up to 0.036, and it stays right up to length 256", or that none
// could be shown, and why.
std::string margin_text(const compile::Margin& margin);

}  // namespace lrnn::cli
