#include "relay/http/http_connection.hpp"

#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <optional>
#include <utility>

namespace outbox::relay {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using OpenSet = std::set<std::shared_ptr<HttpConnections::Open>>;

// A page from here loads nothing, sends nothing, and stands in no frame.
constexpr const char* content_policy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src "
    "data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

HttpAnswer plain(http::status status, std::string text) {
  return {.status = static_cast<int>(status), .body = std::move(text) + "\n"};
}

template <class Protocol>
class Connection final : public HttpConnections::Open,
                         public std::enable_shared_from_this<Connection<Protocol>> {
 public:
  Connection(typename Protocol::socket socket, HttpRules rules, std::shared_ptr<OpenSet> open)
      : stream_(std::move(socket)), rules_(std::move(rules)), open_(std::move(open)) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(rules_.limits.header_bytes);
    parser_->body_limit(rules_.limits.body_bytes);
    stream_.expires_after(rules_.limits.request_time);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](beast::error_code error, std::size_t) { self->got(error); });
  }

  void close() override {
    beast::error_code ignored;
    stream_.socket().close(ignored);
  }

 private:
  void got(beast::error_code error) {
    if (!open_->contains(this->shared_from_this())) return;  // the server closed it
    if (!error) return write(judged(), parser_->get().keep_alive() && ++served_ < rules_.limits.requests);
    const bool idle = parser_ && !parser_->got_some();  // nothing of a request came: its peer is done
    if (error == http::error::end_of_stream || idle) return end();
    rules_.on_refused();
    if (error == http::error::header_limit)
      return write(plain(http::status::request_header_fields_too_large, "header too large"), false);
    if (error == http::error::body_limit)
      return write(plain(http::status::payload_too_large, "body too large"), false);
    if (error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::partial_message)
      return write(plain(http::status::bad_request, "not HTTP"), false);
    end();  // too slow, or gone
  }

  HttpAnswer judged() {
    const auto& request = parser_->get();
    if (request.method() != http::verb::get && request.method() != http::verb::head)
      return plain(http::status::method_not_allowed, "GET and HEAD only");
    const auto host = request[http::field::host];
    if (!rules_.host_allowed({host.data(), host.size()}))
      return plain(http::status::misdirected_request, "ask by address, or as localhost");
    const std::string_view target{request.target().data(), request.target().size()};
    const auto accept = request[http::field::accept];
    return rules_.answer(target.substr(0, target.find('?')), {accept.data(), accept.size()});
  }

  void write(HttpAnswer answer, bool keep) {
    response_.emplace();
    response_->result(static_cast<unsigned>(answer.status));
    response_->version(11);
    response_->keep_alive(keep);
    response_->set(http::field::content_type, {answer.content_type.data(), answer.content_type.size()});
    response_->set(http::field::cache_control, "no-store");
    response_->set("Content-Security-Policy", content_policy);
    response_->set("X-Content-Type-Options", "nosniff");
    response_->set(http::field::allow, "GET, HEAD");
    response_->content_length(answer.body.size());
    const bool head = parser_ && parser_->get().method() == http::verb::head;
    if (!head) response_->body() = std::move(answer.body);
    stream_.expires_after(rules_.limits.answer_time);
    http::async_write(stream_, *response_,
                      [self = this->shared_from_this(), keep](beast::error_code error, std::size_t) {
                        if (!self->open_->contains(self)) return;
                        if (!error) self->rules_.on_answered();
                        if (error || !keep) return self->end();
                        self->read();
                      });
  }

  void end() {
    beast::error_code ignored;
    stream_.socket().shutdown(Protocol::socket::shutdown_send, ignored);
    stream_.socket().close(ignored);
    open_->erase(this->shared_from_this());
  }

  beast::basic_stream<Protocol> stream_;
  HttpRules rules_;
  std::shared_ptr<OpenSet> open_;
  beast::flat_buffer buffer_{16 * 1024};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  int served_ = 0;
};

}  // namespace

template <class Protocol>
void HttpConnections::begin(typename Protocol::socket socket, HttpRules rules) {
  auto added = std::make_shared<Connection<Protocol>>(std::move(socket), std::move(rules), open_);
  open_->insert(added);
  added->read();
}

void HttpConnections::add(boost::asio::ip::tcp::socket socket, HttpRules rules) {
  begin<boost::asio::ip::tcp>(std::move(socket), std::move(rules));
}

void HttpConnections::add(boost::asio::local::stream_protocol::socket socket, HttpRules rules) {
  begin<boost::asio::local::stream_protocol>(std::move(socket), std::move(rules));
}

void HttpConnections::close_all() {
  for (const auto& open : std::exchange(*open_, {})) open->close();
}

}  // namespace outbox::relay
