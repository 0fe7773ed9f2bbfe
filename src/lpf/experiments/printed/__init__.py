"""What the paper prints."""
