/* The loops of shapes.c with as many sets side by side as the widest vectors hold. A set's result does not depend
   on its neighbours, so it is the same; which loops run is decided when the module is loaded. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)

#define WIDE
#define LANES 8
#define VECTORISED __attribute__((target("avx512f")))
#define cosines wide_cosines
#define cosines_back wide_cosines_back
#define shape_methods wide_shape_methods
#include "cosines.c"
#include "shapes.c"

int has_wide_vectors(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f");
}

#else

#include "loops.h"

PyMethodDef wide_shape_methods[] = {{NULL, NULL, 0, NULL}};

int has_wide_vectors(void)
{
    return 0;
}

#endif
