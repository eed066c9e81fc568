// onnx_suite_runner CASES.txt OUT.tsv [--backends cpu,reference] [--jobs N] [--seconds N]
// Runs every case folder that CASES.txt lists (one a line) on each backend and writes one line for each:
// folder, backend, passed | failed | unsupported, detail. Each case runs in a process of its own, with a
// limit on time and memory, so that a crash or a hang costs that case only. Exit status 0 whatever the
// results are.

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "backends.h"

namespace decant::suite {
namespace {

using Clock = std::chrono::steady_clock;

struct Task {
  std::string folder, backend;
  std::string line;  ///< "result<TAB>detail"
};

struct Child {
  pid_t pid = -1;
  int pipe = -1;
  size_t task = 0;
  Clock::time_point deadline;
  std::string text;
};

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
  }
  return text.substr(0, 600);
}

void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__)
  const rlimit limit{rlim_t{6} << 30, rlim_t{6} << 30};
  setrlimit(RLIMIT_AS, &limit);
#endif
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

[[noreturn]] void run_child(const Task& task, int pipe) {
  limit_memory();
  const Outcome outcome = run_case(task.folder, task.backend);
  static constexpr const char* kNames[] = {"passed", "failed", "unsupported"};
  const std::string line =
      std::string(kNames[static_cast<int>(outcome.result)]) + "\t" + one_line(outcome.detail);
  for (size_t at = 0; at < line.size();) {
    const ssize_t n = write(pipe, line.data() + at, line.size() - at);
    if (n <= 0) _exit(1);
    at += static_cast<size_t>(n);
  }
  _exit(0);
}

/// False when the machine gives no process.
bool start(std::vector<Child>& running, const std::vector<Task>& tasks, size_t task, int seconds) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const pid_t pid = fork();
  if (pid < 0) return false;
  if (pid == 0) {
    close(ends[0]);
    run_child(tasks[task], ends[1]);
  }
  close(ends[1]);
  running.push_back({pid, ends[0], task, Clock::now() + std::chrono::seconds(seconds), ""});
  return true;
}

void finish(Child& child, std::vector<Task>& tasks, bool timeout) {
  if (timeout) kill(child.pid, SIGKILL);
  close(child.pipe);
  int status = 0;
  waitpid(child.pid, &status, 0);
  std::string& line = tasks[child.task].line;
  if (timeout) {
    line = "failed\ttime limit";
  } else if (child.text.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    line = "failed\tcrash, status " + std::to_string(status);
  } else {
    line = child.text;
  }
}

/// Waits for news of the running children and finishes those that are done.
void wait_some(std::vector<Child>& running, std::vector<Task>& tasks) {
  std::vector<pollfd> polls;
  for (const Child& c : running) polls.push_back({c.pipe, POLLIN, 0});
  poll(polls.data(), polls.size(), 200);
  for (size_t i = running.size(); i-- > 0;) {
    Child& child = running[i];
    bool done = false;
    if (polls[i].revents != 0) {
      char buffer[4096];
      const ssize_t n = read(child.pipe, buffer, sizeof buffer);
      if (n > 0) child.text.append(buffer, static_cast<size_t>(n));
      done = n <= 0;
    }
    const bool timeout = !done && Clock::now() > child.deadline;
    if (!done && !timeout) continue;
    finish(child, tasks, timeout);
    running.erase(running.begin() + static_cast<ptrdiff_t>(i));
  }
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out(1);
  for (char c : text) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

int run(int argc, char** argv) {
  if (argc < 3) {
    std::cerr
        << "usage: onnx_suite_runner CASES.txt OUT.tsv [--backends cpu,reference] [--jobs N] [--seconds N]\n";
    return 2;
  }
  std::vector<std::string> backends = {"cpu", "reference"};
  size_t jobs = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  int seconds = 20;
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--backends") backends = split(argv[i + 1]);
    if (option == "--jobs") jobs = static_cast<size_t>(std::max(1, std::atoi(argv[i + 1])));
    if (option == "--seconds") seconds = std::max(1, std::atoi(argv[i + 1]));
  }
  std::vector<Task> tasks;
  std::ifstream list(argv[1]);
  for (std::string folder; std::getline(list, folder);) {
    if (folder.empty()) continue;
    for (const std::string& backend : backends) tasks.push_back({folder, backend, ""});
  }
  std::vector<Child> running;
  for (size_t next = 0; next < tasks.size() || !running.empty();) {
    while (next < tasks.size() && running.size() < jobs) {
      if (!start(running, tasks, next, seconds)) {
        std::cerr << "cannot start a process\n";
        return 1;
      }
      ++next;
    }
    wait_some(running, tasks);
  }
  std::ofstream out(argv[2]);
  for (const Task& t : tasks) out << t.folder << '\t' << t.backend << '\t' << t.line << '\n';
  out.flush();
  return out ? 0 : 1;
}

}  // namespace
}  // namespace decant::suite

int main(int argc, char** argv) { return decant::suite::run(argc, argv); }
