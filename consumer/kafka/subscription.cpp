#include "consumer/kafka/subscription.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "consumer/core/start.hpp"
#include "consumer/kafka/records.hpp"
#include "consumer/kafka/start.hpp"

namespace outbox {
namespace {

constexpr std::chrono::milliseconds close_patience{5000};

KafkaList to_list(std::span<const PartitionId> partitions) {
  KafkaList list{rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size()))};
  for (const auto& id : partitions)
    rd_kafka_topic_partition_list_add(list.get(), id.topic.c_str(), id.partition);
  return list;
}

std::vector<PartitionId> to_ids(const rd_kafka_topic_partition_list_t* list) {
  std::vector<PartitionId> out;
  out.reserve(static_cast<std::size_t>(list->cnt));
  for (int i = 0; i < list->cnt; ++i) out.push_back({list->elems[i].topic, list->elems[i].partition});
  return out;
}

bool ends_the_loop(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR__FATAL || error == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
         error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
         error == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
}

const char* advice_for(rd_kafka_resp_err_t error) {
  if (error != RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) return "";
  return "messages were deleted before this group read them, or the topic was made again: find out which, "
         "then set the "
         "group's offset by hand";
}

/// Destroying a client waits, a minute and more, for a broker that still owes it an answer. One that was
/// given up is destroyed on a thread that nobody waits for.
class Destroy {
 public:
  explicit Destroy(std::shared_ptr<const std::atomic<bool>> given_up) : given_up_(std::move(given_up)) {}
  void operator()(rd_kafka_t* client) const noexcept {
    const auto destroy = [client] { rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE); };
    if (!*given_up_) return destroy();
    try {
      std::thread(destroy).detach();
    } catch (const std::system_error&) {  // no thread to be had: it stays until the process ends
    }
  }

 private:
  std::shared_ptr<const std::atomic<bool>> given_up_;
};

class KafkaSubscription final : public Subscription {
 public:
  explicit KafkaSubscription(KafkaSubscriptionOptions options) : options_(std::move(options)) {}
  ~KafkaSubscription() override { KafkaSubscription::close(); }

  Status create();
  void start(Events events) override;
  Result<std::optional<Fetched>> poll(Millis timeout) override;
  void pause(std::span<const PartitionId> partitions) override;
  void resume(std::span<const PartitionId> partitions) override;
  std::optional<std::int64_t> end_of(const PartitionId& partition) override;
  Status commit(std::span<const NextOffset> offsets, Commit when) override;
  void rejoin() override;
  void close() override;

 private:
  static void on_rebalance(rd_kafka_t* client, rd_kafka_resp_err_t what,
                           rd_kafka_topic_partition_list_t* partitions, void* self) noexcept;
  static void on_error(rd_kafka_t* client, int error, const char* reason, void* self) noexcept;
  static void on_log(const rd_kafka_t* client, int level, const char* facility, const char* text) noexcept;
  void subscribe();
  void join_again();
  void serve(const KafkaEvent& event);
  void assigned(rd_kafka_topic_partition_list_t* partitions);
  Status set_starts_in_the_end(rd_kafka_topic_partition_list_t* partitions, const Starts& known);
  [[nodiscard]] bool stopping() const { return options_.stopping && options_.stopping(); }
  void revoked(rd_kafka_topic_partition_list_t* partitions);
  [[nodiscard]] bool cooperative() const;
  void assign(rd_kafka_topic_partition_list_t* partitions);
  void unassign(rd_kafka_topic_partition_list_t* partitions);
  std::optional<Error> judge(const rd_kafka_message_t& message);
  void say(const std::string& line) {
    if (events_.log) events_.log(line);
  }

  KafkaSubscriptionOptions options_;
  Events events_;
  std::shared_ptr<std::atomic<bool>> given_up_ = std::make_shared<std::atomic<bool>>(false);
  KafkaClient client_;
  BornCounts born_;
  bool rejoining_ = false;        ///< left, and not yet joined again
  std::optional<Error> failure_;  ///< of a callback; the next poll() returns it
  rd_kafka_resp_err_t last_said_ = RD_KAFKA_RESP_ERR_NO_ERROR;
};

Status KafkaSubscription::create() {
  KafkaConf conf{rd_kafka_conf_new()};
  char reason[512];
  for (const auto& [property, value] : options_.properties)
    if (rd_kafka_conf_set(conf.get(), property.c_str(), value.c_str(), reason, sizeof reason) !=
        RD_KAFKA_CONF_OK)
      return failure(Disposition::fatal, std::string("kafka: ") + reason);
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_rebalance_cb(conf.get(), &KafkaSubscription::on_rebalance);
  rd_kafka_conf_set_error_cb(conf.get(), &KafkaSubscription::on_error);
  rd_kafka_conf_set_log_cb(conf.get(), &KafkaSubscription::on_log);
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), reason, sizeof reason);
  if (!client) return failure(Disposition::fatal, std::string("kafka: ") + reason);
  static_cast<void>(conf.release());  // the client has it
  client_ = KafkaClient(client, Destroy(given_up_));
  rd_kafka_poll_set_consumer(client);
  return {};
}

