#include "tools/run/job.hpp"

#include <cstring>

#include <sys/wait.h>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::run {
namespace {

using bootstrap::FieldReader;
using bootstrap::FieldWriter;

std::uint32_t count_of(std::size_t size) {
  return static_cast<std::uint32_t>(size);
}

}  // namespace

Binding parse_binding(const std::string& name) {
  if (name == "auto") {
    return Binding::Auto;
  }
  if (name == "core") {
    return Binding::Core;
  }
  if (name == "numa") {
    return Binding::Numa;
  }
  if (name == "none") {
    return Binding::None;
  }
  fail(Status::InvalidArgument, "--bind {}: use auto, core, numa or none", name);
}

Blob encode_job(const Job& job) {
  FieldWriter fields;
  fields.u32(count_of(job.tasks.size()));
  for (const PeTask& task : job.tasks) {
    fields.u32(task.pe).text(task.host).text(task.net_namespace);
  }
  fields.u32(count_of(job.command.size()));
  for (const std::string& word : job.command) {
    fields.text(word);
  }
  fields.u32(count_of(job.environment.size()));
  for (const auto& [name, value] : job.environment) {
    fields.text(name).text(value);
  }
  fields.text(job.directory).text(job.user_namespace).text(job.private_directory);
  fields.u32(static_cast<std::uint32_t>(job.binding)).u32(job.grace_ms);
  fields.u32(job.captures_output ? 1 : 0).u32(job.inherits_stdin ? 1 : 0);
  return fields.bytes();
}

Job decode_job(std::span<const std::byte> payload) {
  FieldReader fields(payload);
  Job job;
  for (std::uint32_t left = fields.u32(); left > 0; --left) {
    PeTask task;
    task.pe = fields.u32();
    task.host = fields.text();
    task.net_namespace = fields.text();
    job.tasks.push_back(std::move(task));
  }
  for (std::uint32_t left = fields.u32(); left > 0; --left) {
    job.command.push_back(fields.text());
  }
  for (std::uint32_t left = fields.u32(); left > 0; --left) {
    std::string name = fields.text();
    job.environment.emplace_back(std::move(name), fields.text());
  }
  job.directory = fields.text();
  job.user_namespace = fields.text();
  job.private_directory = fields.text();
  job.binding = static_cast<Binding>(fields.u32());
  job.grace_ms = fields.u32();
  job.captures_output = fields.u32() != 0;
  job.inherits_stdin = fields.u32() != 0;
  return job;
}

std::string describe_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    const char* words = ::sigdescr_np(number);
    return fmt::format("was killed by signal {} ({})", number, words == nullptr ? "?" : words);
  }
  return fmt::format("exited with status {}", WEXITSTATUS(wait_status));
}

int exit_status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace weft::run
