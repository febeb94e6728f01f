// The thread that stands in for the NICs' own work: it moves endpoints on while the client does not
// look. One for each process, from the first endpoint that is enabled to the last that is closed.
//
// Threads: add, remove and wake from any.
#pragma once

namespace loom {

class Endpoint;
class FabricLink;

void add_to_engine(Endpoint& endpoint, const FabricLink& link);
// After it the engine does not touch the endpoint.
void remove_from_engine(Endpoint& endpoint);

}  // namespace loom
