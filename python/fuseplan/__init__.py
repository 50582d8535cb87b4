"""Runs the encoder layers of a PyTorch model by kernels that the program fuseplan finds, builds and verifies."""
