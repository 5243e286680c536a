#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "ops/gpu.h"
#include "ops/torch.h"
#include "training/average.h"
#include "training/config.h"
#include "training/ranks.h"

namespace lrnn::training {

// AdamW with decoupled decay over one flat float32 buffer of all parameters:
//
//   p <- p (1 - lr decay),  m <- b1 m + (1-b1) g,  v <- b2 v + (1-b2) g^2
//   p <- p - lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps)
//
// The module's parameters become views of the buffer and their gradients views of another, so that
// zeroing, the norm and the update are each one pass, whatever the number of parameters. (On a GPU
// gradients are read where backward leaves them, unless those of several parts or ranks are added
// up.)
// Results have the same bits for any number of threads. Nobody else may re-seat the parameters
// (Module::to) while the optimiser is in use.
//
// Where several processes train one model (Ranks), each keeps m and v of a slice of the buffer,
// updates that slice with everybody's gradients, and gives its new values to the others (ZeRO
// stage 1). The bits are those of one process that adds up the same gradients in the same order.
class AdamW {
 public:
  using Decays = std::function<bool(const std::string& name)>;
  AdamW(torch::nn::Module& module, const TrainConfig& train, const Decays& decays,
        const Ranks& ranks = {});
  AdamW(model::Model& model, const TrainConfig& train, const Ranks& ranks = {})
      : AdamW(
            model, train, [&](const std::string& name) { return model.decays(name); }, ranks) {}

  void zero_grad();
  // Takes in gradients that lie elsewhere than in the flat buffer.
  void gather() const;
  // With several ranks, before the norm and the step: everybody's gradients are added up.
  void exchange();
  // Of all gradients together; not finite exactly if one of them is not.
  double grad_norm() const;
  // The first parameter whose gradient is not finite, or "".
  std::string first_nonfinite() const;
  // What gradients are multiplied by for their norm to be at most `limit`; 1 for limit 0.
  static double clip(double norm, double limit);
  // One update with gradients times `scale`.
  void step(double lr, double scale = 1);
  // The part of an update that train.tap_decay asks for: past taps come closer to 0 by that times
  // `rate`, which is lr/(1-b1^t), float64 [] where the weights are. step() does it itself.
  void shrink_taps(const torch::Tensor& rate) const;

  // The same update where the parameters are on a GPU. Gradients are dropped before backward, so
  // that it need not add to them, and fetched afterwards from where it left them. The buffers are
  // recorded once; then, for every update, its settings, and applied() when the report says that it
  // was made.
  void drop_grads();
  std::vector<ops::GpuGradient> fetch_grads();
  // From here on parameters show those as their gradients.
  void show_grads(const std::vector<ops::GpuGradient>& gradients);
  // Of a batch of several parts, whose gradients are added up in the flat buffer; and of several
  // ranks: each adds up its own, exchange() those of all, and share() ends the update.
  void add_to_sums(const std::vector<ops::GpuGradient>& gradients);
  void show_sums();
  // Of the slice that this rank updates.
  std::vector<ops::GpuGradient> sums() const;
  // What the norm is made of, one number per piece of that slice: in this order, the ranks' one
  // after the other, they have the same bits for any number of ranks.
  int64_t pieces_of_slice() const { return (own_.size() + kPiece - 1) / kPiece; }
  void squares(const torch::Tensor& to) const;
  void share() const { ranks_.share_slices(values_); }
  // While it lives the layers of the module read copies of their weights in `dtype`, made in one
  // pass (see ops/linears/weight.h).
  class Copies {
   public:
    Copies(AdamW& owner, torch::Dtype dtype);
    ~Copies() { owner_.lend(false); }
    Copies(const Copies&) = delete;
    Copies& operator=(const Copies&) = delete;

   private:
    AdamW& owner_;
  };
  ops::GpuAdamW on_gpu(const torch::Tensor& settings, const torch::Tensor& report) const;
  void fill_settings(double lr, double clip, double* settings) const;
  void applied() { average_->follow(++t_); }

  int64_t steps() const { return t_; }
  const Average& average() const { return *average_; }
  // m, v and step, with an average also the weights and it, for checkpoints: the same for any
  // number of ranks, all of which have to ask. They may be what the next update changes. `where`
  // names the file in errors.
  std::map<std::string, torch::Tensor> state() const;
  void load(const std::map<std::string, torch::Tensor>& state, const std::string& where);

 private:
  struct Slot {
    std::string name;
    torch::Tensor parameter, grad;  // grad: the view of grads_, if there is one
    torch::Tensor copy;             // a view of flat_copies_, or undefined
    int64_t begin, size;
    bool decays = false;
  };
  struct Piece {  // what one thread takes at a time; all of it decays or none of it
    int64_t begin, end;
    bool decays;
  };
  // A layer whose weight is a slot, and a pack whose weights are slots one after the other.
  struct Reader {
    std::shared_ptr<torch::nn::Module> module;
    mixers::Weighted* layer;
    size_t slot;
  };
  struct Seated {
    std::shared_ptr<torch::nn::Module> module;
    mixers::Pack* pack;
    int64_t begin;
    std::vector<int64_t> shape;
  };
  void seat(torch::nn::Module& module, bool parts);
  void find_readers(torch::nn::Module& module);
  void seat(const std::shared_ptr<torch::nn::Module>& module, mixers::Pack& pack,
            const std::map<const void*, size_t>& slot_of);
  static torch::Tensor part(const torch::Tensor& flat, int64_t begin,
                            const std::vector<int64_t>& shape);
  void lend(bool copies);
  void cut(const Decays& decays);

  static constexpr int64_t kPiece = 8192;  // floats

  double beta1_, beta2_, eps_, decay_, tap_decay_;
  Ranks ranks_;
  int64_t t_ = 0, size_ = 0;  // size_: floats that are used; the rest make the slices equal
  Slice own_;                 // what this rank updates: all of it, but for several ranks
  std::vector<Slot> slots_;
  std::vector<Piece> pieces_;
  std::vector<torch::Tensor> taps_;  // views of values_: kernels without their last tap
  torch::Tensor values_, grads_;     // no grads_ on a GPU where a batch is one part of one rank
  std::optional<Average> average_;   // from the moment that there are values
  torch::Tensor m_, v_;              // of own_
  torch::Tensor flat_copies_;        // values_ in another type
  std::vector<Reader> readers_;
  std::vector<Seated> packs_;
};

}  // namespace lrnn::training
