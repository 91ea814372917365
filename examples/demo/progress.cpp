#include "examples/demo/progress.hpp"

#include "tests/support/postgres.hpp"

namespace demo {

using outbox::test::must;

Progress look(outbox::pg::Session& bank, outbox::pg::Session& ledger) {
  const auto sent =
      must(bank.exec("SELECT count(*), count(*) FILTER (WHERE status = 'SENT') FROM outbox_msg"));
  const auto applied = must(ledger.exec("SELECT count(*) FROM processed_msgs WHERE state = 'applied'"));
  return {.produced = sent.integer(0, 0), .sent = sent.integer(0, 1), .applied = applied.integer(0, 0)};
}

std::int64_t send_again(outbox::pg::Session& bank, int count) {
  return must(bank.exec("UPDATE outbox_msg SET status = 'PENDING', generation = generation + 1 WHERE id IN "
                        "(SELECT id FROM outbox_msg WHERE status = 'SENT' ORDER BY random() LIMIT $1)",
                        outbox::pg::Params().i32(count)))
      .affected();
}

}  // namespace demo
