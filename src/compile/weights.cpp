#include "compile/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "compile/scales.h"

namespace lrnn::compile {
namespace {

using torch::Tensor;

constexpr double kFlaStart = 32;  // of keys that write initial states: other keys are small, too
constexpr double kOpen = 40;      // a logit at which a sigmoid is 1 in float32 and float64

double silu(double x) { return x / (1 + std::exp(-x)); }

// The x >= -1.278 with silu(x) = y.
double silu_inverse(double y) {
  check(y > -0.2784, "SiLU cannot give ", y);
  double low = -1.2784, high = std::max(1.0, y + 1);
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (silu(middle) < y ? low : high) = middle;
  }
  return (low + high) / 2;
}

double largest_entry(const std::vector<double>& x) {
  double out = 0;
  for (const double v : x) out = std::max(out, std::abs(v));
  return out;
}

class Writer {
 public:
  Writer(const Network& net, const Shape& shape) : net_(net), shape_(shape) {
    fla_ = shape.profile == Profile::kFla;
    from_tokens_ = fla_ || shape.profile == Profile::kNativeBos;
    N_ = net.householders();
    H_ = net.heads(), K_ = net.key_dim(), V_ = net.value_dim();
    width_ = int64_t(net.features.size());
    if (from_tokens_)
      for (const auto& layer : net.layers)
        for (const auto& h : layer.heads)
          bos_ = std::max<int64_t>(bos_, (int64_t(starts(h).size()) + N_ - 1) / N_);
    first_bos_ = width_;
    width_ += bos_;
  }

  Weights write() {
    Weights out;
    out.bos = bos_;
    out.vocabulary = int64_t(net_.symbols.size() + net_.labels.size()) + bos_;
    out.config = config();
    auto& t = out.tensors;
    t["model.embeddings.weight"] = embeddings(out.vocabulary);
    for (size_t i = 0; i < net_.layers.size(); ++i) layer(t, i);
    answers(t, out.vocabulary);
    return out;
  }

 private:
  static Tensor zeros(std::initializer_list<int64_t> sizes) {
    return torch::zeros(sizes, torch::kFloat64);
  }
  // Of the norm before these products: what stands for 1 in the stream is `unit` in their input.
  Tensor norm(std::initializer_list<Tensor> products, double unit) const {
    Tensor read = torch::zeros({width_}, torch::kFloat64);
    for (const auto& w : products) read += w.view({-1, width_}).abs().amax(0);
    return (read > 0).to(torch::kFloat64) * (kNormRoot * unit / kStreamUnit);
  }

  model::ModelConfig config() const {
    const auto yes = [](bool b) { return b ? "true" : "false"; };
    const std::string activation = fla_ ? "silu" : "none";
    model::ModelConfig c;
    c.width = width_;
    c.layers = int64_t(net_.layers.size());
    c.norm_eps = kNormEps;
    if (shape_.profile == Profile::kFp64) c.dtype = "float64";
    if (net_.gates() == 0)
      c.mlp.name = "none";
    else
      c.mlp.hidden = 2 * net_.gates();
    c.mixer = Section::from_text(
        cat("name: delta_product\nheads: ", H_, "\nkey_dim: ", K_, "\nvalue_dim: ", V_,
            "\nhouseholders: ", N_, "\nrange: ", shape_.negative ? "[-1, 1]" : "[0, 1]",
            "\nconv: 0\nforget_gate: ", yes(shape_.gate), "\nqk_activation: ", activation,
            "\nv_activation: ", activation, "\ninitial_state: ", yes(!from_tokens_),
            "\nnorm_eps: ", fmt::format("{}", kNormEps), "\n"));
    return c;
  }

  // Adds weight * form to a row: offsets are taken off again through the constant feature.
  void add(double* row, const Form& form, double weight = 1) const {
    for (const auto& [f, w] : form.terms) {
      row[f] += weight * w;
      row[0] -= weight * w * net_.features[size_t(f)].offset;
    }
    row[0] += weight * form.constant;
  }

  Tensor embeddings(int64_t vocabulary) const {
    Tensor out = zeros({vocabulary, width_});
    for (int64_t f = 0; f < int64_t(net_.features.size()); ++f) {
      const Feature& feature = net_.features[size_t(f)];
      out.select(1, f).fill_((feature.offset + feature.initial) * stream_unit(feature));
    }
    for (size_t x = 0; x < net_.symbols.size(); ++x)
      at(out, {int64_t(x), net_.symbols[x]}) += kStreamUnit;
    for (int64_t b = 0; b < bos_; ++b)
      at(out, {vocabulary - bos_ + b, first_bos_ + b}) = kStreamUnit;
    return out;
  }

