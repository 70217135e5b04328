"""The paper's tables of accuracy: methods tuned alike, four seeds, limits of time and memory that hold."""
