#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <string_view>

#include "tests/emulator/runtime/capture.h"
#include "tests/emulator/torch/torch.h"
#include "tests/emulator/torch/views.h"

// Every op of LibTorch on CUDA tensors, and what a recording has to know of it.
namespace lrnn::emulator {
namespace {

// These take tensors of host and device at once; any other op refuses, as on a GPU.
constexpr std::string_view kMixes[] = {"aten::copy_", "aten::index", "aten::_index_put_impl_",
                                       "aten::_pack_padded_sequence"};

// The size of their result, or the result itself, is known on the host: they wait for the device.
constexpr std::string_view kWaits[] = {"aten::_local_scalar_dense",
                                       "aten::nonzero",
                                       "aten::masked_select",
                                       "aten::equal",
                                       "aten::_unique2",
                                       "aten::unique_dim",
                                       "aten::multinomial",
                                       "aten::bincount",
                                       "aten::repeat_interleave",
                                       "aten::unique_consecutive"};

template <size_t N>
bool is_among(const std::string_view (&names)[N], const c10::OperatorHandle& op) {
  return std::find(names, names + N, op.operator_name().name) != names + N;
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

template <class Do> void each_tensor(const c10::IValue& value, const Do& work) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) work(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& x : value.toTensorList())
      if (x.defined()) work(x);
  }
}

// Below autograd and autocast, which have been passed.
void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::impl::ExcludeDispatchKeyGuard no_casts(c10::autocast_dispatch_keyset);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

// A replay writes to the memory that the recording wrote to.
void record_op(cudaStream_t stream, const c10::OperatorHandle& op, torch::jit::Stack arguments,
               const torch::jit::Stack& results, const Views& views) {
  struct Result {
    size_t of, at;  // tensor `at` of result `of`
    void* to;
    size_t bytes;
  };
  std::vector<Result> copies;
  for (const auto& copied : views.copied())
    for (size_t of = 0; of < results.size(); ++of) {
      size_t at = 0;
      each_tensor(results[of], [&](const at::Tensor& x) {
        if (x.storage().unsafeGetStorageImpl() == copied.from.unsafeGetStorageImpl() &&
            (copies.empty() || copies.back().to != copied.to))
          copies.push_back({of, at, copied.to, copied.from.nbytes()});
        ++at;
      });
    }
  record(stream, [op, arguments = std::move(arguments), copies] {
    auto stack = arguments;
    run(op, &stack);
    for (const auto& copy : copies) {
      size_t at = 0;
      each_tensor(stack[copy.of], [&](const at::Tensor& x) {
        if (at++ != copy.at) return;
        TORCH_CHECK(x.storage().nbytes() == copy.bytes, op.schema().name(),
                    " has a result of another size as it is replayed");
        std::memcpy(copy.to, x.storage().data(), copy.bytes);
      });
    }
  });
}

}  // namespace

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto stream = c10::cuda::getCurrentCUDAStream().stream();
  if (is_among(kWaits, op)) C10_CUDA_CHECK(cudaStreamSynchronize(stream));
  Turn turn(stream);
  const bool captured = turn.captured();
  TORCH_CHECK(!captured || !op.hasTag(at::Tag::nondeterministic_seeded),
              "random numbers in a recording: ", schema.name());

  Views views;
  const size_t count = schema.arguments().size(), first = stack->size() - count;
  bool any_written = false;
  for (size_t i = 0; i < count; ++i) {
    auto& value = (*stack)[first + i];
    if (captured && writes(schema.arguments()[i])) {
      any_written = true;
      each_tensor(value, [&](const at::Tensor& x) { turn.may_write(x.storage().data()); });
    }
    value = views.to_cpu(value);
  }
  TORCH_CHECK(!views.of_host().defined() || !views.any_cuda() || is_among(kMixes, op),
              "Expected all tensors to be on the same device, but found at least two devices, "
              "cuda:0 and cpu! (",
              schema.name(), ")");
  torch::jit::Stack arguments;
  if (captured) arguments = *stack;
  run(op, stack);
  views.follow();
  torch::jit::Stack results;
  if (captured) results = *stack;
  for (auto& value : *stack) value = views.to_cuda(value);
  if (captured && (any_written || !views.copied().empty()))
    record_op(stream, op, std::move(arguments), results, views);
}

}  // namespace lrnn::emulator

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&lrnn::emulator::on_the_cpu>());
}