void KafkaSubscription::start(Events events) {
  events_ = std::move(events);
  subscribe();
}

void KafkaSubscription::subscribe() {
  const KafkaList topics{rd_kafka_topic_partition_list_new(static_cast<int>(options_.topics.size()))};
  for (const auto& topic : options_.topics)
    rd_kafka_topic_partition_list_add(topics.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  if (const auto error = rd_kafka_subscribe(client_.get(), topics.get()); error != RD_KAFKA_RESP_ERR_NO_ERROR)
    failure_ = Error{Disposition::fatal, rd_kafka_err2name(error), rd_kafka_err2str(error),
                     "look at the topics' names"};
}

void KafkaSubscription::rejoin() {
  rejoining_ = rd_kafka_unsubscribe(client_.get()) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/// Once everything that was assigned is given up.
void KafkaSubscription::join_again() {
  rd_kafka_topic_partition_list_t* raw = nullptr;
  if (rd_kafka_assignment(client_.get(), &raw) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const KafkaList assigned{raw};
  if (assigned->cnt > 0) return;
  rejoining_ = false;
  subscribe();
}

Result<std::optional<Fetched>> KafkaSubscription::poll(Millis timeout) {
  if (rejoining_) join_again();
  KafkaMessage message{rd_kafka_consumer_poll(client_.get(), static_cast<int>(timeout.count()))};
  if (failure_) return failure(*failure_);
  if (!message) return std::nullopt;
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return to_fetched(client_, std::move(message));
  if (auto error = judge(*message)) return failure(*std::move(error));
  return std::nullopt;
}

std::optional<Error> KafkaSubscription::judge(const rd_kafka_message_t& message) {
  const auto code = message.err;
  std::string text = rd_kafka_message_errstr(&message);
  if (message.rkt)
    text =
        std::string(rd_kafka_topic_name(message.rkt)) + "-" + std::to_string(message.partition) + ": " + text;
  if (ends_the_loop(code)) return Error{Disposition::fatal, rd_kafka_err2name(code), text, advice_for(code)};
  if (code != last_said_)
    say("kafka_error code=" + std::string(rd_kafka_err2name(code)) + " reason=\"" + text + "\"");
  last_said_ = code;
  return std::nullopt;
}

void KafkaSubscription::pause(std::span<const PartitionId> partitions) {
  static_cast<void>(rd_kafka_pause_partitions(client_.get(), to_list(partitions).get()));
}

void KafkaSubscription::resume(std::span<const PartitionId> partitions) {
  static_cast<void>(rd_kafka_resume_partitions(client_.get(), to_list(partitions).get()));
}

std::optional<std::int64_t> KafkaSubscription::end_of(const PartitionId& partition) {
  std::int64_t low = -1, high = -1;
  const auto error = rd_kafka_get_watermark_offsets(client_.get(), partition.topic.c_str(),
                                                    partition.partition, &low, &high);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR || high < 0) return std::nullopt;
  return high;
}

Status KafkaSubscription::commit(std::span<const NextOffset> offsets, Commit when) {
  if (offsets.empty()) return {};
  const KafkaList list{rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size()))};
  for (const auto& offset : offsets) {
    auto* element = rd_kafka_topic_partition_list_add(list.get(), offset.partition.topic.c_str(),
                                                      offset.partition.partition);
    element->offset = offset.next;
    if (const auto found = born_.find(offset.partition.topic); found != born_.end())
      set_metadata(*element, born_metadata(found->second));
  }
  const auto error = when == Commit::soon ? rd_kafka_commit(client_.get(), list.get(), 1)
                                          : commit_and_wait(client_.get(), list.get());
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR || when == Commit::soon) return {};
  return failure(Disposition::retry, std::string("offsets were not committed: ") + rd_kafka_err2str(error),
                 rd_kafka_err2name(error));
}

