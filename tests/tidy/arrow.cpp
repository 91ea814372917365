// Compiled with -DHEADER="…" by the arrow tests: does a target find that header?
#ifdef HEADER
#include HEADER
#endif
