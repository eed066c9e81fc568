#pragma once

namespace decant::cli {

/// The command line: parses `argv` as main gets it, runs a command, and gives the exit code (0: done, 1: the
/// model or the input, 2: wrong usage, 3: the machine).
int run(int argc, const char* const* argv);

}  // namespace decant::cli
