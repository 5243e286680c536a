#include "cli/command.h"

int main(int argc, char** argv) { return lrnn::cli::program({argv + 1, argv + argc}); }
