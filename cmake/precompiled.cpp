// Nothing: a target has sources, and weft_precompiled is there for its header alone (layers.cmake).
