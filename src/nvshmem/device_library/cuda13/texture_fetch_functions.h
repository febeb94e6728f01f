// CUDA 13 has no such header any more, and clang before 21 includes it. Found after CUDA's own.
