#pragma once
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace lrnn::ops {

// While it lives, the tensors that this thread makes have shapes but no memory (torch's meta
// device): for models that are only to be measured, however large they are.
class NoMemory {
  c10::impl::IncludeDispatchKeyGuard guard_{c10::DispatchKey::DeferredInit};
};

}  // namespace lrnn::ops
