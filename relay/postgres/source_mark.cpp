#include "relay/postgres/source_mark.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "relay/postgres/mark_rows.hpp"

namespace outbox::relay {
namespace {

constexpr int rounds_max =
    5;  // a row that moves between each look and its write, this often, is tried again later

class MarkCall : public std::enable_shared_from_this<MarkCall> {
 public:
  MarkCall(std::shared_ptr<SourceLink> link, std::vector<SentRow> rows, AfterSent after, Done<MarkReply> done)
      : link_(std::move(link)),
        after_(after),
        done_(std::move(done)),
        leases_(rows),
        rows_(std::move(rows)) {}

  void start() {
    std::set<pg::Oid> tables;
    for (const SentRow& row : rows_) tables.insert(row.address.table);
    std::vector<pg::Oid> unknown;
    std::ranges::copy_if(tables, std::back_inserter(unknown),
                         [&](pg::Oid table) { return link_->partition(table) == nullptr; });
    if (unknown.empty()) return write();
    pg::Params params;
    params.oids(unknown);
    run({{link_->sql()->partition_names, std::move(params)}}, &MarkCall::named);
  }

 private:
  using Results = std::vector<pg::Rows>;
  using Next = void (MarkCall::*)(Results);

  void run(std::vector<pg::Statement> statements, Next next) {
    link_->run(Work::mark, std::move(statements), [self = shared_from_this(), next](auto results) {
      if (results) return ((*self).*next)(std::move(*results));
      self->failed(std::move(results.error()));
    });
  }

  // A partition was dropped or renamed since its name was looked up: look it up again, once.
  void failed(Error error) {
    link_->forget_partitions();
    if (error.code == "42P01" && !names_again_) {
      names_again_ = true;
      return start();
    }
    done_(failure(std::move(error)));
  }

  void named(Results results) {
    const pg::Rows& names = results.front();
    for (int row = 0; row < names.size(); ++row) {
      link_->add_partition(static_cast<std::uint32_t>(names.integer(row, 0)),
                           std::string(names.text(row, 1)));
    }
    write();
  }

  void write() {
    // The cancelled rows first: they are looked for by index, which the marks' settings forbid.
    std::vector<pg::Statement> statements;
    if (!cancelled_.empty())
      statements.push_back({link_->sql()->mark_cancelled, cancelled_params(cancelled_)});
    statements.push_back({link_->sql()->mark_settings, {}});
    groups_.clear();
    doubtful_.clear();
    for (auto& [table, group] : by_partition(rows_)) {
      const PartitionSql* sql = link_->partition(table);
      if (sql == nullptr) {  // the partition is gone: its rows may have moved
        doubtful_.insert(doubtful_.end(), group.begin(), group.end());
        continue;
      }
      statements.push_back(after_ == AfterSent::mark
                               ? pg::Statement{sql->mark, mark_params(group, leases_, link_->source())}
                               : pg::Statement{sql->erase, erase_params(group, leases_, link_->source())});
      groups_.push_back(std::move(group));
    }
    if (groups_.empty() && cancelled_.empty()) return look();
    run(std::move(statements), &MarkCall::written);
  }

  void written(Results results) {
    const std::size_t first = results.size() - groups_.size();
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (results[first + i].affected() == std::ssize(groups_[i])) continue;
      doubtful_.insert(doubtful_.end(), groups_[i].begin(), groups_[i].end());
    }
    if (!cancelled_.empty() && results.front().affected() != std::ssize(cancelled_)) {
      doubtful_.insert(doubtful_.end(), cancelled_.begin(), cancelled_.end());
    }
    cancelled_.clear();
    if (doubtful_.empty()) return done_(std::move(reply_));
    look();
  }

  void look() {
    if (--rounds_left_ == 0) {
      return done_(failure(Disposition::retry, "rows kept moving while they were marked", {},
                           "they are marked again"));
    }
    std::vector<std::int64_t> ids;
    for (const SentRow& row : doubtful_) ids.push_back(row.id.value);
    pg::Params rows;
    rows.i64s(ids);
    pg::Params leases;
    leases.text(link_->source());
    leases_.add_to(leases);
    run({{link_->sql()->mark_look, std::move(rows)}, {link_->sql()->mark_leases, std::move(leases)}},
        &MarkCall::looked);
  }

  void looked(Results results) {
    Explained explained = explain(doubtful_, after_, leases_, results[0], results[1]);
    reply_.exceptions.insert(reply_.exceptions.end(), explained.exceptions.begin(),
                             explained.exceptions.end());
    for (const SentRow& row : explained.cancelled)
      reply_.exceptions.push_back({row.id, row.msg_id, MarkOutcome::cancelled});
    rows_ = std::move(explained.moved);
    cancelled_ = std::move(explained.cancelled);
    if (rows_.empty() && cancelled_.empty()) return done_(std::move(reply_));
    start();
  }

  std::shared_ptr<SourceLink> link_;
  AfterSent after_;
  Done<MarkReply> done_;
  LeaseList leases_;
  std::vector<SentRow> rows_;                 // to be marked in this round
  std::vector<SentRow> cancelled_;            // to be recorded as sent
  std::vector<std::vector<SentRow>> groups_;  // what the statements of this round address
  std::vector<SentRow> doubtful_;             // of groups that came short
  MarkReply reply_;
  int rounds_left_ = rounds_max;
  bool names_again_ = false;
};

}  // namespace

void start_mark(const std::shared_ptr<SourceLink>& link, std::vector<SentRow> rows, AfterSent after,
                Done<MarkReply> done) {
  if (rows.empty()) return link->post([done = std::move(done)] { done(MarkReply{}); });
  std::make_shared<MarkCall>(link, std::move(rows), after, std::move(done))->start();
}

}  // namespace outbox::relay