  // The labels' forms, so that the right one leads by kLead and all weights may move by the margin.
  // Tokens that are never an answer are kept below by the constant feature, of which little is
  // read.
  void answers(std::map<std::string, Tensor>& t, int64_t vocabulary) const {
    const double unit = answer_unit(net_), constant = constant_unit(net_);
    Tensor out = zeros({vocabulary, width_});
    const auto symbols = int64_t(net_.symbols.size());
    for (int64_t token = 0; token < vocabulary; ++token) {
      double* row = &at(out, {token, 0});
      const int64_t label = token - symbols;
      const bool answer = label >= 0 && label < int64_t(net_.labels.size()) &&
                          !net_.labels[size_t(label)].terms.empty();
      if (answer)
        add(row, net_.labels[size_t(label)], kLead / (net_.lead * unit));
      else
        row[0] = -2 * kLead / constant;
    }
    Tensor weight = norm({out}, unit);
    weight[0] = kNormRoot * constant / kStreamUnit;
    t["model.norm.weight"] = weight;
    t["lm_head.weight"] = out;
  }

  // Rows of the initial state that are not zero.
  static std::vector<int64_t> starts(const Head& h) {
    std::vector<int64_t> out;
    for (int64_t r = 0; r < h.rows; ++r)
      for (int64_t c = 0; c < h.cols; ++c)
        if (h.start[size_t(r * h.cols + c)] != 0) {
          out.push_back(r);
          break;
        }
    return out;
  }

  // A logit at which the sigmoid is 0.
  double closed() const { return shape_.profile == Profile::kFp64 ? -800 : -120; }
  double logit(double beta) const {
    const double share = beta / (shape_.negative ? 2 : 1);
    check(share <= 1, "a step of ", beta, " needs the range [-1, 1]");
    if (share == 0) return closed();
    return share == 1 ? kOpen : std::log(share / (1 - share));
  }
  // What a projection must give for the key to be this after activation; l2 norm follows.
  double raw_key(double x, double largest) const {
    if (!fla_) return kKey * x / largest;
    return x == 0 ? 0 : silu_inverse(kFlaKey * x / largest);
  }
  double raw_value(double x) const {
    return !fla_ || x == 0 ? kStateUnit * x : silu_inverse(kStateUnit * x);
  }

  void layer(std::map<std::string, Tensor>& t, size_t i) const {
    const std::string name = cat("model.layers.", i, ".");
    const Layer& layer = net_.layers[i];
    Tensor q = zeros({H_, K_, width_}), k = zeros({N_, H_, K_, width_}),
           v = zeros({N_, H_, V_, width_}), b = zeros({N_, H_, width_}),
           o = zeros({width_, H_, V_}), start = zeros({H_, K_, V_});
    b.select(2, 0).fill_(closed());
    for (int64_t h = 0; h < int64_t(layer.heads.size()); ++h) {
      const Head& head = layer.heads[size_t(h)];
      steps(head, h, k, b);
      for (int64_t c = 0; c < int64_t(head.value.size()); ++c)
        for (const auto& [f, w] : head.value[size_t(c)].terms)
          add(&at(v, {0, h, c, 0}), Form{{{f, raw_value(w)}}, 0});
      reading(head, h, q, o);
      if (from_tokens_) {
        write_start(head, h, k, v, b);
      } else {
        for (int64_t r = 0; r < head.rows; ++r)
          for (int64_t c = 0; c < head.cols; ++c)
            at(start, {h, r, c}) = kStateUnit * head.start[size_t(r * head.cols + c)];
      }
    }
    t[name + "attn_norm.weight"] = norm({q, k, v, b}, kMixerUnit);
    t[name + "attn.q_proj.weight"] = q.view({H_ * K_, width_}) / kMixerUnit;
    t[name + "attn.k_proj.weight"] = k.view({N_ * H_ * K_, width_}) / kMixerUnit;
    t[name + "attn.v_proj.weight"] = v.view({N_ * H_ * V_, width_}) / kMixerUnit;
    t[name + "attn.b_proj.weight"] = b.view({N_ * H_, width_}) / kMixerUnit;
    t[name + "attn.o_norm.weight"] =
        torch::full({V_}, kNormRoot * kOutputUnit / kStateUnit, torch::kFloat64);
    t[name + "attn.o_proj.weight"] = o.view({width_, H_ * V_});
    if (!from_tokens_) t[name + "attn.initial_state"] = start;
    if (shape_.gate) {
      t[name + "attn.a_proj.weight"] = zeros({H_, width_});
      t[name + "attn.A_log"] = zeros({H_});
      t[name + "attn.dt_bias"] = torch::full({H_}, closed(), torch::kFloat64);
    }
    if (net_.gates() > 0) mlp(t, name, layer);
  }

  static double& at(Tensor& x, std::initializer_list<int64_t> index) {
    int64_t offset = 0, d = 0;
    for (const int64_t i : index) offset += i * x.stride(d++);
    return x.data_ptr<double>()[offset];
  }

