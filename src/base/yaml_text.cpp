#include "base/yaml_text.h"

#include <yaml-cpp/eventhandler.h>

#include <sstream>

#include "base/error.h"

namespace lrnn {
namespace {

constexpr const char* kQuoteHint =
    "a text that begins with one of ! & * [ { % @ ` or holds ': ' or ' #' needs quotes around it";

// Listens to what the parser finds and complains of what would get lost.
class Watch final : public YAML::EventHandler {
 public:
  explicit Watch(YamlProblem& problem) : problem_(problem) {}

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    check_tag(mark, tag, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag, "…");
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    check_tag(mark, tag, "…");
  }
  void OnAnchor(const YAML::Mark&, const std::string& name) override { anchor_ = name; }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (anchor != YAML::NullAnchor)
      say(mark, cat("'&", anchor_, "' is read as a YAML anchor, not as a text"), "&" + anchor_);
  }
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnSequenceEnd() override {}
  void OnMapEnd() override {}

 private:
  // "?" is no tag and "!" means quotes; YAML's own types say what is read anyway.
  void check_tag(const YAML::Mark& mark, const std::string& tag, const std::string& value) {
    if (tag.empty() || tag == "?" || tag == "!" || tag.rfind("tag:yaml.org,2002:", 0) == 0) return;
    say(mark, cat("'", tag, "' is read as a YAML tag, not as a text"),
        value.empty() ? tag : tag + " " + value);
  }
  void say(const YAML::Mark& mark, const std::string& what, const std::string& text) {
    if (problem_.what.empty())
      problem_ = {mark.line + 1, what, cat("put quotes around it: '", text, "'")};
  }

  YamlProblem& problem_;
  std::string anchor_;
};

}  // namespace

YAML::Node read_yaml(const std::string& text, YamlProblem& problem) {
  try {
    std::istringstream in(text);
    Watch watch(problem);
    YAML::Parser(in).HandleNextDocument(watch);
    if (problem.what.empty()) return YAML::Load(text);
  } catch (const YAML::Exception& e) {
    problem = {e.mark.line + 1, cat("not valid YAML: ", e.msg), kQuoteHint};
  }
  return {};
}

}  // namespace lrnn
