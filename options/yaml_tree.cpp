#include "options/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace outbox::config {
namespace {

constexpr std::string_view anchors_refused = "anchors and aliases are not read here: write the value out";

Place place_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

// Builds the tree from yaml-cpp's events. A map's keys arrive as ordinary nodes before their values.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Faults& faults) : faults_(faults) {}
  [[nodiscard]] YamlNode take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    finish({YamlNode::Kind::null, place_of(mark), "", {}, {}});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    faults_.push_back({place_of(mark), "", std::string(anchors_refused)});
    finish({YamlNode::Kind::null, place_of(mark), "", {}, {}});
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    finish({YamlNode::Kind::scalar, place_of(mark), value, {}, {}});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    open_.push_back({{YamlNode::Kind::list, place_of(mark), "", {}, {}}, false});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    open_.push_back({{YamlNode::Kind::map, place_of(mark), "", {}, {}}, false});
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    bool key_seen;  // of a map: the last entry waits for its value
  };

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) faults_.push_back({place_of(mark), "", std::string(anchors_refused)});
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    if (node.kind == YamlNode::Kind::map) drop_duplicates(node);
    finish(std::move(node));
  }

  void finish(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.kind == YamlNode::Kind::list) {
      open_.back().node.nodes.push_back(std::move(node));
    } else if (open_.back().key_seen) {
      open_.back().node.entries.back().value = std::move(node);
      open_.back().key_seen = false;
    } else {
      start_entry(std::move(node));
    }
  }

  void start_entry(YamlNode key) {
    if (key.kind != YamlNode::Kind::scalar || key.text.empty()) {
      faults_.push_back({key.place, "", "a key must be a word"});
    }
    open_.back().node.entries.push_back({std::move(key.text), key.place, {}});
    open_.back().key_seen = true;
  }

  // A key that is no word has its fault already.
  void drop_duplicates(YamlNode& map) {
    std::map<std::string, int> first_line;
    std::vector<YamlEntry> kept;
    for (YamlEntry& entry : map.entries) {
      if (entry.key.empty()) continue;
      const auto [first, fresh] = first_line.try_emplace(entry.key, entry.place.line);
      if (fresh) {
        kept.push_back(std::move(entry));
      } else {
        faults_.push_back({entry.place, entry.key,
                           "stands here a second time (first in line " + std::to_string(first->second) +
                               "): keep one of them"});
      }
    }
    map.entries = std::move(kept);
  }

  Faults& faults_;
  YamlNode root_;
  std::vector<Open> open_;
};

// yaml-cpp takes a tab for a space in some places and fails with another reason in others.
void refuse_tabs(const std::string& text, Faults& faults) {
  int line = 1;
  int column = 1;
  bool indentation = true;
  for (const char c : text) {
    if (indentation && c == '\t') {
      faults.push_back({{line, column}, "", "a tab in the indentation: YAML wants spaces"});
      indentation = false;
    }
    if (c != ' ') indentation = false;
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
      indentation = true;
    }
  }
}

void read_documents(const std::string& text, YamlDocument& out) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  TreeBuilder builder(out.faults);
  if (!parser.HandleNextDocument(builder)) return;
  YamlNode root = builder.take_root();
  TreeBuilder second(out.faults);
  if (parser.HandleNextDocument(second)) {
    out.faults.push_back({second.take_root().place, "", "a second document begins: one file holds one"});
  }
  out.root = std::move(root);
}

}  // namespace

const YamlEntry* find(const YamlNode& map, std::string_view key) {
  const auto it = std::ranges::find(map.entries, key, &YamlEntry::key);
  return it == map.entries.end() ? nullptr : &*it;
}

YamlDocument parse_yaml(const std::string& text) {
  YamlDocument out;
  if (text.size() > yaml_bytes_max) {
    out.faults.push_back({{}, "", "is larger than 1MiB"});
    return out;
  }
  refuse_tabs(text, out.faults);
  if (!out.faults.empty()) return out;
  try {
    read_documents(text, out);
  } catch (const YAML::Exception& e) {
    out.root = {};
    out.faults.push_back({place_of(e.mark), "", "is not YAML: " + e.msg});
  }
  return out;
}

std::string_view to_string(YamlNode::Kind kind) noexcept {
  switch (kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return "a single value";
    case YamlNode::Kind::map:
      return "a mapping";
    case YamlNode::Kind::list:
      return "a list";
  }
  return "";
}

}  // namespace outbox::config
