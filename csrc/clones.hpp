// Functions that are compiled for several instruction sets. The best one is chosen when the module is loaded.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__ELF__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PRUNUS_CLONES __attribute__((target_clones("avx2", "default")))
// Also with products and sums fused into one instruction, which rounds once instead of twice.
#define PRUNUS_FUSED_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PRUNUS_CLONES
#define PRUNUS_FUSED_CLONES
#endif

#if defined(__GNUC__)
#define PRUNUS_INLINE inline __attribute__((always_inline))  // else a clone would call the common version
#else
#define PRUNUS_INLINE inline
#endif
