#define LRNN_ISA avx2
#include "kernels/cpu/row_tables.h"
