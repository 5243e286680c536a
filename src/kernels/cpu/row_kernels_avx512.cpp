#define LRNN_ISA avx512
#include "kernels/cpu/row_tables.h"
