#include "examples/demo/program.hpp"

#include <sstream>
#include <stdexcept>
#include <utility>

namespace demo {

using outbox::test::ExitStatus;
using outbox::test::Process;

Program::Program(std::string name, std::string path, std::vector<std::string> args,
                 std::filesystem::path folder)
    : name_(std::move(name)), path_(std::move(path)), args_(std::move(args)), folder_(std::move(folder)) {}

void Program::start() {
  ++lives_;
  process_ = std::make_unique<Process>(
      path_,
      outbox::test::ProcessOptions{
          .args = args_, .folder = folder_, .output = file(lives_, "out"), .errors = file(lives_, "err")});
}

void Program::kill() {
  process_->kill(SIGKILL);
  process_->wait();
  process_.reset();
  ++kills_;
}

void Program::stop() {
  if (!running()) return;
  process_->kill(SIGTERM);
  const ExitStatus status = process_->wait();
  process_.reset();
  if (status != ExitStatus{.code = 0}) fail(status);
}

bool Program::running() {
  if (!process_) return false;
  if (process_->running()) return true;
  const ExitStatus status = process_->wait();
  process_.reset();
  if (status != ExitStatus{.code = 0}) fail(status);
  return false;
}

long long Program::sum_of(const std::string& word) const {
  long long sum = 0;
  for (int life = 1; life <= lives_; ++life) {
    std::istringstream lines(outbox::test::read_file(file(life, "out")));
    long long last = 0;
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(word + " ")) last = std::stoll(line.substr(word.size() + 1));
    sum += last;
  }
  return sum;
}

std::filesystem::path Program::file(int life, const char* stream) const {
  return folder_ / (name_ + "." + std::to_string(life) + "." + stream);
}

void Program::fail(const ExitStatus& status) const {
  const std::string errors = outbox::test::read_file(file(lives_, "err"));
  const std::string how = status.signal != 0 ? "signal " + std::to_string(status.signal)
                                             : "exit code " + std::to_string(status.code);
  throw std::runtime_error(name_ + " ended by itself (" + how + "):\n" +
                           errors.substr(errors.size() > 2000 ? errors.size() - 2000 : 0));
}

}  // namespace demo
