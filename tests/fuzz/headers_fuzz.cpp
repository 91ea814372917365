// Any headers whatever: they are read without undefined behaviour, a record is malformed or has an identity,
// and what is kept of it for an operator is JSON that reads back.
//
// Input: headers as (name length, value length or 255 for null, name, value), lengths one byte each.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "consumer/core/envelope.hpp"
#include "consumer/core/text.hpp"

namespace {

constexpr std::size_t null_value = 255;
// A short name often, so that the fuzzer meets the ones that matter.
constexpr std::string_view known[] = {"outbox-id", "outbox-seq", "outbox-created-at", "outbox-source",
                                      "ce_id",     "ce_source",  "ce_time",           "id"};

class Input {
 public:
  explicit Input(std::string_view left) : left_(left) {}
  [[nodiscard]] bool empty() const { return left_.empty(); }
  std::size_t byte() {
    if (left_.empty()) return 0;
    const auto value = static_cast<unsigned char>(left_.front());
    left_.remove_prefix(1);
    return value;
  }
  std::string_view bytes(std::size_t count) {
    const auto out = left_.substr(0, count);
    left_.remove_prefix(out.size());
    return out;
  }

 private:
  std::string_view left_;
};

std::vector<outbox::Header> read_headers(Input input) {
  std::vector<outbox::Header> out;
  while (!input.empty()) {
    const std::size_t name = input.byte(), value = input.byte();
    outbox::Header header{.name = name < std::size(known) ? known[name] : input.bytes(name)};
    if (value != null_value) header.value = input.bytes(value);
    out.push_back(header);
  }
  return out;
}

void require(bool law) {
  if (!law) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto headers = read_headers(Input({reinterpret_cast<const char*>(data), size}));
  const outbox::Record record{.topic = "t", .headers = headers};
  const auto first = outbox::read_envelope(record), second = outbox::read_envelope(record);
  require(first.index() == second.index());
  if (const auto* identity = std::get_if<outbox::Message::Identity>(&first))
    require(identity->msg_id == std::get<outbox::Message::Identity>(second).msg_id);
  else
    require(!std::get<outbox::Malformed>(first).reason.empty());
  require(outbox::is_text(outbox::headers_json(headers)));
  for (const auto& header : headers) {
    const auto text = outbox::to_text(header.value.value_or(""), 64);
    require(text.size() <= 64 && outbox::is_text(text));
  }
  return 0;
}
