#include "experiments/metrics.h"
#include "experiments/run.h"

namespace lrnn::experiments {
namespace {

using Line = nlohmann::ordered_json;
constexpr size_t kAtOnce = 4096;  // bytes that a pipe passes on in one piece, with the newline
constexpr const char* kKinds[] = {"progress", "warning", "error"};

Line to_json(const Progress& p) {
  Line out{{"kind", kKinds[Message::kProgress]},
           {"step", p.step},
           {"steps", p.steps},
           {"loss", p.loss},
           {"accuracy", p.accuracy},
           {"steps_per_second", p.steps_per_second}};
  if (p.eval_accuracy >= 0) out["eval_accuracy"] = p.eval_accuracy;
  if (p.eval_accuracy >= 0 && !p.text) out["eval_scaled"] = p.eval_scaled;
  if (p.text) add_speed(p.speed, out);
  if (p.text && p.eval_accuracy >= 0) out["eval_loss"] = p.eval_loss;
  return out;
}

Progress to_progress(const Line& line) {
  Progress out;
  out.step = line.at("step").get<int64_t>(), out.steps = line.at("steps").get<int64_t>();
  out.loss = number_in(line, "loss"), out.accuracy = number_in(line, "accuracy");
  out.steps_per_second = number_in(line, "steps_per_second");
  out.text = line.contains("tokens_per_second");
  if (out.text) {
    out.speed.tokens_per_second = number_in(line, "tokens_per_second");
    out.speed.flops = 1e12 * number_in(line, "tflops_per_second");
    if (line.contains("mfu")) out.speed.mfu = number_in(line, "mfu");
  }
  if (!line.contains("eval_accuracy")) return out;
  if (out.text) out.eval_loss = number_in(line, "eval_loss");
  out.eval_accuracy = number_in(line, "eval_accuracy");
  out.eval_scaled = number_in(line, "eval_scaled");
  return out;
}

}  // namespace

void add_speed(const Speed& speed, nlohmann::ordered_json& line) {
  line["tokens_per_second"] = speed.tokens_per_second;
  line["tflops_per_second"] = speed.flops / 1e12;
  if (speed.mfu >= 0) line["mfu"] = speed.mfu;
}

std::string to_line(const Message& message) {
  if (message.kind == Message::kProgress) return to_json(message.progress).dump();
  std::string out;
  // Most texts are short; JSON makes a byte up to six.
  for (size_t most = 2000; out.empty() || out.size() >= kAtOnce; most /= 2) {
    Line line{{"kind", kKinds[message.kind]}, {"text", message.text.substr(0, most)}};
    if (!message.hint.empty()) line["hint"] = message.hint.substr(0, most);
    out = line.dump(-1, ' ', false, Line::error_handler_t::replace);
  }
  return out;
}

std::optional<Message> from_line(const std::string& text) try {
  const auto line = Line::parse(text);
  const auto kind = line.at("kind").get<std::string>();
  if (kind == kKinds[Message::kProgress])
    return Message{.kind = Message::kProgress, .progress = to_progress(line)};
  for (const auto other : {Message::kWarning, Message::kError})
    if (kind == kKinds[other])
      return Message{.kind = other,
                     .text = line.at("text").get<std::string>(),
                     .hint = line.value("hint", "")};
  return {};
} catch (const Line::exception&) {
  return {};
}

}  // namespace lrnn::experiments
