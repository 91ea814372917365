#include "relay/config/load.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "options/section.hpp"
#include "relay/config/kafka_section.hpp"
#include "relay/config/options.hpp"

namespace outbox::config {
namespace {

constexpr std::string_view name_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

// A pipeline is called by its name where it has one, by its place in the list otherwise.
std::string called(const YamlNode& pipeline, std::size_t index) {
  const YamlEntry* name = find(pipeline, "name");
  const bool named = name && name->value.kind == YamlNode::Kind::scalar && !name->value.text.empty();
  return pipeline_path(named ? name->value.text : std::to_string(index + 1));
}

Place place_of(const Origins& origins, std::string_view path, Place otherwise) {
  const auto it = origins.find(std::string(path));
  return it == origins.end() ? otherwise : it->second.place;
}

// What no single option can see.
void check_together(SectionReader& reader, const Pipeline& p, const Origins& origins, Place here,
                    const std::string& where) {
  if (p.name.find_first_not_of(name_letters) != std::string::npos) {
    reader.fault(place_of(origins, "name", here), joined(where, "name"),
                 "holds more than letters, digits, '.', '_' and '-'");
  }
  if (p.source.batch_bytes > p.publish.in_flight_bytes) {
    reader.fault(place_of(origins, "source.batch_bytes", place_of(origins, "publish.in_flight_bytes", here)),
                 joined(where, "source.batch_bytes"),
                 "is more than publish.in_flight_bytes: one batch could not be taken");
  }
  if (p.source.batch_rows > p.publish.in_flight_rows) {
    reader.fault(place_of(origins, "source.batch_rows", place_of(origins, "publish.in_flight_rows", here)),
                 joined(where, "source.batch_rows"),
                 "is more than publish.in_flight_rows: one batch could not be taken");
  }
}

void read_pipeline(SectionReader& reader, const YamlNode& node, std::size_t index, Loaded& out) {
  const std::string where = called(node, index);
  if (node.kind != YamlNode::Kind::map) {
    reader.fault(node.place, where, "must be a mapping, not " + std::string(to_string(node.kind)));
    return;
  }
  Pipeline pipeline;
  Origins origins = reader.read(level_of(pipeline_options(), pipeline, {kafka_section}, where), node);
  read_kafka(reader, node, where, pipeline, origins);
  check_together(reader, pipeline, origins, node.place, where);
  out.config.pipelines.push_back(std::move(pipeline));
  out.pipelines.push_back(std::move(origins));
}

// Two pipelines on one table would each believe the lanes theirs.
void check_unique(SectionReader& reader, const Loaded& loaded) {
  const auto& all = loaded.config.pipelines;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const std::string where = pipeline_path(all[i].name);
      if (!all[i].name.empty() && all[i].name == all[j].name) {
        const Place first = place_of(loaded.pipelines[j], "name", {});
        reader.fault(place_of(loaded.pipelines[i], "name", {}), joined(where, "name"),
                     "is the name of another pipeline (line " + std::to_string(first.line) + ")");
      } else if (!all[i].postgres.uri.empty() && all[i].postgres.uri == all[j].postgres.uri &&
                 all[i].source.table == all[j].source.table) {
        reader.fault(place_of(loaded.pipelines[i], "source.table", place_of(loaded.pipelines[i], "name", {})),
                     joined(where, "source.table"), "is read by " + pipeline_path(all[j].name) + " already");
      }
    }
  }
}

void read_pipelines(SectionReader& reader, const YamlNode& root, Loaded& out) {
  const YamlEntry* entry = find(root, pipelines_section);
  const std::string path{pipelines_section};
  if (!entry || entry->value.kind == YamlNode::Kind::null ||
      (entry->value.kind == YamlNode::Kind::list && entry->value.nodes.empty())) {
    reader.fault(entry ? entry->place : root.place, path, "is missing: it lists at least one `- name: …`");
  } else if (entry->value.kind != YamlNode::Kind::list) {
    reader.fault(entry->value.place, path,
                 "must be a list (`- name: …`), not " + std::string(to_string(entry->value.kind)));
  } else if (entry->value.nodes.size() > pipelines_max) {
    reader.fault(entry->place, path, "has more than " + std::to_string(pipelines_max) + " entries");
  } else {
    for (std::size_t i = 0; i < entry->value.nodes.size(); ++i)
      read_pipeline(reader, entry->value.nodes[i], i, out);
    check_unique(reader, out);
  }
}

}  // namespace

std::string pipeline_path(const std::string& name) {
  const std::string quoted = shown(name);
  return std::string(pipelines_section) + "[" + quoted.substr(1, quoted.size() - 2) + "]";
}

tl::expected<Loaded, Faults> parse(const std::string& yaml, const Surroundings& surroundings) {
  YamlDocument document = parse_yaml(yaml);
  Faults& faults = document.faults;
  SectionReader reader(surroundings, faults);
  Loaded out;
  if (document.root.kind == YamlNode::Kind::map) {
    out.process =
        reader.read(level_of(process_options(), out.config, {pipelines_section}, ""), document.root);
    read_pipelines(reader, document.root, out);
  } else if (document.root.kind != YamlNode::Kind::null) {
    reader.fault(document.root.place, "",
                 "must be a mapping with `pipelines:`, not " + std::string(to_string(document.root.kind)));
  } else if (faults.empty()) {
    reader.fault({}, "", "is empty; `outboxd config sample` prints a file to start from");
  }
  std::ranges::stable_sort(faults, {}, &Fault::place);
  if (!faults.empty()) return tl::unexpected(std::move(faults));
  return out;
}

tl::expected<Loaded, Faults> load_file(const std::string& path, const Surroundings& surroundings) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(yaml_bytes_max + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof() && text.size() <= yaml_bytes_max) {
    return tl::unexpected(Faults{{{}, "", std::string("cannot be read: ") + std::strerror(errno)}});
  }
  return parse(text, surroundings);
}

}  // namespace outbox::config
