// Passes a descriptor to other processes of this user on the machine, over a Unix socket whose name
// is in no file system. No process needs the right to trace another for it. Processes in another
// network namespace do not see the name.
//
// Any thread. Invariant: whoever takes the descriptor is of this user, as the kernel says.
#pragma once

#include <string>
#include <thread>

#include "src/base/file_descriptor.hpp"

namespace weft {

class DescriptorOffer {
 public:
  // The descriptor stays the caller's, and open as long as this lives. Throws Error if there can be
  // no socket.
  explicit DescriptorOffer(int descriptor);
  DescriptorOffer(const DescriptorOffer&) = delete;
  DescriptorOffer& operator=(const DescriptorOffer&) = delete;
  ~DescriptorOffer();

  // For take_offered, in any process. Nobody can guess it; 32 characters.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void serve();

  int descriptor_;
  std::string name_;
  FileDescriptor socket_;
  FileDescriptor stop_;  // an eventfd
  std::thread thread_;   // last: starts when everything else is constructed
};

// A duplicate of the descriptor; negative, with errno set, if there is no such name here or it is
// another user's.
[[nodiscard]] FileDescriptor take_offered(const std::string& name);

}  // namespace weft
