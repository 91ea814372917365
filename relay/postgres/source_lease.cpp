#include "relay/postgres/source_lease.hpp"

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace outbox::relay {
namespace {

LeaseReply read_lease(const pg::Rows& rows, const std::string& owner) {
  LeaseReply reply;
  for (int row = 0; row < rows.size(); ++row) {
    reply.lanes = static_cast<std::int16_t>(rows.integer(row, 4));
    reply.share = static_cast<std::int16_t>(rows.integer(row, 5));
    reply.instances = static_cast<std::int32_t>(rows.integer(row, 6));
    if (const auto reason = rows.text_or_null(row, 7)) reply.paused = std::string{*reason};
    if (const auto delivery = rows.text_or_null(row, 8))
      reply.differs = Differing{std::string{*delivery}, std::string{rows.text(row, 9)}};
    if (rows.is_null(row, 2)) continue;
    if (rows.text(row, 2) == owner) {
      reply.held.push_back(
          {LaneId{static_cast<std::int16_t>(rows.integer(row, 0))}, Epoch{rows.integer(row, 1)}});
    } else {
      reply.other_owner = rows.text(row, 2);
      const Millis ends{rows.integer(row, 3)};
      reply.other_ends = std::min(reply.other_ends.value_or(ends), ends);
    }
  }
  return reply;
}

class LeaseCall : public std::enable_shared_from_this<LeaseCall> {
 public:
  LeaseCall(std::shared_ptr<SourceLink> link, LeaseRequest request, Done<LeaseReply> done)
      : link_(std::move(link)),
        request_(std::move(request)),
        done_(std::move(done)),
        patience_(link_->make_timer()) {}

  void start() {
    ask(Work::control);
    patience_.expires_after(request_.ttl / 5);
    patience_.async_wait([self = shared_from_this()](const auto& error) {
      if (!error && self->done_ && !self->link_->stopped()) self->ask_again();
    });
  }

 private:
  void ask(Work by) {
    pg::Params params;
    params.text(link_->source()).text(request_.owner).i32(request_.lanes).i64(request_.ttl.count());
    params.untyped(std::to_string(request_.sent_per_s)).text(request_.delivery).text(request_.stopped);
    under_way_ += 1;
    link_->run(
        by, {{link_->sql()->lease, std::move(params)}},
        [self = shared_from_this()](Results results) { self->answered(std::move(results)); }, request_.ttl);
  }

  void ask_again() {
    asked_again_ = true;
    ask(Work::mark);
  }

  using Results = Result<std::vector<pg::Rows>>;
  void answered(Results results) {
    under_way_ -= 1;
    if (!done_ || (!results && under_way_ > 0)) return;
    patience_.cancel();
    if (!results && !asked_again_) return ask_again();
    const auto done = std::exchange(done_, nullptr);
    if (!results) return done(failure(std::move(results.error())));
    done(read_lease(results->front(), request_.owner));
  }

  std::shared_ptr<SourceLink> link_;
  LeaseRequest request_;
  Done<LeaseReply> done_;  // empty: answered
  boost::asio::steady_timer patience_;
  int under_way_ = 0;
  bool asked_again_ = false;
};

}  // namespace

void start_lease(const std::shared_ptr<SourceLink>& link, LeaseRequest request, Done<LeaseReply> done) {
  std::make_shared<LeaseCall>(link, std::move(request), std::move(done))->start();
}

}  // namespace outbox::relay
