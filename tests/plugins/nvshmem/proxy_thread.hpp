// The host library's proxy thread: makes progress all the time, and carries out what it is asked to
// in between.
//
// Threads: run and join by the main thread.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "tests/plugins/nvshmem/operations.hpp"

namespace weft::plugins::nvshmem {

class ProxyThread {
 public:
  explicit ProxyThread(const Operations::Setting& setting)
      : operations_(setting), thread_([this] { serve(); }) {}

  ~ProxyThread() { join(); }

  ProxyThread(const ProxyThread&) = delete;
  ProxyThread& operator=(const ProxyThread&) = delete;

  // In turn; what it throws comes out of the future.
  [[nodiscard]] std::future<void> run(std::function<void(Operations&)> work) {
    Task task([this, work = std::move(work)] { work(operations_); });
    std::future<void> done = task.get_future();
    const std::lock_guard guard(lock_);
    tasks_.push_back(std::move(task));
    return done;
  }

  // After what it was asked to do.
  void join() {
    ends_.store(true, std::memory_order_release);
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  // Empty, or why it ended by itself.
  [[nodiscard]] std::exception_ptr error() {
    const std::lock_guard guard(lock_);
    return error_;
  }

 private:
  using Task = std::packaged_task<void()>;

  void serve() {
    try {
      for (;;) {
        if (Task task = next(); task.valid()) {
          task();
        } else if (ends_.load(std::memory_order_acquire)) {
          return;
        }
        operations_.progress();
        std::this_thread::yield();
      }
    } catch (...) {
      const std::lock_guard guard(lock_);
      error_ = std::current_exception();
      tasks_.clear();  // whoever waits for one hears that it is gone
    }
  }

  [[nodiscard]] Task next() {
    const std::lock_guard guard(lock_);
    if (tasks_.empty()) {
      return {};
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  Operations operations_;
  std::mutex lock_;
  std::deque<Task> tasks_;
  std::exception_ptr error_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace weft::plugins::nvshmem
