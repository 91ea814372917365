// A service whose options stand in a file.
#include <outbox/config.hpp>

#include <iostream>

int main() {
  try {
    outbox::Consumer(outbox::parse_consumer_options("consumer: { wokers: 2 }"));
  } catch (const outbox::ConfigError& e) {
    std::cout << e.what() << "\n";
    return 0;
  }
  return 1;
}
