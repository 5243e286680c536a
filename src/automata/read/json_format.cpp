#include "automata/read/text_format.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

// Automata as JSON, read strictly and written.
namespace lrnn::automata {
namespace {

using Json = nlohmann::ordered_json;

Json parse(const std::string& text, const NamedTable& table) {
  try {
    return read_json<Json>(text);
  } catch (const BadJson& e) {
    table.fail(
        e.what(),
        R"(an automaton is {"alphabet":["a"],"states":["s"],"start":"s","accept":["s"],"next":{"s":{"a":"s"}}})");
  }
}

class JsonReader {
 public:
  JsonReader(const std::string& text, const std::string& where)
      : table_(where), json_(parse(text, table_)) {}

  Automaton read() {
    if (!json_.is_object()) table_.fail("an automaton is a JSON object");
    for (const auto& [key, value] : json_.items())
      if (key != "alphabet" && key != "states" && key != "start" && key != "accept" &&
          key != "next")
        table_.fail(cat("'", key, "' is not a key"),
                    "keys are alphabet, states, start, accept and next");
    for (const auto& name : list("alphabet")) table_.add_symbol(name);
    for (const auto& name : list("states")) table_.add_state(name);
    if (!json_.contains("start") || !json_["start"].is_string())
      table_.fail("'start' must be the name of a state");
    table_.set_start(json_["start"].get<std::string>());
    if (json_.contains("accept")) {
      table_.accept_none();
      for (const auto& name : list("accept")) table_.accept(name);
    }
    transitions();
    return table_.finish();
  }

 private:
  std::vector<std::string> list(const char* key) const {
    if (!json_.contains(key) || !json_[key].is_array())
      table_.fail(cat("'", key, "' must be a list of names"));
    std::vector<std::string> out;
    for (const auto& item : json_[key]) {
      if (!item.is_string()) table_.fail(cat("'", key, "' must be a list of names in quotes"));
      out.push_back(item.get<std::string>());
    }
    return out;
  }

  void transitions() {
    if (!json_.contains("next") || !json_["next"].is_object())
      table_.fail("'next' must say for every state where its symbols lead");
    for (const auto& [from, row] : json_["next"].items()) {
      if (!row.is_object())
        table_.fail(cat("'next' of '", from, "' must say where its symbols lead"));
      for (const auto& [symbol, to] : row.items()) {
        if (!to.is_string())
          table_.fail(cat("'", from, "' reads '", symbol, "': where it leads must be a name"));
        table_.add(from, symbol, to.get<std::string>());
      }
    }
  }

  NamedTable table_;
  const Json json_;
};

}  // namespace

Automaton from_json(const std::string& text, const std::string& where) {
  return JsonReader(text, where).read();
}

std::string to_json(const Automaton& a) {
  Json out;
  for (int64_t x = 0; x < a.symbols; ++x) out["alphabet"].push_back(a.symbol_name(x));
  for (int64_t s = 0; s < a.states; ++s) out["states"].push_back(a.state_name(s));
  out["start"] = a.state_name(a.start);
  if (!a.accept.empty()) {
    out["accept"] = Json::array();
    for (int64_t s = 0; s < a.states; ++s)
      if (a.accept[static_cast<size_t>(s)]) out["accept"].push_back(a.state_name(s));
  }
  for (int64_t s = 0; s < a.states; ++s)
    for (int64_t x = 0; x < a.symbols; ++x)
      out["next"][a.state_name(s)][a.symbol_name(x)] = a.state_name(a.step(s, x));
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Automaton from_file(const std::string& path) {
  const auto text = read_text_file(path, {.hint = "an automaton is JSON or Graphviz text"});
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && (text[first] == '{' || text[first] == '[');
  return json ? from_json(text, path) : from_graph(text, path);
}

}  // namespace lrnn::automata
