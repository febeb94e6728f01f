// The process's single job, and what is known about it.
#include "src/api/process.hpp"

#include <string>
#include <utility>
#include <vector>

namespace weft::api {

rma::Rma* rma_of_process = nullptr;

namespace {

struct Job {
  Job(const Config& config, std::unique_ptr<bootstrap::Bootstrap> bootstrap)
      : runtime(config, std::move(bootstrap)),
        check_level(config.check_level),
        check_collectives(config.check_collectives) {
    for (std::uint32_t pe = 0; pe < runtime.pe_count(); ++pe) {
      if (pe != runtime.pe().value) {
        others.emplace_back(pe);
      }
    }
  }

  runtime::Runtime runtime;
  std::int64_t check_level;
  std::string check_collectives;
  std::vector<Pe> others;
  ContextTable contexts;
};

// Never destroyed implicitly: a program that exits without weft_finalize must not wait for other
// PEs.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): 8 bytes, before main
std::unique_ptr<Job>& job = *new std::unique_ptr<Job>;

}  // namespace

void create_job(const Config& config, std::unique_ptr<bootstrap::Bootstrap> bootstrap) {
  job = std::make_unique<Job>(config, std::move(bootstrap));
}

bool has_job() {
  return job != nullptr;
}

void destroy_job() {
  job.reset();
}

runtime::Runtime& runtime() {
  return job->runtime;
}

std::span<const Pe> others() {
  return job->others;
}

rma::Context& context_of(weft_ctx_t context) {
  return context == WEFT_CTX_DEFAULT ? job->runtime.default_context()
                                     : *reinterpret_cast<rma::Context*>(context);
}

ContextTable& contexts() {
  return job->contexts;
}

std::int64_t check_level() {
  return job->check_level;
}

std::string_view check_collectives() {
  return job->check_collectives;
}

}  // namespace weft::api
