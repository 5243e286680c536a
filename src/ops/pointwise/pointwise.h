#pragma once
// The small row-wise functions between the matrix products, fused because on a CPU each extra pass
// over the activations costs as much as a GEMM. Each has a definition of one line of torch.
#include "ops/norm/norm.h"
#include "ops/swiglu/swiglu.h"