// librdkafka's own close waits, without an end, for a commit whose coordinator is away. Without an answer
// within close_patience the client is let go as it is: the group finds out by its session's time-out, and
// what was not committed comes again as duplicates. Served as events, not by rd_kafka_queue_poll_callback,
// which aborts where the queue still holds records that nobody asked for.
void KafkaSubscription::close() {
  if (!client_) return;
  const auto deadline = std::chrono::steady_clock::now() + close_patience;
  {
    const KafkaQueue events{rd_kafka_queue_new(client_.get())};
    if (auto* error = rd_kafka_consumer_close_queue(client_.get(), events.get()))
      rd_kafka_error_destroy(error);
    else
      while (!rd_kafka_consumer_closed(client_.get()) && std::chrono::steady_clock::now() < deadline)
        serve(KafkaEvent{rd_kafka_queue_poll(events.get(), 100)});
  }
  *given_up_ = rd_kafka_consumer_closed(client_.get()) == 0;
  if (*given_up_) say("kafka_close_given_up next=\"what was not committed comes again as duplicates\"");
  client_.reset();
}

bool KafkaSubscription::cooperative() const {
  const char* protocol = rd_kafka_rebalance_protocol(client_.get());
  return protocol && std::strcmp(protocol, "COOPERATIVE") == 0;
}

void KafkaSubscription::assign(rd_kafka_topic_partition_list_t* partitions) {
  if (!cooperative())
    rd_kafka_assign(client_.get(), partitions);
  else if (auto* error = rd_kafka_incremental_assign(client_.get(), partitions))
    rd_kafka_error_destroy(error);
}

void KafkaSubscription::unassign(rd_kafka_topic_partition_list_t* partitions) {
  if (!cooperative())
    rd_kafka_assign(client_.get(), nullptr);
  else if (auto* error = rd_kafka_incremental_unassign(client_.get(), partitions))
    rd_kafka_error_destroy(error);
}

void KafkaSubscription::assigned(rd_kafka_topic_partition_list_t* partitions) {
  const auto known = events_.starts ? events_.starts(to_ids(partitions)) : Result<Starts>(Starts{});
  const Status set = known ? set_starts_in_the_end(partitions, *known) : Status(failure(known.error()));
  if (!set) {
    if (!stopping()) failure_ = set.error();
    const KafkaList none{rd_kafka_topic_partition_list_new(0)};
    return assign(none.get());
  }
  events_.on_assigned(to_ids(partitions));
  assign(partitions);
  rd_kafka_resume_partitions(client_.get(),
                             partitions);  // a pause of an earlier assignment must not outlive it
}

// A cluster that does not answer is waited for. Where the group gives the partitions to another meanwhile, they
// are revoked right after.
Status KafkaSubscription::set_starts_in_the_end(rd_kafka_topic_partition_list_t* partitions,
                                                const Starts& known) {
  for (bool said = false;; said = true) {
    const Status set = set_starts(client_.get(), partitions,
                                  {options_.start_at, known, options_.stopping, options_.remember}, born_);
    if (set || set.error().disposition != Disposition::retry || stopping()) return set;
    if (!said) say("start_waits reason=\"" + set.error().text() + "\" next=\"it is asked again\"");
  }
}

void KafkaSubscription::revoked(rd_kafka_topic_partition_list_t* partitions) {
  const bool lost = rd_kafka_assignment_lost(client_.get()) != 0;
  events_.on_revoked(to_ids(partitions), lost ? Revoked::lost : Revoked::handed_over);
  unassign(partitions);
}

void KafkaSubscription::on_rebalance(rd_kafka_t*, rd_kafka_resp_err_t what,
                                     rd_kafka_topic_partition_list_t* partitions, void* opaque) noexcept {
  auto& self = *static_cast<KafkaSubscription*>(opaque);
  if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
    self.assigned(partitions);
  else if (what == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS)
    self.revoked(partitions);
  else
    self.unassign(partitions);
}

void KafkaSubscription::serve(const KafkaEvent& event) {
  if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_REBALANCE)
    on_rebalance(client_.get(), rd_kafka_event_error(event.get()),
                 rd_kafka_event_topic_partition_list(event.get()), this);
}

void KafkaSubscription::on_error(rd_kafka_t*, int error, const char* reason, void* opaque) noexcept {
  auto& self = *static_cast<KafkaSubscription*>(opaque);
  const auto code = static_cast<rd_kafka_resp_err_t>(error);
  if (code == self.last_said_) return;
  self.last_said_ = code;
  self.say("kafka_error code=" + std::string(rd_kafka_err2name(code)) + " reason=\"" +
           (reason ? reason : "") + "\"");
}

// Everything that matters comes as an error event too; what is left is chatter about single brokers.
void KafkaSubscription::on_log(const rd_kafka_t*, int, const char*, const char*) noexcept {}

}  // namespace

Result<std::unique_ptr<Subscription>> subscribe_kafka(KafkaSubscriptionOptions options) {
  auto subscription = std::make_unique<KafkaSubscription>(std::move(options));
  if (const Status created = subscription->create(); !created) return failure(created.error());
  return std::unique_ptr<Subscription>(std::move(subscription));
}

}  // namespace outbox
