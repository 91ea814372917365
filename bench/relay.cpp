#include "bench/relay.hpp"

#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "tests/support/http.hpp"

namespace bench {

using outbox::test::read_file;

namespace {

std::string config_of(Stage& stage, const std::string& database, const std::string& admin,
                      const RelayOptions& options) {
  return "admin: { listen: \"unix:" + admin +
         "\" }\n"
         "pipelines:\n"
         "  - name: bench\n"
         "    postgres: { uri: \"" +
         (options.postgres.empty() ? stage.uri(database, "outbox_relay") : options.postgres) +
         "\" }\n"
         "    source:   { mode: " +
         options.mode + ", table: public.outbox_msg, after_sent: " + options.after_sent + " }\n" +
         options.pipeline + "    kafka:    { bootstrap.servers: \"" + stage.kafka().bootstrap() + "\"" +
         options.kafka_properties + " }\n";
}

}  // namespace

std::string outboxd_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "outboxd";
}

Relay::Relay(Stage& stage, const std::string& database, const RelayOptions& options) {
  outbox::test::write_file(folder_ / "outboxd.yaml", config_of(stage, database, admin(), options));
  process_ = std::make_unique<outbox::test::Process>(
      outboxd_program(), outbox::test::ProcessOptions{.args = {"run", "-c", folder_ / "outboxd.yaml"}});
  for (int waited_ms = 0; process_->errors().find("lanes_taken") == std::string::npos; ++waited_ms) {
    check();
    if (waited_ms > 30'000) throw std::runtime_error("outboxd took no lanes:\n" + process_->errors());
    std::this_thread::sleep_for(outbox::Millis{1});
  }
}

std::string Relay::admin() const {
  return (folder_ / "admin.sock").string();
}

double Relay::metric(const std::string& sample) const {
  const std::string text = outbox::test::http_get({.path = admin()}, "/metrics").body;
  const std::size_t at = text.find("\n" + sample + " ");
  if (at == std::string::npos) throw std::runtime_error("outboxd has no metric " + sample);
  return std::stod(text.substr(at + sample.size() + 2));
}

double Relay::cpu_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(process_->pid(), &clock) != 0 || ::clock_gettime(clock, &used) != 0)
    throw std::runtime_error("outboxd's CPU time cannot be read");
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

double Relay::rss_peak_mib() const {
  const std::string status = read_file("/proc/" + std::to_string(process_->pid()) + "/status");
  const std::size_t at = status.find("VmHWM:");
  if (at == std::string::npos) throw std::runtime_error("outboxd's memory cannot be read");
  return std::stod(status.substr(at + 6)) / 1024;
}

void Relay::check() {
  if (!process_->running()) throw std::runtime_error("outboxd ended by itself:\n" + process_->errors());
}

void Relay::signal(int number) {
  process_->kill(number);
}

void Relay::stop() {
  check();
  process_->kill(SIGTERM);
  if (process_->wait().code != 0)
    throw std::runtime_error("outboxd did not stop well:\n" + process_->errors());
}

}  // namespace bench