  void steps(const Head& head, int64_t h, Tensor& k, Tensor& b) const {
    if (head.one_row) add(&at(k, {0, h, 0, 0}), Form{{}, kKey});
    for (const auto& action : head.actions)
      for (int64_t j = 0; j < int64_t(action.steps.size()); ++j) {
        const Step& step = action.steps[size_t(j)];
        const double largest = largest_entry(step.key);
        for (int64_t r = 0; r < int64_t(step.key.size()); ++r)
          add(&at(k, {j, h, r, 0}), feature(action.feature, raw_key(step.key[size_t(r)], largest)));
        if (!head.usual)
          add(&at(b, {j, h, 0}), feature(action.feature, logit(step.beta) - closed()));
      }
    if (!head.usual) return;
    const double usual = logit(head.actions[0].steps[0].beta);
    at(b, {0, h, 0}) = usual;
    for (const int64_t f : head.idle) add(&at(b, {0, h, 0}), feature(f, closed() - usual));
    for (int64_t token = 0; token < bos_; ++token)
      at(b, {0, h, first_bos_ + token}) = closed() - usual;
  }

  void reading(const Head& head, int64_t h, Tensor& q, Tensor& o) const {
    double length = 0;
    for (const double z : head.query) length += z * z;
    const double largest = largest_entry(head.query);
    for (int64_t r = 0; r < int64_t(head.query.size()); ++r) {
      const double raw = kKey * head.query[size_t(r)] / largest;
      at(q, {h, r, 0}) = fla_ && raw != 0 ? silu_inverse(raw) : raw;
    }
    const double scale = head.scale * std::sqrt(length * double(K_)) / kOutputUnit;
    for (size_t c = 0; c < head.to.size(); ++c)
      at(o, {head.to[c], h, int64_t(c)}) = scale * stream_unit(net_.features[size_t(head.to[c])]);
  }

  // One row per step of the tokens that come before a word.
  void write_start(const Head& head, int64_t h, Tensor& k, Tensor& v, Tensor& b) const {
    const auto rows = starts(head);
    for (int64_t i = 0; i < int64_t(rows.size()); ++i) {
      const int64_t token = first_bos_ + i / N_, j = i % N_, row = rows[size_t(i)];
      if (!head.one_row) at(k, {j, h, row, token}) += fla_ ? kFlaStart : kKey;
      at(b, {j, h, token}) += logit(1) - closed();
      for (int64_t c = 0; c < head.cols; ++c)
        at(v, {j, h, c, token}) += raw_value(head.start[size_t(row * head.cols + c)]);
    }
  }

  // Two hidden units per gate: (silu(g) - silu(g - 64)) / 64 is 1 for g >= 128 and 0 for
  // g <= -128, both exactly.
  void mlp(std::map<std::string, Tensor>& t, const std::string& name, const Layer& layer) const {
    const int64_t hidden = 2 * net_.gates();
    Tensor gate = zeros({hidden, width_}), up = zeros({hidden, width_}),
           down = zeros({width_, hidden});
    for (int64_t i = 0; i < int64_t(layer.gates.size()); ++i) {
      const Gate& g = layer.gates[size_t(i)];
      for (int64_t s = 0; s < 2; ++s) {
        double* row = &at(gate, {2 * i + s, 0});
        add(row, g.sum, gain_of(g));
        row[0] -= double(s) * kGateStep;
        for (size_t f = 0; f < net_.features.size(); ++f)
          row[f] *= kStreamUnit / stream_unit(net_.features[f]);
        at(up, {2 * i + s, 0}) = kUp;
        for (const auto& [f, w] : g.out) at(down, {f, 2 * i + s}) += (s ? -w : w);
      }
    }
    t[name + "mlp_norm.weight"] = norm({gate, up}, kMlpUnit);
    t[name + "mlp.gate_proj.weight"] = gate / kMlpUnit;
    t[name + "mlp.up_proj.weight"] = up / kMlpUnit;
    t[name + "mlp.down_proj.weight"] = down * (kStreamUnit / (kGateStep * kUp));
  }

  const Network& net_;
  const Shape& shape_;
  bool fla_ = false, from_tokens_ = false;
  int64_t N_ = 1, H_ = 1, K_ = 1, V_ = 1, width_ = 0, bos_ = 0, first_bos_ = 0;
};

}  // namespace

Profile profile_named(const std::string& name) {
  for (const auto p : {Profile::kNative, Profile::kNativeBos, Profile::kFla, Profile::kFp64})
    if (name_of(p) == name) return p;
  throw Error(cat("there is no profile '", name, "'"),
              "the profiles are: native, native-bos, fla, fp64");
}

std::string name_of(Profile profile) {
  switch (profile) {
    case Profile::kNative: return "native";
    case Profile::kNativeBos: return "native-bos";
    case Profile::kFla: return "fla";
    case Profile::kFp64: break;
  }
  return "fp64";
}

Weights weights(const Network& net, const Shape& shape) { return Writer(net, shape).write(); }

}  // namespace lrnn::compile
