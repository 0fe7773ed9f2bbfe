"""Speed and size, each as a ratio to something measured in the same run."""
