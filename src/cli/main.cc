#include "cli/run.h"

int main(int argc, char** argv) { return decant::cli::run(argc, argv); }
