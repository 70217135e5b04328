"""Training on an NVIDIA GPU: steps that are captured once as CUDA graphs and then replayed."""
