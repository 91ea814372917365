#include "victim.hpp"

#include <stdexcept>
#include <utility>

namespace outbox::test {

Victim::Victim(std::string program, ProcessOptions options)
    : program_(std::move(program)), options_(std::move(options)) {
  start();
}

void Victim::start() {
  process_ = std::make_unique<Process>(program_, options_);
}

void Victim::kill() {
  end(SIGKILL, {.signal = SIGKILL});
  ++kills_;
}

void Victim::stop() {
  end(SIGTERM, {.code = 0});
}

void Victim::end(int signal, const ExitStatus& expected) {
  process_->kill(signal);
  const ExitStatus status = process_->wait();
  if (status == expected) return;
  throw std::runtime_error(program_ + " ended with code " + std::to_string(status.code) + ", signal " +
                           std::to_string(status.signal) + ":\n" + process_->errors());
}

}  // namespace outbox::test
