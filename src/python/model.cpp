#include <torch/custom_class.h>

#include <nlohmann/json.hpp>

#include "base/config.h"
#include "base/error.h"
#include "experiments/run.h"

// The model of a run as a torch class, torch.classes.lrnn.Model: python/lrnn/model.py makes an
// nn.Module of it. The tensors that Python gets are the model's own, so training there is training
// it.
namespace lrnn::python {
namespace {

using torch::Tensor;
using MaybeTensors = c10::List<std::optional<Tensor>>;
using States = c10::List<MaybeTensors>;  // a list per block; a tensor may be absent

States states_of(const model::State& state) {
  States out;
  for (const auto& block : state) {
    MaybeTensors tensors;
    for (const auto& x : block)
      tensors.push_back(x.defined() ? std::optional<Tensor>(x) : std::nullopt);
    out.push_back(tensors);
  }
  return out;
}

model::State state_of(const std::optional<States>& states) {
  model::State out;
  if (!states) return out;
  for (const MaybeTensors& tensors : *states) {
    mixers::State block;
    for (const std::optional<Tensor>& x : tensors) block.push_back(x.value_or(Tensor()));
    out.push_back(std::move(block));
  }
  return out;
}

// torch gives Python what() alone.
template <class F> auto with_hints(F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.hint().empty()) throw;
    throw Error(cat(error.what(), "\n  ", error.hint()));
  }
}

struct Model final : torch::CustomClassHolder {
  explicit Model(const std::string& folder)
      : run(with_hints([&] { return experiments::open(folder); })) {}

  std::tuple<Tensor, States> forward(const Tensor& ids, const std::optional<States>& before,
                                     const std::optional<Tensor>& cu_seqlens) {
    return with_hints([&] {
      auto state = state_of(before);
      model::Context context;
      if (cu_seqlens) context.cu_seqlens = cu_seqlens->to(torch::kInt64);
      const Tensor logits = run.model->forward(ids.to(torch::kInt64), state, context);
      return std::tuple(logits, states_of(state));
    });
  }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& item : run.model->named_parameters()) out.push_back(item.key());
    return out;
  }
  std::vector<Tensor> parameters() { return run.model->parameters(); }
  std::string config() { return to_json(experiments::resolve(run.config)).dump(); }
  int64_t step() { return run.step; }
  int64_t vocabulary() { return run.model->vocabulary(); }
  std::vector<std::string> damaged() { return run.damaged; }

  experiments::Run run;
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.class_<Model>("Model")
      .def(torch::init<const std::string&>())
      .def("forward", &Model::forward)
      .def("names", &Model::names)
      .def("parameters", &Model::parameters)
      .def("config", &Model::config)
      .def("step", &Model::step)
      .def("vocabulary", &Model::vocabulary)
      .def("damaged", &Model::damaged);
}

}  // namespace
}  // namespace lrnn::python
