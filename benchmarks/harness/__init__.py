"""What benchmarks and experiments share: methods, sets, splits, cells, limits, measurements and reports."""
