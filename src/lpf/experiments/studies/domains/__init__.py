"""Seven domains, two presets."""
