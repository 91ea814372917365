#include "consumer/core/judge.hpp"

#include <doctest/doctest.h>

#include "letters.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

Uuid id(int n) {
  return parse_uuid(v7(n)).value();
}

struct Batch {
  std::vector<Letter> letters;
  std::vector<Record> views = records(letters);
  std::vector<Candidate> candidates = [this] {
    std::vector<Candidate> out;
    for (const auto& record : views) out.push_back(read_candidate(record));
    return out;
  }();
};

std::vector<Verdict> verdicts(const std::optional<std::vector<Judgement>>& judgements) {
  std::vector<Verdict> out;
  for (const auto& judgement : judgements.value()) out.push_back(judgement.verdict);
  return out;
}

}  // namespace

TEST_CASE("each distinct id is inserted once, in order of id, whatever the order of arrival") {
  const Batch batch{
      {letter(v7(3)), letter(v7(1), "first"), letter("no uuid"), letter(v7(2)), letter(v7(1), "second")}};
  const auto inserts = to_insert(batch.candidates);
  REQUIRE(inserts.size() == 3);
  CHECK(inserts[0]->message->msg_id() == id(1));
  CHECK(inserts[0]->record->body == "first");
  CHECK(inserts[1]->message->msg_id() == id(2));
  CHECK(inserts[2]->message->msg_id() == id(3));
}

TEST_CASE(
    "inserted is fresh, known is a duplicate, or a conflict where the payload differs, no identity is "
    "malformed") {
  const Batch batch{{letter(v7(1)), letter(v7(2), "same"), letter(v7(3), "other"), letter("no uuid")}};
  const Findings findings{.inserted = {id(1)}, .known = {{id(2), sha256("same")}, {id(3), sha256("first")}}};
  CHECK(verdicts(judge(batch.candidates, findings)) ==
        std::vector{Verdict::fresh, Verdict::duplicate, Verdict::conflict, Verdict::malformed});
}

TEST_CASE("of two copies in one batch only the first is fresh, and the second is judged by it") {
  const Batch batch{
      {letter(v7(1), "a"), letter(v7(1), "a"), letter(v7(1), "b"), letter(v7(1), std::nullopt)}};
  const Findings findings{.inserted = {id(1)}, .known = {}};
  CHECK(verdicts(judge(batch.candidates, findings)) ==
        std::vector{Verdict::fresh, Verdict::duplicate, Verdict::conflict, Verdict::conflict});
}

TEST_CASE("two copies of a known id are both judged by the row that was there, not by each other") {
  const Batch batch{{letter(v7(1), "b"), letter(v7(1), "b"), letter(v7(1), "a")}};
  const Findings findings{.inserted = {}, .known = {{id(1), sha256("a")}}};
  CHECK(verdicts(judge(batch.candidates, findings)) ==
        std::vector{Verdict::conflict, Verdict::conflict, Verdict::duplicate});
}

TEST_CASE("an id that was neither inserted nor found is never called fresh") {
  const Batch batch{{letter(v7(1)), letter(v7(2))}};
  CHECK_FALSE(judge(batch.candidates, {.inserted = {id(1)}, .known = {}}).has_value());
}

TEST_CASE("a tombstone and an empty body are a conflict") {
  const Batch batch{{letter(v7(1), ""), letter(v7(1), std::nullopt)}};
  CHECK(verdicts(judge(batch.candidates, {.inserted = {id(1)}, .known = {}})) ==
        std::vector{Verdict::fresh, Verdict::conflict});
}
