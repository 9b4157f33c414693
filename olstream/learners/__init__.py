"""The learners: pick one. Each file is a paper, its parameters and its kernel; see `base`."""
