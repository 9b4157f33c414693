"""Every learner dense, slow and obvious, straight from its paper: what the kernels are held against."""
