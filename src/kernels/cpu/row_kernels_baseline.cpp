#define LRNN_ISA baseline
#include "kernels/cpu/row_tables.h"
