"""Small seeded fits of everything that the library offers on the CPU, so that a rebuild can prove what it computes."""
